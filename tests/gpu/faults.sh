#!/usr/bin/env bash
# What goes wrong with a real GPU, injected: kernels that never end, errors that stick to a context, processes that are killed or
# stopped while they hold it, a daemon that is killed, and somebody else's process on it. After each the next job must have its
# verdict, and nothing of ours may be left on the GPU.
#   tests/gpu/faults.sh BIN WORK      programs of a bundle; a folder for state and logs. Last line: "N passed, N failed".
set -u
. "$(dirname "$0")/../support/until.sh"
bin=$1 work=$2/faults problem=tests/data/cuda/rowsum sealed=tests/gpu/sealed
url=tcp://127.0.0.1:7415
mkdir -p "$work"
passed=0 failed=0 daemon= holder=
stop() { [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; daemon=; }; }
trap 'stop; leaves' EXIT
kcast() { "$bin/kcast" --no-worker --pool $url -q "$@"; }
device() { kcast status 2>/dev/null | grep -E '^ *cuda0 '; }
ready() { device | grep -q ' ready'; }
start() {
    "$bin/kcastd" --listen $url --devices cuda:0 --state "$work/state" --exec-slack 8s >>"$work/kcastd.log" 2>&1 &
    daemon=$!
    within 30 ready || { echo "the daemon does not come up:"; tail -3 "$work/kcastd.log"; exit 1; }
}
ours() { pgrep -x kcast-exec; }
on_gpu() { nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null; }
memory() { nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader,nounits; }
check() { # NAME command…
    local name=$1 start=$SECONDS
    shift
    if "$@" >"$work/out" 2>&1; then passed=$((passed + 1)); echo "ok      $name ($((SECONDS - start)) s)"; else
        failed=$((failed + 1))
        echo "FAILED  $name ($((SECONDS - start)) s)"
        tail -8 "$work/out" | cut -c 1-300
    fi
}
verdict() { kcast measure --fresh $problem "$sealed/$1.cu" | tee -a "$work/verdicts" | grep -qiE "$2"; }
works() { verdict honest_warp 'faster|slower|equivalent|inconclusive'; }
lost() { grep -c 'job-lost' "$work/kcastd.log"; }

never_ends() { verdict crash_never_ends timeout && works; }
sticks() { verdict "$1" crash && works; }
# What holds the GPU is killed (or stopped) as soon as a job runs: the job is measured again, elsewhere or in a new process.
struck() {
    local before job
    before=$(lost)
    kcast measure --fresh --launches 512 $problem $sealed/honest_*.cu >"$work/struck" 2>&1 &
    job=$!
    within 20 eval 'kcast jobs 2>/dev/null | grep -q "running"' || { cat "$work/struck"; return 1; }
    for pid in $(pgrep -P $daemon -f 'cuda-measure'); do kill -"$1" "$pid"; done
    wait $job || { cat "$work/struck"; return 1; }
    [ "$(grep -ciE 'faster|slower|equivalent|inconclusive' "$work/struck")" -ge 6 ] || { cat "$work/struck"; return 1; }
    [ "$(lost)" -gt "$before" ] || { echo "no job was lost"; cat "$work/struck"; return 1; }
    works
}
# Everything that it had started goes with it, and what had been accepted is measured by its successor.
daemon_dies() {
    local job
    kcast measure --fresh --launches 512 $problem $sealed/honest_*.cu >"$work/dies" 2>&1 &
    job=$!
    within 20 eval 'kcast jobs 2>/dev/null | grep -q "running"' || return 1
    kill -9 $daemon
    wait $daemon 2>/dev/null
    within 5 eval '! ours' || { echo "left: $(ours)"; return 1; }
    start
    wait $job || { cat "$work/dies"; return 1; }
    [ "$(grep -ciE 'faster|slower|equivalent|inconclusive' "$work/dies")" -ge 6 ] || { cat "$work/dies"; return 1; }
    works
}
# A process of somebody else: no job begins while it is there; all do when it has gone. It ends with its input, a fifo that is held open.
holds_input() { { exec "$bin/kcast-exec" cuda-measure 0 >/dev/null 2>&1; } <"$work/hold"; }
leaves() { [ -z "$holder" ] || { kill -9 "$holder"; wait "$holder"; holder=; exec {hold}>&-; } 2>/dev/null; }
somebody_else() {
    local status=0
    rm -f "$work/hold"
    mkfifo "$work/hold" || return 1
    holds_input &
    holder=$!
    exec {hold}>"$work/hold"
    is_in_the_way || status=1
    leaves
    return $status
}
waits_or_ended() { kcast --json jobs 2>/dev/null | grep -q '"state":"ready"' || ! kill -0 "$1" 2>/dev/null; }
is_in_the_way() {
    local job began
    if ! within 20 eval 'device | grep -q suspect'; then
        device
        grep -o 'foreign[^"]*' "$work/kcastd.log" | tail -1
        return 1
    fi
    device
    kcast measure --fresh $problem $sealed/honest_warp.cu >"$work/else" 2>&1 &
    job=$!
    within 20 waits_or_ended $job || { kcast jobs; echo "its job does not get as far as to wait for the GPU"; return 1; }
    kill -0 $job 2>/dev/null || { echo "it was measured beside another program:"; cat "$work/else"; return 1; }
    began=$SECONDS
    leaves
    wait $job || { cat "$work/else"; return 1; }
    echo "measured $((SECONDS - began)) s after it had gone"
    ready
}
# Of ours, only what belongs to the daemon is on the GPU, and after its end nothing.
nothing_left() {
    stop
    within 5 eval '! ours' || { echo "left: $(ours)"; return 1; }
    [ -z "$(on_gpu)" ] || { echo "on the GPU: $(on_gpu)"; return 1; }
    within 10 eval '[ "$(memory)" -le $((base + 32)) ]' || { echo "$(memory) MiB in use, $base before"; return 1; }
}

base=$(memory)
start
check 'an honest candidate' works
check 'a kernel that never ends' never_ends
for kind in illegal_address misaligned trap assert; do check "an error that sticks: $kind" sticks crash_$kind; done
check 'the process that holds the GPU is killed' struck KILL
check 'the process that holds the GPU is stopped' struck STOP
check 'the daemon is killed' daemon_dies
check "somebody else's process on the GPU" somebody_else
check 'nothing is left' nothing_left
grep -E 'device-|job-lost|foreign' "$work/kcastd.log" | cut -c 1-220 | tail -12
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
