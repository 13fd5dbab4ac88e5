# Read by tests whose worker asks a language-model endpoint (tests/support/fake_endpoint). Sets $bin, $build, $root, $hill (a problem),
# $dir (a folder of its own) and $KCAST_LLM_KEY; ends what $daemon, $worker, $endpoint, $writer and $own hold, and removes $dir, at the end.
. "$(dirname "${BASH_SOURCE[0]}")/../../support/until.sh"
bin=${KCAST_BIN:-build/debug/bin} build=${KCAST_BUILD:-build/debug} root=${KCAST_ROOT:-.}
hill=$root/tests/data/client/hill
dir=$(mktemp -d)
daemon= worker= endpoint= writer= own=
cleanup() {
    for pid in $daemon $worker $endpoint $writer $own; do kill -9 "$pid" 2>/dev/null || :; done
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 8 "$dir"/*.log 2>/dev/null || :; exit 1; }
export KCAST_LLM_KEY=secret-4711-never-to-be-seen

# start NAME COMMAND…: until its log (stderr) or output has a url; sets $started and $url.
start() {
    local name=$1
    shift
    rm -f "$dir/$name.out" "$dir/$name.log" # of one that had the name before
    : >"$dir/$name.out" >"$dir/$name.log"
    "$@" >>"$dir/$name.out" 2>>"$dir/$name.log" &
    started=$!
    within 60 ready "$name" || die "$name did not start"
}
ready() {
    url=$(cat "$dir/$1.out" "$dir/$1.log" | grep -oE '(tcp|http)://127\.0\.0\.1:[0-9]+(/v1)?' | head -1) || :
    [ -n "$url" ] && grep -qE 'ready|listening|http' "$dir/$1.out" "$dir/$1.log" && return
    kill -0 $started 2>/dev/null || die "$1 ended: $(cat "$dir/$1.log")"
    return 1
}
# A daemon with one core; sets $daemon and $pool, and $sandbox to off where there can be none.
start_daemon() {
    sandbox=on
    "$bin/kcast" --local -q measure "$hill" "$hill/baseline.c" >/dev/null 2>&1 || sandbox=off
    start kcastd "$bin/kcastd" --devices cpu:1 --state "$dir/state" --listen tcp://127.0.0.1:0 --sandbox $sandbox
    daemon=$started pool=$url
}
# The same with the fake executor, so that what candidates are worth does not depend on this machine; sets $bin, too.
start_made_up_daemon() {
    mkdir "$dir/bin"
    cp "$bin"/{kcastd,kcast,kcast-worker} "$dir/bin/"
    cp "$build/tests/support/fake_exec" "$dir/bin/kcast-exec"
    bin=$dir/bin
    start kcastd "$bin/kcastd" --devices cpu:1 --state "$dir/state" --listen tcp://127.0.0.1:0 --sandbox off
    daemon=$started pool=$url
}
# end_process NAME : by its variable, which is empty afterwards; the process ended well.
end_process() {
    kill "${!1}"
    wait "${!1}" || die "the $1 ended with $?"
    printf -v "$1" %s ''
}
field() { tail -n 1 "$dir/$2.json" | grep -o "\"$1\":[^,}]*" | head -n 1 | cut -d : -f 2; } # the first of this name in the summary
# The key is in no file.
key_is_nowhere() { ! grep -rl "secret-4711" "$dir" || die "the key is in the files above"; }
