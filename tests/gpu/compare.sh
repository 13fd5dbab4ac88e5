#!/usr/bin/env bash
# Searches with and without a surrogate, live, with the same device time and the same seeds:
#   tests/gpu/compare.sh build/kernelcast.tar.xz
# Every search has a daemon and a worker to itself, both without a past, so that nobody profits from what another one measured; the
# GPUs of the host, or those in KCAST_COMPARE_GPUS ("0 2"), take searches in turn. KCAST_COMPARE (problems), KCAST_ARMS (policy/strategy),
# KCAST_SEEDS, KCAST_BUDGET; after KCAST_COMPARE_SECONDS no search begins any more. Leaves compare.jsonl, one line per search, and the
# run files in $OUT, or in build/gpu when that is not set, and prints the lines last; scripts/compare-table.py makes a table of them.
set -u
. "$(dirname "$0")/../support/until.sh"
cd "$(dirname "$0")/../.."
bundle=$1
out=${OUT:-build/gpu}
mkdir -p "$out"
work=$(mktemp -d)
tar -C "$work" -xJf "$bundle" || exit 1
bin=$work/kernelcast/bin
problems=$work/kernelcast/share/kernelcast/problems/cuda
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$work"' EXIT

one() { # gpu problem policy strategy seed
    local gpu=$1 problem=$2 name=$2-$3-$4-$5 pool=tcp://127.0.0.1:$((7500 + $1)) worker=tcp://127.0.0.1:$((7600 + $1)) daemon forecaster
    "$bin/kcastd" --devices "cuda:$gpu" --listen "$pool" --compile-jobs "$cores" --state "$work/daemon-$name" >"$work/$name.log" 2>&1 &
    daemon=$!
    "$bin/kcast-worker" --listen "$worker" --state "$work/worker-$name" >>"$work/$name.log" 2>&1 &
    forecaster=$!
    within 30 "$bin/kcast" status --pool "$pool" --worker "$worker" >/dev/null 2>&1
    "$bin/kcast" search "$problems/$problem" --pool "$pool" --worker "$worker" --policy "$3" --strategy "$4" --seed "$5" --budget "$KCAST_BUDGET" \
        --candidates 0 --quiet --run "$work/$name.run" >"$work/$name.txt" 2>&1 || { echo "$name failed"; tail -n 3 "$work/$name.txt" "$work/$name.log"; }
    kill "$daemon" "$forecaster"
    wait "$daemon" "$forecaster"
    echo "{\"problem\":\"$problem\",\"arm\":\"$3/$4\",\"seed\":$5,\"report\":$("$bin/kcast" report "$work/$name.run" --json)}" >"$work/$name.json"
    rm -rf "$work/daemon-$name" "$work/worker-$name"
}

export KCAST_BUDGET=${KCAST_BUDGET:-10s}
gpus=$(nvidia-smi --list-gpus | wc -l)
cores=$(($(nproc) / gpus - 1))
for seed in ${KCAST_SEEDS:-1 2 3 4 5}; do
    for problem in ${KCAST_COMPARE:-sgemm attention conv3x3}; do
        for arm in ${KCAST_ARMS:-rank/greedy threshold/greedy budget/greedy all/greedy all/best-of-n}; do echo "$problem ${arm%/*} ${arm#*/} $seed"; done
    done
done >"$work/list"
mkfifo "$work/fifo"
exec 3<>"$work/fifo"
for gpu in ${KCAST_COMPARE_GPUS:-$(seq 0 $((gpus - 1)))}; do echo "$gpu" >&3; done
while read -r task <&4; do
    read -r gpu <&3
    [ "$SECONDS" -lt "${KCAST_COMPARE_SECONDS:-450}" ] || { echo "no time is left for $task"; break; }
    # shellcheck disable=SC2086
    { one "$gpu" $task; echo "$gpu" >&3; } &
    tasks+=($!)
done 4<"$work/list"
wait "${tasks[@]}"
cat "$work"/*.json >"$out/compare.jsonl"
tar -C "$work" -cf - $(cd "$work" && ls ./*.run) | xz -T0 -4 | split -b 15M - "$out/runs.tar.xz."
cut -c 1-600 "$out/compare.jsonl" | head -n 3
wc -l "$out/compare.jsonl"
