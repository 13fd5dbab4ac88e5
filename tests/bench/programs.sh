# Read by benchmarks that start programs of their own. Wants $bin; sets $dir, a folder for logs and state, and ends with what was started.
dir=$(mktemp -d) pids=()
cleanup() {
    for pid in "${pids[@]}"; do kill -9 "$pid" || :; done 2>/dev/null
    wait 2>/dev/null
    rm -rf "$dir"
}
trap cleanup EXIT
die() { echo "FAILED: $*"; tail -n 5 "$dir"/*.log 2>/dev/null || :; exit 1; }
. tests/e2e/programs.sh
[ -x "$bin/kcastd" ] || die "there is no $bin/kcastd: make VARIANT=release -j2"

# A kcastd with these options, the first of $pids, and a kcast-worker, the second; sets $pool and $worker to where they listen.
start_services() {
    start kcastd kcastd --state="$dir/state" --listen=tcp://127.0.0.1:0 "$@"
    pids+=("$started_pid") pool=$started_url
    start kcast-worker worker --state="$dir/worker" --listen=tcp://127.0.0.1:0
    pids+=("$started_pid") worker=$started_url
}
