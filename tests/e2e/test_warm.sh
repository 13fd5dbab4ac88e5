#!/usr/bin/env bash
# Searches that begin with what was measured elsewhere: a space file, and what the worker has learnt of another problem with the
# same parameters. Killed and resumed they begin alike; what they cannot begin with is said, and leaves no run file.
set -eu
bin=${KCAST_BIN:-build/debug/bin} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
dir=$(mktemp -d)
daemon= worker=
cleanup() {
    for pid in $daemon $worker; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 5 "$dir"/*.log "$dir/err" 2>/dev/null || :; exit 1; }
. "$(dirname "$0")/programs.sh"

names() { "$bin/kcast" export "$1" | sed -n 's/.*"name":"\(A=[^"]*\)","par.*/\1/p'; } # of a run or a space, in order
# Candidates of the space that have a speedup, each behind it, the best first. Some have the same object and the same speedup.
ranking() { "$bin/kcast" export "$1" | sed -n 's/.*"name":"\(A=[^"]*\)".*"log2_speedup":\(-*[0-9.e-]*\),.*/\2 \1/p' | sort -rg; }
# NAME… : whether one of these candidates is as fast there as the one in this line of the ranking.
as_fast_as() {
    local line
    line=$("$1" -n 1 "$dir/ranking")
    awk -v value="${line%% *}" '$1 == value' "$dir/ranking" | cut -d' ' -f2- >"$dir/equal"
    shift
    printf '%s\n' "$@" | grep -qxFf "$dir/equal"
}
# The first ten candidates of a run are configurations that this list has.
first_are_of() {
    names "$1" | head -n 10 >"$dir/first"
    [ "$(wc -l <"$dir/first")" -eq 10 ] || die "$1 has only $(cat "$dir/first")"
    [ -z "$(grep -vxFf "$2" "$dir/first")" ] || die "$1 begins with $(cat "$dir/first"), of which nothing was known of $(grep -vxFf "$2" "$dir/first")"
}

try_sandbox
start kcast-worker worker --listen=tcp://127.0.0.1:0 --state="$dir/worker"
worker=$started_pid worker_url=$started_url
start kcastd daemon --listen="tcp://$own_host:0" --state="$dir/daemon" --sandbox="$sandbox"
daemon=$started_pid daemon_url=$started_url
search() { "$bin/kcast" --pool="$daemon_url" --worker="$worker_url" -q search "$@" --batch 4 --seed 3 2>"$dir/err"; }
refused() { # CODE SENTENCE ARGUMENT… : no search begins, and this is said
    local code=$1 sentence=$2 status=0
    shift 2
    search "$hill" --run "$dir/none.run" "$@" >/dev/null || status=$?
    [ $status -eq "$code" ] && grep -qF "$sentence" "$dir/err" || die "$* ended with $status and said $(cat "$dir/err")"
    [ ! -e "$dir/none.run" ] || die "$* has left a run file"
}

# Nobody knows anything yet.
refused 3 'the worker knows no other device or problem with the parameters of this search' --warm worker

# What is known: a search of the same template for longer arrays, which is another problem.
mkdir "$dir/longer" && cp -r "$hill" "$dir/longer/" && sed -i 's/"N": 4096/"N": 8192/' "$dir/longer/hill/problem.json"
search "$dir/longer/hill" --run "$dir/known.run" --candidates 30 --policy all >/dev/null || die 'the first search'
"$bin/kcast" export "$dir/known.run" --format space -q 2>"$dir/err" || die 'the first search has no space'
ranking "$dir/known.space" >"$dir/ranking"
cut -d' ' -f2- "$dir/ranking" >"$dir/ranked"
[ "$(wc -l <"$dir/ranking")" -ge 10 ] || die "too few correct candidates: $(cat "$dir/ranking")"

# From the space: the best ones there and those at equal distances in its ranking, in turn.
search "$hill" --run "$dir/space.run" --candidates 14 --warm "$dir/known.space" >/dev/null || die 'a search that begins with a space'
first_are_of "$dir/space.run" "$dir/ranked"
as_fast_as head "$(head -n 1 "$dir/first")" || die "it begins with $(head -n 1 "$dir/first") and not with the best, $(head -n 1 "$dir/ranking")"
mapfile -t first <"$dir/first"
as_fast_as tail "${first[@]}" || die "the worst one is not among those to be tried, ${first[*]}"
"$bin/kcast" export "$dir/space.run" --events | sed -n 1p | grep -q '"warm":"[0-9a-f]\{64\}"' || die 'the run file does not have what it began with'

# A space is not needed any more to go on; what was killed begins with the same candidates.
if [ "${KCAST_VARIANT:-debug}" != release ]; then # which has no KCAST_DIE_AT
    cp "$dir/known.space" "$dir/gone.space"
    status=0
    KCAST_DIE_AT=event:12 search "$hill" --run "$dir/killed.run" --candidates 14 --warm "$dir/gone.space" >/dev/null 2>&1 || status=$?
    [ $status -eq 137 ] || die "the search was to be killed and ended with $status"
    rm "$dir/gone.space"
    "$bin/kcast" --pool="$daemon_url" --worker="$worker_url" -q resume "$dir/killed.run" >/dev/null 2>"$dir/err" || die 'resume'
    [ "$(names "$dir/killed.run" | head -n 10)" = "$(names "$dir/space.run" | head -n 10)" ] ||
        die "killed and resumed it begins with $(names "$dir/killed.run" | head -n 10)"
fi

# From the worker, which knows the other problem by what it was told; alone and beside a space.
names "$dir/known.run" | sort -u >"$dir/told"
search "$hill" --run "$dir/worker.run" --candidates 14 --warm worker >/dev/null || die 'a search that begins with what the worker knows'
first_are_of "$dir/worker.run" "$dir/told"
search "$hill" --run "$dir/mixed.run" --candidates 14 --warm "worker,$dir/known.space" >/dev/null || die 'a search that begins with both'
first_are_of "$dir/mixed.run" "$dir/told"
as_fast_as head "$(head -n 1 "$dir/first")" || die 'beside a space the worker counts first'

# It is the worker's state that knows it: one that was started again does, too.
kill -9 "$worker" && wait "$worker" 2>/dev/null || : # its state is free when it is gone
start kcast-worker again --listen=tcp://127.0.0.1:0 --state="$dir/worker"
worker=$started_pid worker_url=$started_url
search "$hill" --run "$dir/again.run" --candidates 14 --warm worker >/dev/null || die 'a worker that was started again'
[ "$(names "$dir/again.run" | head -n 10)" = "$(names "$dir/worker.run" | head -n 10)" ] || die 'it knows something else'

refused 3 "$dir/none.space" --warm "$dir/none.space"
printf '%s\n' '{"device_name": "NVIDIA A100", "kernel_name": "add", "tune_params_keys": ["block"], "tune_params": {"block": [32, 64]}, "cache": {' \
    '"32": {"block": 32, "time": 4.0}, "64": {"block": 64, "time": 1.0},' >"$dir/add.json"
"$bin/kcast" import kernel-tuner "$dir/add.json" --baseline block=32 -q 2>"$dir/err" || die 'no space of other parameters'
refused 3 'has no candidate with the parameters of a point of this search' --warm "$dir/add.space"
"$bin/kcast" --pool="$daemon_url" --no-worker -q search "$hill" --run "$dir/none.run" --warm worker >/dev/null 2>"$dir/err" &&
    die 'it begins with a worker that was not to be asked'
grep -q -- '--warm worker: --no-worker was given' "$dir/err" && [ ! -e "$dir/none.run" ] || die "without a worker it says $(cat "$dir/err")"
