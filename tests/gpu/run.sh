#!/usr/bin/env bash
# Everything that needs a GPU, in one call, from a bundle:
#   tests/gpu/run.sh build/kernelcast.tar.xz [STEP…]
# Steps: probe problems battery recorded faults bench stream agree search (default: these), originals (replay against the original in its own
# process; tests/gpu/originals.py has its variables), routing (forecasts of Triton kernels before they are compiled; variables in
# tests/gpu/routing.sh), written (Python from a language model's words to its verdicts) and pool, whose parts and their times are chosen by the variables at the top of
# tests/gpu/pool.sh. KCAST_DEVICES: of the daemon, default cuda, all GPUs. KCAST_STREAM: problems of the step
# stream. KCAST_AGREE: agree.txt of another time, to compare with. KCAST_SEED: of the battery's order, to see a run again. Keeps logs,
# reports and run files in $OUT, or in build/gpu when that is not set. Prints a short table last.
set -u
. "$(dirname "$0")/../support/until.sh"
cd "$(dirname "$0")/../.."
bundle=$1
shift
[ $# -gt 0 ] || set -- probe battery recorded faults problems bench stream agree search
out=${OUT:-build/gpu}
mkdir -p "$out"
work=$(mktemp -d)
tar -C "$work" -xJf "$bundle" || exit 1
bin=$work/kernelcast/bin
export PATH=$bin:$PATH KCAST_PROBLEMS=$work/kernelcast/share/kernelcast/problems/cuda
daemon=
stop() { [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; }; }
trap 'stop; rm -rf "$work"' EXIT
table=()
note() { table+=("$(printf '%-10s %-6s %5s s  %s' "$1" "$2" "$3" "$4")"); }

# step NAME COMMAND…: runs it with its output in $out/NAME.log; the last line goes into the table
step() {
    local name=$1 start=$SECONDS status=ok
    shift
    echo "== $name"
    "$@" >"$out/$name.log" 2>&1 || status="rc=$?"
    tail -n "${KCAST_TAIL:-60}" "$out/$name.log"
    note "$name" "$status" $((SECONDS - start)) "$(tail -n 1 "$out/$name.log" | cut -c 1-100)"
}

start_daemon() {
    "$bin/kcastd" --devices "${KCAST_DEVICES:-cuda}" --state "$work/state" >"$out/kcastd.log" 2>&1 &
    daemon=$!
    within 30 answers_or_ended
    cat "$out/status.log"
}
answers_or_ended() { "$bin/kcast" status >"$out/status.log" 2>&1 || ! kill -0 "$daemon" 2>/dev/null; }

has_worker() { ! "$bin/kcast" status 2>&1 | grep -q '^worker: none'; }
search_all() {
    "$bin/kcast-worker" --state "$work/worker" >"$out/worker.log" 2>&1 &
    local worker=$! failed=0
    within 15 has_worker
    for problem in ${KCAST_SEARCH:-softmax transpose sgemm scan rmsnorm_residual}; do
        "$bin/kcast" search "$KCAST_PROBLEMS/$problem" --run "$work/$problem.run" --candidates "${KCAST_CANDIDATES:-150}" --seed 1 || failed=1
        "$bin/kcast" report "$work/$problem.run" -o "$out/$problem.html" || failed=1
    done
    kill $worker
    wait $worker 2>/dev/null
    return $failed
}

# Four at a time; the checks say why, the last line how many.
check_one() {
    if "$bin/kcast" problem check "$1" >"$work/check-$(basename "$1")" 2>&1; then echo "admitted $(basename "$1")"; else
        echo "REFUSED $(basename "$1")"
        grep -vE '^  ok  ' "$work/check-$(basename "$1")" | cut -c 1-200
    fi
}
check_problems() {
    export -f check_one
    export bin work
    for name in ${KCAST_CHECK:-$(ls "$KCAST_PROBLEMS")}; do echo "$KCAST_PROBLEMS/$name"; done | xargs -P 4 -I{} bash -c 'check_one {}' | tee "$work/checked"
    echo "$(grep -c ^admitted "$work/checked") passed, $(grep -c ^REFUSED "$work/checked") failed"
    ! grep -q ^REFUSED "$work/checked"
}

"$bin/kcast-exec" cuda-probe 2>&1 | tr -c '[:print:]\n' ' ' | head -c 600
echo
start_daemon
for name in "$@"; do
    case $name in
    probe) step probe "$bin/kcast" status --json ;;
    battery) step battery "$bin/battery" "$work/kernelcast/share/kernelcast/cheats" ${KCAST_SEED:+"$KCAST_SEED"} ;;
    problems) KCAST_STEP_SECONDS=${KCAST_PROBLEM_SECONDS:-400} step problems check_problems ;;
    bench) step bench "$bin/bench_gpu" "${KCAST_RUNS:-100}" ${KCAST_KERNELS:-} ;;
    stream) step stream "$bin/stream" "$KCAST_PROBLEMS" "${KCAST_STREAM_POINTS:-3}" 24 3 ${KCAST_STREAM:-} ;;
    agree) step agree "$bin/agree" "$KCAST_PROBLEMS" "${KCAST_POINTS:-6}" "$out/agree.txt" ${KCAST_AGREE:+"$KCAST_AGREE"} ;;
    search) step search search_all ;;
    faults) # has a daemon of its own, which it kills
        stop
        step faults tests/gpu/faults.sh "$bin" "$work"
        cp "$work/faults/kcastd.log" "$out/faults-kcastd.log"
        start_daemon ;;
    recorded) # has a daemon of its own
        stop
        step recorded tests/gpu/recorded.sh "$bin" "$work" "$KCAST_PROBLEMS"
        cp "$work/recorded/kcastd.log" "$out/recorded-kcastd.log"
        start_daemon ;;
    routing) # has a daemon of its own
        stop
        step routing tests/gpu/routing.sh "$bin" "$work" "$KCAST_PROBLEMS"
        start_daemon ;;
    written) # likewise
        stop
        step written tests/gpu/written.sh "$bin" "$work"
        cp "$work"/written/*.log "$out"
        start_daemon ;;
    originals) # needs the GPU for itself
        stop
        step originals python3 tests/gpu/originals.py "$bin/originals" "$work/originals" "$out"
        start_daemon ;;
    pool) # has daemons of its own
        stop
        step pool tests/gpu/pool.sh "$bin" "$work"
        cat "$work/pool/earlier.log" "$work/pool/kcastd.log" >"$out/pool-kcastd.log" 2>/dev/null
        for run in "$work"/pool/*.run; do [ ! -f "$run" ] || cp "$run" "$work/pool-$(basename "$run")"; done
        start_daemon ;;
    *) echo "run.sh: unknown step $name"; exit 2 ;;
    esac
done
tail -n 5 "$out/kcastd.log"
if ls "$work"/*.run >/dev/null 2>&1; then # run files and reports in one piece
    cp "$work"/*.run "$out/" && tar -C "$out" -cJf "$out/runs.tar.xz" $(cd "$out" && ls ./*.run ./*.html) && rm -f "$out"/*.run "$out"/*.html
fi
echo "-- $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1), $(date -u +%F)"
printf '%s\n' "${table[@]}"
