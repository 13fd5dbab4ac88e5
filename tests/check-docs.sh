#!/usr/bin/env bash
# The documents say what the code does: generated parts are as the generators print them, links lead somewhere, and names of
# files and make targets in the text exist.
set -eu
cd "$(dirname "$0")/.."
bin=${KCAST_BIN:-build/debug/bin}
bad=0
complain() { echo "$1"; bad=1; }

diff <(scripts/protocol-doc.sh) <(sed -n '/^<!-- Everything below is generated/,$p' docs/protocol.md) >/tmp/protocol.$$ 2>&1 ||
    { complain "docs/protocol.md is not what proto/*.def say; run scripts/protocol-doc.sh --write"; head -20 /tmp/protocol.$$; }
diff <(scripts/commands-doc.sh "$bin") docs/commands.md >/tmp/commands.$$ 2>&1 ||
    { complain "docs/commands.md is not what --help says; run scripts/commands-doc.sh $bin --write"; head -20 /tmp/commands.$$; }
rm -f /tmp/protocol.$$ /tmp/commands.$$

# All documents: those for users, those about the code, and the README of each room.
shopt -s nullglob
rooms=()
for readme in */README.md */*/README.md; do
    case $readme in build/* | docs/* | problems/*/*) ;; *) rooms+=("$readme") ;; esac
done
documents=(README.md CONTRIBUTING.md NEWS.md docs/*.md docs/*/*.md problems/*/*/README.md "${rooms[@]}")
top='e2e|examples|common|proto|contract|problem|net|daemon|exec|executor|cuda|worker|client|replay|tests|tools|scripts|problems|deploy|docs'

# Relative links, and the headings that they name.
anchors() { sed -nE 's/^#+ //p' "$1" | tr 'A-Z' 'a-z' | LC_ALL=C sed -E 's/[^a-z0-9 _-]//g; s/ /-/g'; }
while IFS=: read -r file link; do
    target=${link%%#*} anchor=
    [[ $link != *'#'* ]] || anchor=${link#*#}
    path=$(dirname "$file")/$target
    [ -n "$target" ] || path=$file
    [ -e "$path" ] || { complain "$file links to $link, which does not exist"; continue; }
    [[ -z $anchor || $path != *.md ]] || anchors "$path" | grep -qxF -- "$anchor" || complain "$file links to $link, which has no such heading"
done < <(grep -noE '\]\([^) ]+\)' "${documents[@]}" | sed -E 's/^([^:]+):[0-9]+:\]\((.*)\)$/\1:\2/' | grep -vE ':(https?|mailto):')

# Make targets, and files and folders in backticks. Names of tests may leave out tests/ and the ending.
while read -r target; do
    grep -qE "^(\.PHONY:.* )?$target( |:|\$)" Makefile || grep -qE "^$target:" Makefile || complain "documents name \`make $target\`, which the Makefile does not have"
done < <(grep -ohE '`make( VARIANT=[a-z]+)? [a-z][a-z_.-]*' "${documents[@]}" | sed -E 's/.* //' | sort -u)
while IFS=: read -r file path; do
    [ -e "$path" ] || [ -e "tests/$path" ] || [ -e "tests/$path.c" ] || complain "$file names $path, which does not exist"
done < <(grep -oHE "\`($top)/[A-Za-z0-9_./-]+\`" "${documents[@]}" | tr -d '`' | grep -vE 'NAME|NNN' | sort -u)

# In pages about the code also files outside backticks, such as in diagrams; and their lines are wrapped, but for tables.
pages=(docs/design.md docs/design/*.md docs/decisions/*.md)
while IFS=: read -r file path; do
    [ -e "$path" ] || complain "$file names $path, which does not exist"
done < <(grep -oHE "(^|[^A-Za-z0-9_./-])($top)/[A-Za-z0-9_./-]*\.(c|h|cu|def|sh|py|md)\b" "${pages[@]}" docs/glossary.md | sed -E "s/:[^A-Za-z0-9]?(($top)\/)/:\1/" | grep -v 'NNN' | sort -u)
while read -r hit; do complain "${hit%%:[^0-9]*}: longer than 100 columns"; done < <(LC_ALL=C.UTF-8 grep -nHE '^[^|].{100}' "${pages[@]}" || :)

# A top folder has a README of five lines: what is here, what it may include, where to begin.
for folder in ${top//|/ }; do
    [ "$folder" = docs ] || [ ! -d "$folder" ] || [ -e "$folder/README.md" ] || complain "$folder/README.md is missing"
done
for readme in "${rooms[@]}"; do
    [ "$(grep -cE '^- (Here|May include|Begin with): ' "$readme")" -eq 3 ] && [ "$(wc -l <"$readme")" -eq 5 ] || complain "$readme does not say in five lines what is here, what it may include and where to begin"
done

# A candidate's way has a limited number of stops; a word stands once in the glossary; the index of decisions is whole.
stops() { awk -v head="## $1" '$0 ~ "^## " {on = index($0, head) == 1} on && /^\| [0-9]+ \|/ {n++} END {print n + 0}' docs/design/way.md; }
way_files() { awk -v head="## $1" '$0 ~ "^## " {on = $0 == head} on && /^\| [0-9]+ \|/' docs/design/way.md | grep -oE '`[a-z/_]+\.[ch]`' | sort -u | wc -l; }
while IFS='|' read -r _ place told files _; do
    place=$(echo $place) told=${told// } files=${files// }
    [ "$(stops "$place") $(way_files "$place")" = "$(echo $told $files)" ] || complain "docs/design/way.md tells $told stops and $files files \"$place\", and lists $(stops "$place") and $(way_files "$place")"
done < <(grep -E '^\| In .* \| [0-9]+ \| [0-9]+ \|$' docs/design/way.md)
[ "$(grep -cE '^\| In .* \| [0-9]+ \| [0-9]+ \|$' docs/design/way.md)" -eq "$(grep -c '^## In ' docs/design/way.md)" ] || complain "docs/design/way.md does not say of each place how many stops and files it has"
while read -r most place; do
    count=$(stops "$place")
    [ "$count" -ge 1 ] && [ "$count" -le "$most" ] || complain "docs/design/way.md has $count stops \"$place\", 1 to $most are allowed"
done <<'END'
12 In the client
16 In the daemon
8 In the executor, on the CPU
8 In the executor, on a GPU
END
while read -r word; do complain "docs/glossary.md has $word twice"; done < <(sed -nE '/^\| word /,/^$/s/^\| ([^|]+) \|.*/\1/p' docs/glossary.md | sort -f | uniq -di)
for record in docs/decisions/[0-9]*.md; do
    grep -qF "](${record##*/})" docs/decisions/README.md || complain "docs/decisions/README.md has no row for ${record##*/}"
    lines=$(wc -l <"$record")
    [ "$lines" -ge 30 ] && [ "$lines" -le 80 ] || complain "$record has $lines lines, not 30 to 80"
    for part in 'Status:' '## Context' '## Decision' '## Consequences'; do
        grep -q "^$part" "$record" || complain "$record has no \"$part\""
    done
done

# Every row of the failures has tests, and they exist: `e2e/test_x.sh`, or `daemon/test_x: function_in_it`.
while IFS= read -r row; do
    tests=$(grep -oE '`[a-z0-9]+(/[a-z0-9]+)*/test_[^`]*`' <<<"$row" | tr -d '`') || complain "docs/failures.md has a row without a test: ${row:0:60}"
    while IFS= read -r name; do
        file=tests/${name%%:*} function=${name#*: }
        case $file in
        *.sh) [ -e "$file" ] || complain "docs/failures.md names $file, which does not exist" ;;
        *) grep -qsE "^(static )?(void|int) $function\(" "$file.c" || complain "docs/failures.md names $name, which does not exist" ;;
        esac
    done <<<"$tests"
done < <(sed -n '/^| .* | tests |$/,/^$/p' docs/failures.md | grep '^| ' | tail -n +3)

# Programs of tests that documents name have a source.
while IFS= read -r name; do
    [ -e "${name#build/debug/}.c" ] || complain "documents name $name, which does not exist"
done < <(grep -rohE --include='*.md' 'build/debug/tests/[a-z0-9_/]+' docs ./*.md | sort -u)

# Every program's version is the one of the source.
version=$(sed -n 's/#define KCAST_VERSION "\(.*\)"/\1/p' common/version.h)
for program in kcast kcastd kcast-worker kcast-exec kcast-replay; do
    "$bin/$program" --version | grep -q "$version" || complain "$program --version does not say $version"
done
exit $bad
