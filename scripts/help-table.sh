#!/usr/bin/env bash
# What the programs' --help says, as lines of fields divided by tabs, for man-pages.sh and completion.sh:
#   PROGRAM  COMMAND  command  NAME  -  -  -  HELP          a subcommand of kcast (COMMAND is -), or a mode of kcast-exec
#   PROGRAM  COMMAND  option   NAME  LETTER  ARGUMENT  CHOICES  HELP
#   PROGRAM  COMMAND  argument NAME  -  -  -  -            what its usage says of the first argument, "PROBLEM"
# A field that has nothing is "-". COMMAND is - for options of the program itself.
#   help-table.sh BIN [LIBEXEC]
set -eu
bin=$1 libexec=${2:-$1}
export COLUMNS=100000 HOME=/home/you
unset XDG_STATE_HOME XDG_CONFIG_HOME STATE_DIRECTORY KCAST_PROBLEMS KCAST_POOL KCAST_WORKER || :

# PROGRAM COMMAND, with the help on stdin
rows() {
    awk -v program="$1" -v command="$2" '
        function field(text) { return text == "" ? "-" : text }
        function flush() {
            if (name == "") return
            choices = ""
            if (match(help, /; one of [^ ]+/)) choices = substr(help, RSTART + 9, RLENGTH - 9)
            printf "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", program, command, kind, name, field(letter), field(argument), field(choices), field(help)
            name = ""
        }
        /^usage: / && match($0, /\[OPTION…\] +[^ ]+/) && command != "-" {
            first = substr($0, RSTART, RLENGTH); sub(/.* /, "", first)
            printf "%s\t%s\targument\t%s\t-\t-\t-\t-\n", program, command, first
        }
        /^[^ ].*:$/ { flush(); section = $0; next }
        /^[^ ]/ || /^$/ { flush(); if ($0 != "") section = ""; next }
        /^ +(-[A-Za-z], )?--/ && section ~ /^options/ {
            flush()
            line = $0; kind = "option"; letter = argument = ""
            sub(/^ +/, "", line)
            if (line ~ /^-[A-Za-z], /) { letter = substr(line, 2, 1); line = substr(line, 5) }
            at = index(line, "  "); left = at ? substr(line, 1, at - 1) : line
            help = at ? substr(line, at) : ""; sub(/^ +/, "", help)
            name = substr(left, 3)
            if (at = index(name, "=")) { argument = substr(name, at + 1); name = substr(name, 1, at - 1) }
            next
        }
        /^  [a-z]/ && section ~ /^(commands|modes):/ {
            flush()
            line = substr($0, 3); kind = "command"; letter = argument = ""
            at = index(line, "  "); name = at ? substr(line, 1, at - 1) : line
            help = at ? substr(line, at) : ""; sub(/^ +/, "", help)
            next
        }
        name != "" { sub(/^ +/, ""); help = help (help == "" ? "" : " ") $0 }
        END { flush() }'
}

"$bin/kcast" --help | rows kcast -
"$bin/kcast" --help | rows kcast - | awk -F'\t' '$3 == "command" { print $4 }' | while read -r command; do
    # shellcheck disable=SC2086
    "$bin/kcast" $command --help </dev/null | rows kcast "$command"
done
"$bin/kcastd" --help | rows kcastd -
"$bin/kcast-worker" --help | rows kcast-worker -
"$libexec/kcast-exec" --help | rows kcast-exec -
