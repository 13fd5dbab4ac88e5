#!/bin/sh
# Prints the tables of docs/protocol.md from the .def files, which are where the messages are defined.
#   scripts/protocol-doc.sh            the generated part
#   scripts/protocol-doc.sh --write    puts it into docs/protocol.md, below the marker
set -eu
cd "$(dirname "$0")/.."
marker='<!-- Everything below is generated from proto/*.def by scripts/protocol-doc.sh. -->'

operations() {
    echo '## Operations'
    echo
    echo '| number | operation | request | reply | meaning |'
    echo '| --- | --- | --- | --- | --- |'
    sed -n 's/^ *X(\([0-9]*\), \([A-Z_]*\), \([a-z_]*\), \([a-z_]*\), "\(.*\)").*/| \1 | \2 | `\3` | `\4` | \5 |/p' proto/messages.h
    echo
}

messages() {
    awk '
    function flush_comment() { if (note != "") print note "\n"; note = "" }
    /^\/\/ / { line = substr($0, 4); note = note == "" ? line : note " " line; next }
    /^$/ { if (!in_message && note != "") { print note "\n"; note = "" } next }
    /^MESSAGE\(/ {
        name = $0; sub(/^MESSAGE\(/, "", name); rest = name; sub(/,.*/, "", name)
        tail = ""; if (match($0, /\/\/ .*/)) tail = substr($0, RSTART + 3)
        print "### " name "\n"; flush_comment(); if (tail != "") print tail "\n"
        print "| key | field | type | | at most | meaning |\n| --- | --- | --- | --- | --- | --- |"
        in_message = 1; next
    }
    /^ *FIELD/ {
        text = ""; if (match($0, /\/\/ .*/)) { text = substr($0, RSTART + 3); $0 = substr($0, 1, RSTART - 1) }
        last = $0 ~ /\)\)[ \t]*$/
        kind = $0; sub(/\(.*/, "", kind); gsub(/ /, "", kind)
        args = $0; sub(/^[^(]*\(/, "", args); sub(/\)+[ \t]*$/, "", args)
        split(args, a, /, */)
        type = a[2]; if (kind == "FIELD_ONE") type = "`" a[2] "`"; if (kind == "FIELD_LIST") type = "list of `" a[2] "`"
        most = a[5] + 0 > 0 ? a[5] : ""
        printf "| %s | %s | %s | %s | %s | %s |\n", a[1], a[3], type, a[4] == "REQUIRED" ? "required" : "", most, text
        if (last) { print ""; in_message = 0 }
    }' "$1"
}

generate() {
    echo "$marker"
    echo
    operations
    for f in envelope daemon result worker run space exec; do
        case $f in
        envelope) echo '## Envelopes and HELLO' ;;
        daemon) echo '## kcastd' ;;
        result) echo '## Results' ;;
        worker) echo '## kcast-worker' ;;
        run) echo '## Events of a run file' ;;
        space) echo '## Spaces' ;;
        exec) echo '## Plans and reports of kcast-exec' ;;
        esac
        echo
        messages proto/$f.def
    done
}

if [ "${1:-}" = --write ]; then
    new=$(mktemp)
    sed "/^$(printf %s "$marker" | sed 's/[*/.]/\\&/g')\$/,\$d" docs/protocol.md >"$new"
    generate >>"$new"
    cat "$new" >docs/protocol.md
    rm -f "$new"
else
    generate
fi
