#!/usr/bin/env bash
# Budgets as a person meets them: a search that stops because its budget is used up, goes on when it was raised, and what the
# commands show of it.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
dir=$(mktemp -d)
daemon=
cleanup() {
    [ -z "$daemon" ] || kill -9 "$daemon" 2>/dev/null || :
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 5 "$dir"/*.log 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"

try_sandbox
serve() { # OPTION… : the daemon; sets $daemon and $url
    start kcastd kcastd --listen tcp://127.0.0.1:0 --devices cpu:1 --sandbox "$sandbox" --state "$dir/state" "$@"
    daemon=$started_pid url=$started_url
}
serve
kcast() { "$bin/kcast" --pool "$url" --no-worker -q "$@"; }

# ---- a search stops where its budget does, with the sentence and its exit code, and keeps what it knows ----
status=0
kcast search "$hill" --run "$dir/a.run" --policy all --candidates 40 --seed 1 --hard-budget 1us --weight 2 >"$dir/out" 2>"$dir/err" || status=$?
[ $status -eq 11 ] || die "the search ended with $status: $(cat "$dir/err")"
grep -q 'BUDGET: search hill-' "$dir/err" || die "no sentence: $(cat "$dir/err")"
measured=$(kcast export "$dir/a.run" --events | grep -c '"measured"' || :)
name=$(kcast budget | sed -n 's/^\(local\/hill-[^ ]*\) .*/\1/p')
[ -n "$name" ] || die "kcast budget shows no search: $(kcast budget)"
kcast budget --json | grep -q '"budget_seconds":[0-9]' || die "kcast budget --json: $(kcast budget --json)"

# Nothing has changed: it stops again at once, and has measured no more.
status=0
kcast resume "$dir/a.run" >"$dir/out" 2>"$dir/err" || status=$?
[ $status -eq 11 ] || die "the resumed search ended with $status: $(cat "$dir/err")"
[ "$(kcast export "$dir/a.run" --events | grep -c '"measured"' || :)" -eq "$measured" ] || die "it measured without a budget"

# ---- raised, it goes on to its end ----
kcast budget set "$name" none --weight 3 | grep -q 'weight 3' || die "kcast budget set does not show the weight"
kcast resume "$dir/a.run" >"$dir/out" 2>"$dir/err" || die "the search does not go on: $(cat "$dir/err")"
grep -q 'considered  40' "$dir/out" || die "the search ended early: $(cat "$dir/out")"

# ---- a tenant without a budget left measures nothing; one that begins to count anew does ----
kcast budget set local 0.000001 >/dev/null
status=0
kcast measure --fresh "$hill" "$hill/baseline.c" >"$dir/out" 2>"$dir/err" || status=$?
[ $status -eq 11 ] || die "measuring without a budget ended with $status: $(cat "$dir/err")"
grep -q 'BUDGET: tenant local' "$dir/err" || die "no sentence: $(cat "$dir/err")"
kcast budget set local 1000 --reset >/dev/null
kcast measure --fresh "$hill" "$hill/baseline.c" >/dev/null

# ---- more than the daemon takes of one search: it says when to come again, and kcast does ----
kill "$daemon"
wait "$daemon" || die "kcastd ended badly"
serve --queue-max 3
kcast budget | grep -q '^local .* of 1000 device-seconds' || die "the tenant's budget did not survive: $(kcast budget)"
for i in 1 2 3 4 5; do { cat "$hill/baseline.c"; echo "// $i"; } >"$dir/$i.c"; done
kcast measure "$hill" "$dir"/[1-5].c >"$dir/out" 2>"$dir/err" || die "measuring five: $(cat "$dir/err")"
[ "$(wc -l <"$dir/out")" -eq 5 ] || die "measuring five gave $(cat "$dir/out")"
grep -q 'submit-refused .*code=busy' "$dir/kcastd.log" || die "the daemon took all five at once"

# ---- words that make no sense ----
for words in "set" "set local" "set local much" "set local 5 --weight 200" "show"; do
    status=0
    # shellcheck disable=SC2086
    kcast budget $words >"$dir/out" 2>"$dir/err" || status=$?
    [ $status -eq 2 ] || die "kcast budget $words ended with $status: $(cat "$dir/err")"
done
kcast status --json | grep -q '"shares":\[\]' || die "kcast status --json has no shares"
