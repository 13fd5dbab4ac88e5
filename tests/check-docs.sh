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

# Relative links of all documents.
while IFS=: read -r file link; do
    target=${link%%#*}
    [ -z "$target" ] || [ -e "$(dirname "$file")/$target" ] || complain "$file links to $link, which does not exist"
done < <(grep -noE '\]\([^)# ]+[^) ]*\)' README.md docs/*.md problems/*/*/README.md | sed -E 's/^([^:]+):[0-9]+:\]\((.*)\)$/\1:\2/' | grep -v ':https\?:')

# Targets and folders that README and the development guide name.
for target in $(grep -ohE '`make( VARIANT=[a-z]+)? [a-z][a-z-]*' README.md docs/*.md | sed -E 's/.* //' | sort -u); do
    grep -qE "^(\.PHONY:.* )?$target( |:|\$)" Makefile || grep -qE "^$target:" Makefile || complain "documents name \`make $target\`, which the Makefile does not have"
done
for path in $(grep -ohE '`(common|proto|contract|net|daemon|exec|worker|client|replay|tests|tools|problems|docs)/[A-Za-z0-9_./-]+`' README.md docs/*.md | tr -d '`' | grep -vE 'NAME|NNN' | sort -u); do
    [ -e "$path" ] || complain "documents name $path, which does not exist"
done

# Every row of the failures has tests, and they exist: `e2e/test_x.sh`, or `daemon/test_x: function_in_it`.
while IFS= read -r row; do
    tests=$(grep -oE '`[a-z0-9]+/test_[^`]*`' <<<"$row" | tr -d '`') || complain "docs/failures.md has a row without a test: ${row:0:60}"
    while IFS= read -r name; do
        file=tests/${name%%:*} function=${name#*: }
        case $file in
        *.sh) [ -e "$file" ] || complain "docs/failures.md names $file, which does not exist" ;;
        *) grep -qsE "^(static )?(void|int) $function\(" "$file.c" || complain "docs/failures.md names $name, which does not exist" ;;
        esac
    done <<<"$tests"
done < <(sed -n '/^| .* | tests |$/,/^$/p' docs/failures.md | grep '^| ' | tail -n +3)

# Every program's version is the one of the source.
version=$(sed -n 's/#define KCAST_VERSION "\(.*\)"/\1/p' common/version.h)
for program in kcast kcastd kcast-worker kcast-exec kcast-replay; do
    "$bin/$program" --version | grep -q "$version" || complain "$program --version does not say $version"
done
exit $bad
