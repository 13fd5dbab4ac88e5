#!/usr/bin/env bash
# Manual pages of the programs and of every command, from their --help, into a folder.
#   man-pages.sh BIN FOLDER [LIBEXEC]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bin=$1 folder=$2 libexec=${3:-$1}
version=$("$bin/kcast" --version | sed 's/.* //')
export COLUMNS=100000 HOME=/home/you
unset XDG_STATE_HOME XDG_CONFIG_HOME STATE_DIRECTORY KCAST_PROBLEMS KCAST_POOL KCAST_WORKER || :
mkdir -p "$folder"

# NAME 'see also', with the help on stdin. A heading of the help is one of the page, a row of two columns an item.
page() {
    awk -v name="$1" -v also="$2" -v version="$version" '
        # roff takes a leading dot or quote for a command and a backslash for an escape; options have no hyphens.
        function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); if (text ~ /^[.'"'"']/) text = "\\&" text; return text }
        function heading(text) { printf ".SH %s\n", roff(toupper(text)) }
        { line[NR] = $0 }
        END {
            # The first line of text says what the program or command does.
            for (i = 2; i <= NR && what == ""; i++) if (line[i] ~ /^[^ ]/) { what = line[i]; first = i }
            short = what; sub(/[.:].*/, "", short)
            printf ".TH %s 1 \"\" \"kernelcast %s\" \"kernelcast\"\n", roff(toupper(name)), version
            printf ".SH NAME\n%s \\- %s\n", roff(name), roff(tolower(substr(short, 1, 1)) substr(short, 2))
            usage = line[1]; sub(/^usage: /, "", usage)
            printf ".SH SYNOPSIS\n.B %s\n", roff(usage)
            printf ".SH DESCRIPTION\n%s\n", roff(what)
            for (i = first + 1; i <= NR; i++) {
                text = line[i]
                if (text == "") { if (i < NR && line[i + 1] ~ /^[^ ]/ && line[i + 1] !~ /:$/) print ".PP"; continue }
                if (text ~ /^[^ ].*:$/) { sub(/:$/, "", text); heading(text); continue }
                if (text ~ /^[^ ]/) { print roff(text); continue }
                if (match(text, /^ */) && RLENGTH >= 20) { sub(/^ +/, "", text); print roff(text); continue }
                sub(/^ +/, "", text)
                at = index(text, "  ")
                left = at ? substr(text, 1, at - 1) : text; right = at ? substr(text, at) : ""; sub(/^ +/, "", right)
                printf ".TP\n.B %s\n", roff(left)
                if (right != "") print roff(right)
            }
            if (also != "") printf ".SH SEE ALSO\n%s\n", also
        }' >"$folder/$1.1"
}
link() { sed 's/-/\\-/g; s/^/.BR /; s/$/ (1)/' <<<"$1"; }

table=$("$here/help-table.sh" "$bin" "$libexec")
commands=$(awk -F'\t' '$1 == "kcast" && $2 == "-" && $3 == "command" { print $4 }' <<<"$table")
all=$(while read -r command; do link "kcast-${command// /-}"; done <<<"$commands")
"$bin/kcast" --help | page kcast "$(link kcastd)
$(link kcast-worker)
$all"
while read -r command; do
    # shellcheck disable=SC2086
    "$bin/kcast" $command --help </dev/null | page "kcast-${command// /-}" "$(link kcast)"
done <<<"$commands"
"$bin/kcastd" --help | page kcastd "$(link kcast)
$(link kcast-exec)"
"$bin/kcast-worker" --help | page kcast-worker "$(link kcast)"
"$libexec/kcast-exec" --help | page kcast-exec "$(link kcastd)"
