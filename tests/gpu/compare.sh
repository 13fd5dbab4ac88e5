#!/usr/bin/env bash
# Searches with and without a surrogate, live, with the same device time and the same seeds:
#   tests/gpu/compare.sh build/kernelcast.tar.xz
# Every GPU of the host, or each in KCAST_COMPARE_GPUS ("0 2"), has a daemon, which serves KCAST_COMPARE_AT_ONCE searches at a time (1).
# Every search has a worker of its own without a past, and its problem ends in a number of blanks of its own, so that nothing that the
# daemon keeps of other searches answers it. KCAST_COMPARE (problems), KCAST_ARMS (policy/strategy), KCAST_SEEDS, KCAST_BUDGET;
# KCAST_COMPARE_KNOWN ("sgemm:2.74 topk:1.99"), speedups that are the best known: a search ends when it is within 2 % of its problem's.
# After KCAST_COMPARE_SECONDS no search begins any more. Leaves compare.jsonl, one line per search, and the run files in $OUT, or in
# build/gpu when that is not set, and prints the lines last; scripts/compare-table.py makes tables of them.
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
pool_of() { echo "tcp://127.0.0.1:$((7500 + $1))"; }
known_of() { tr ' ' '\n' <<<"${KCAST_COMPARE_KNOWN:-}" | sed -n "s/^$1://p"; }

one() { # place gpu problem policy strategy seed
    local problem=$3 name=$3-$4-$5-$6 pool worker=tcp://127.0.0.1:$((7600 + $1)) forecaster known target=()
    pool=$(pool_of "$2")
    mkdir "$work/$name"
    cp -r "$problems/$problem" "$work/$name"
    printf '%*s\n' "$7" '' >>"$work/$name/$problem/problem.json"
    known=$(known_of "$problem")
    [ -z "$known" ] || target=(--target "$(awk -v x="$known" 'BEGIN { printf "%.6f", 0.98 * x }')")
    "$bin/kcast-worker" --listen "$worker" --state "$work/$name/worker" >>"$work/$name.log" 2>&1 &
    forecaster=$!
    within 30 "$bin/kcast" status --pool "$pool" --worker "$worker" >/dev/null 2>&1
    "$bin/kcast" search "$work/$name/$problem" --pool "$pool" --worker "$worker" --policy "$4" --strategy "$5" --seed "$6" --budget "$KCAST_BUDGET" \
        ${target[@]+"${target[@]}"} --candidates 0 --quiet --run "$work/$name.run" >"$work/$name.txt" 2>&1 ||
        { echo "$name failed"; tail -n 3 "$work/$name.txt" "$work/$name.log"; }
    kill "$forecaster"
    wait "$forecaster"
    echo "{\"problem\":\"$problem\",\"arm\":\"$4/$5\",\"seed\":$6,\"at_once\":$at_once,\"known\":${known:-null},\"report\":$("$bin/kcast" report "$work/$name.run" --json)}" >"$work/$name.json"
    rm -rf "${work:?}/$name"
}

export KCAST_BUDGET=${KCAST_BUDGET:-10s}
at_once=${KCAST_COMPARE_AT_ONCE:-1}
gpus=${KCAST_COMPARE_GPUS:-$(seq 0 $(($(nvidia-smi --list-gpus | wc -l) - 1)))}
cores=$(($(nproc) / $(wc -w <<<"$gpus") - 1))
for gpu in $gpus; do
    "$bin/kcastd" --devices "cuda:$gpu" --listen "$(pool_of "$gpu")" --compile-jobs "$cores" --state "$work/daemon-$gpu" >"$work/daemon-$gpu.log" 2>&1 &
    daemons+=($!)
done
for gpu in $gpus; do within 60 "$bin/kcast" status --no-worker --pool "$(pool_of "$gpu")" >/dev/null 2>&1; done
for seed in ${KCAST_SEEDS:-1 2 3 4 5}; do
    for problem in ${KCAST_COMPARE:-sgemm attention conv3x3}; do
        for arm in ${KCAST_ARMS:-rank/greedy threshold/greedy budget/greedy all/greedy all/best-of-n}; do echo "$problem ${arm%/*} ${arm#*/} $seed"; done
    done
done >"$work/list"
mkfifo "$work/fifo"
exec 3<>"$work/fifo"
place=0
for gpu in $gpus; do for _ in $(seq "$at_once"); do echo "$((place++)) $gpu" >&3; done; done
number=1
while read -r task <&4; do
    read -r where <&3
    [ "$SECONDS" -lt "${KCAST_COMPARE_SECONDS:-450}" ] || { echo "no time is left for $task"; break; }
    # shellcheck disable=SC2086
    { one $where $task $number; echo "$where" >&3; } &
    number=$((number + 1))
    tasks+=($!)
done 4<"$work/list"
wait "${tasks[@]}"
kill "${daemons[@]}"
wait "${daemons[@]}"
cat "$work"/*.json >"$out/compare.jsonl"
tar -C "$work" -cf - $(cd "$work" && ls ./*.run ./daemon-*.log) | xz -T0 -4 | split -b 15M - "$out/runs.tar.xz."
cut -c 1-600 "$out/compare.jsonl" | head -n 3
wc -l "$out/compare.jsonl"
