#!/usr/bin/env bash
# The example of docs/generators.md proposes candidates of a real search, and all the parts of its request are as that page says.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() { echo "FAILED: $*"; exit 1; }
. "$(dirname "$0")/programs.sh"
command -v python3 >/dev/null || { echo 'skipped because there is no python3, in which the example is written'; exit 77; }

try_sandbox
example=$root/docs/examples/propose.py
expect 0 '' "$bin/kcast" --local --no-worker --sandbox="$sandbox" --json search "$hill" --run "$dir/a.run" --candidates 3 --batch 3 \
    --exec-jobs 1 -g "exec:tee $dir/request | $example" --seed 1
grep -q '"considered":3' "$dir/out" || die "not three candidates: $(cat "$dir/out")"
"$bin/kcast" export "$dir/a.run" --events >"$dir/events"
[ "$(grep -c 'unrolled [0-9]* times' "$dir/events")" -ge 3 ] || die "the candidates are not the example's"
! pgrep -f "$dir/request" >/dev/null || die 'a process is left'

# What the page names is in the request.
python3 - "$dir/request" "$root/docs/generators.md" <<'END' || die 'the request is not as docs/generators.md says'
import json, re, sys
request = json.loads(open(sys.argv[1]).readline())
page = open(sys.argv[2]).read()
table = page[page.index("| key |"):]
named = set(re.findall(r"^\| `(\w+)` \|", table[:table.index("\n\n")], re.M))
sys.exit(0 if named == set(request) else f"{named ^ set(request)}")
END
[ "$(wc -l <"$example")" -le 20 ] || die 'the example has more than 20 lines'
