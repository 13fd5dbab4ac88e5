#!/bin/sh
# Prints docs/commands.md from what the programs say of themselves.
#   tools/commands-doc.sh BIN            to stdout
#   tools/commands-doc.sh BIN --write    into docs/commands.md
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
export COLUMNS=100 HOME=/home/you
unset XDG_STATE_HOME XDG_CONFIG_HOME STATE_DIRECTORY KCAST_PROBLEMS || :

help() { # title, command…
    printf '## %s\n\n```\n' "$1"
    shift
    "$@" --help
    printf '```\n\n'
}

generate() {
    cat <<'TEXT'
# Commands

Generated from the programs' own `--help` by `tools/commands-doc.sh`; `make test` compares. Results go to stdout, talk to stderr; `--json` prints one
JSON object per line.

TEXT
    help kcast "$bin/kcast"
    for command in search resume measure forecast status jobs cancel report export 'problem list' 'problem check' 'problem new'; do
        # shellcheck disable=SC2086
        help "kcast $command" "$bin/kcast" $command
    done
    help kcastd "$bin/kcastd"
    help kcast-worker "$bin/kcast-worker"
    help kcast-exec "$bin/kcast-exec"
    echo '## Exit codes'
    echo
    echo '| code | meaning |'
    echo '| --- | --- |'
    sed -n 's/^    X([A-Z_]*, \([0-9]*\), "\(.*\)").*/| \1 | \2 |/p' common/exit.h
    echo
    echo '## Errors'
    echo
    echo 'Names in replies and in `--json`.'
    echo
    echo '| name | exit code | meaning |'
    echo '| --- | --- | --- |'
    sed -n 's/^    X(\([A-Z_]*\), "\([a-z-]*\)", EXIT_\([A-Z_]*\), "\(.*\)").*/\2 \3 \4/p' common/err.h |
        while read -r name exit meaning; do
            printf '| `%s` | %s | %s |\n' "$name" "$(sed -n "s/^    X($exit, \([0-9]*\),.*/\1/p" common/exit.h)" "$meaning"
        done
    echo
    echo '## Verdicts'
    echo
    echo '| verdict | meaning |'
    echo '| --- | --- |'
    sed -n 's/^    X([0-9]*, [A-Z_]*, "\([a-z-]*\)", \(true\|false\), *"\(.*\)").*/| `\1` | \3 |/p' contract/verdict.h
    echo
    echo '## States of a job'
    echo
    echo '| state | meaning |'
    echo '| --- | --- |'
    sed -n '/define JOB_STATES/,/^$/s/^    X([0-9]*, [A-Z_]*, "\([a-z-]*\)", [a-z]*, "\(.*\)").*/| `\1` | \2 |/p' contract/verdict.h
}

if [ "${2:-}" = --write ]; then generate >docs/commands.md; else generate; fi
