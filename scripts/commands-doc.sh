#!/bin/sh
# Prints docs/commands.md from what the programs say of themselves.
#   scripts/commands-doc.sh BIN            to stdout
#   scripts/commands-doc.sh BIN --write    into docs/commands.md
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
export COLUMNS=100 HOME=/home/you
unset XDG_STATE_HOME XDG_CONFIG_HOME STATE_DIRECTORY KCAST_PROBLEMS KCAST_POOL KCAST_WORKER || :

help() { # title, command…
    printf '## %s\n\n```\n' "$1"
    shift
    "$@" --help
    printf '```\n\n'
}
# The names of all commands, from the list of `kcast help`.
commands() { COLUMNS=100000 "$bin/kcast" help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\( [a-z]*\)\{0,1\}\)  .*/\1/p'; }

generate() {
    cat <<'TEXT'
# Commands

Generated from the programs' own `--help` by `scripts/commands-doc.sh`; `make test` compares. Results go to stdout, talk to stderr; `--json` prints one
JSON object per line. Commands that wait for daemons, workers or processors say there how far they are and why they wait: on a terminal in place, elsewhere a reason when it changes
and a line every half a minute; `--quiet` says nothing.

TEXT
    help kcast "$bin/kcast"
    commands | while read -r command; do
        # shellcheck disable=SC2086
        help "kcast $command" "$bin/kcast" $command </dev/null
    done
    cat <<'TEXT'
## JSON

With `--json` stdout has one object per line. Each begins with `"schema": 1`; the number grows when a key changes its meaning or type, and new keys do not count. Whole
numbers are integers; where no number is known there is `null`. When a command fails, its last object is `{"schema": 1, "error": {"name", "exit_code", "text"}}` with a name of
the table of errors below; the sentence stands on stderr, too.

| command | objects |
| --- | --- |
| `kcast measure` | one for each candidate, when it is known: `candidate` (the path, `-` for stdin), `verdict`, `reason`, `speedup`, `ci95` and the rest of the result; `diagnostics`, all messages of the compiler as `file`, `line`, `column`, `severity`, `message`; `compiler_output`, everything that it printed; `advice`; or `error` |
| `kcast search`, `kcast resume` | each event of the run when it is recorded: `event`, `sequence`, `at`, `body` ([protocol.md](protocol.md) has the bodies, as `run_…`); last the summary, which has no `event` |
| `kcast status` | one for each daemon: `pool`, `devices`, `jobs`, `shares`, `worker` and the rest; the daemon's `/status.json` is the same, with `worker` null |
| `kcast export`, `kcast report` | as `--format` says; a `source` that is damaged is null and has `source_error`. With `--events` each event as `kcast search` prints it, and its name as `kind` too |
| `kcast replay` | one for each search, by space, policy, strategy, seed and search |

## Candidates of `pool:FILE.jsonl`

One JSON object per line: `source`, the text of a candidate, and `name`. Other keys are ignored, so that files which other tools wrote, and those of `kcast export RUN`, can
be used as they are. `pool:DIR` takes the files of a folder whose names end as the problem's sources do, and for CUDA those that end in `.py`.

## Lines for `kcast eval`

FILE is a run file, or text with one JSON object per line. Every key may be left out; others are ignored.

| key | meaning |
| --- | --- |
| `verdict` | outcome, one of the verdicts below; without one, or with `none` or `quarantined`, the line counts as a forecast without an outcome |
| `log2` | measured log2 speedup; verdicts of a correct candidate need it |
| `bins` | 15 probabilities over the bins of `proto/bins.h`, given that it is correct; any positive sum |
| `mean_log2` | mean forecast log2 speedup; without `bins` the whole forecast of the speedup |
| `p_correct`, `p_improves`, `confidence` | in 0 to 1; confidence is that the call "improves, or not" is right |
| `incumbent_log2` | what an improvement had to beat; default: 0, the baseline |
| `propensity` | probability with which the outcome was to be seen; the line counts 1 / propensity; default: 1 |
| `cluster` | integer or text; lines with the same are drawn together for the intervals; default: a line by itself |
| `engine` | text; engines are judged apart |

With `--json`, one object per engine: `engine`, `forecasts`, `unmeasured`, `clusters`, `effective`, `risk`, `draws`, `seed`, and `metrics`, an object
with `value`, `lo`, `hi` (null where it is not defined) and `rows` for each measure. `client/eval/score.h` defines them.

TEXT
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
    sed -n 's/^    X([0-9]*, [A-Z_]*, "\([a-z-]*\)", \(true\|false\), *"\(.*\)").*/| `\1` | \3 |/p' proto/verdict.h
    echo
    echo '## States of a job'
    echo
    echo '| state | meaning |'
    echo '| --- | --- |'
    sed -n '/define JOB_STATES/,/^$/s/^    X([0-9]*, [A-Z_]*, "\([a-z-]*\)", [a-z]*, "\(.*\)").*/| `\1` | \2 |/p' proto/verdict.h
}

if [ "${2:-}" = --write ]; then generate >docs/commands.md; else generate; fi
