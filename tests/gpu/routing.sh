#!/usr/bin/env bash
# What forecasts are worth before Triton kernels are compiled: every kernel of three folders (triton_kernels.py) is measured once; then
# searches of the default policy, each with a worker that knows nothing yet, measure some of a folder, which the daemon answers from what it
# has measured. Prints for each folder how the best found compares with the best there is, and how forecasts made before compiling agree
# with the outcomes of the kernels that were chosen by them. Needs PyTorch and Triton.
#   tests/gpu/routing.sh BIN WORK PROBLEMS     programs of a bundle; a folder for state and logs
# Environment: KCAST_ROUTING_KERNELS in each folder (75), KCAST_ROUTING_MEASURED by each search (30), KCAST_ROUTING_SEEDS (20);
# KCAST_ROUTING_OTHER: another bundle, whose client and worker search with the same seeds, to compare with.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=$1 work=$2/routing problems=$3 here=$(dirname "$0") other=${KCAST_ROUTING_OTHER:-}
pool=tcp://127.0.0.1:7416 folders=(bf16_gemm softmax layernorm) daemon=
mkdir -p "$work"
stop() { [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; daemon=; }; }
trap stop EXIT
kcast() { "$bin/kcast" --no-worker --pool $pool -q "$@"; }
ready() { kcast status 2>/dev/null | grep -qE '^ *cuda0 .* ready'; }
"$bin/kcastd" --listen $pool --devices cuda:0 --state "$work/state" --compile-time 40s >"$work/kcastd.log" 2>&1 &
daemon=$!
within 30 ready || { echo "the daemon does not come up:"; tail -n 3 "$work/kcastd.log"; exit 1; }

python3 "$here/triton_kernels.py" "$work/kernels" "${KCAST_ROUTING_KERNELS:-75}"
start=$SECONDS clients=()
for folder in "${folders[@]}"; do
    kcast search "$problems/$folder" --generator "pool:$work/kernels/$folder" --policy all --candidates 0 --play-off 0 --run "$work/$folder-all.run" \
        >"$work/$folder-all.log" 2>&1 &
    clients+=($!)
done
wait "${clients[@]}"
echo "every kernel measured in $((SECONDS - start)) s"

if [ -n "$other" ]; then
    mkdir -p "$work/other"
    tar -C "$work/other" -xJf "$other" || exit 1
fi
# NAME FOLDER SEED PORT: one search, by these programs or the others, with a worker of its own
search() {
    local programs=$bin folder=$2 seed=$3 url=tcp://127.0.0.1:$4 run=$work/$2-$1-$3 worker
    [ "$1" = this ] || programs=$work/other/kernelcast/bin
    "$programs/kcast-worker" --listen "$url" --state "$run.state" >"$run.worker" 2>&1 &
    worker=$!
    answers() { "$programs/kcast" --worker "$url" --pool $pool status 2>/dev/null | grep -q "^worker $url"; }
    within 15 answers || tail -n 2 "$run.worker"
    "$programs/kcast" --worker "$url" --pool $pool -q search "$problems/$folder" --generator "pool:$work/kernels/$folder" --candidates 0 \
        --play-off 0 --audit 0 --measurements "${KCAST_ROUTING_MEASURED:-30}" --seed "$seed" --run "$run.run" >"$run.log" 2>&1 || tail -n 2 "$run.log"
    kill $worker
    wait $worker 2>/dev/null
}
for seed in $(seq "${KCAST_ROUTING_SEEDS:-20}"); do
    port=7500 clients=()
    for folder in "${folders[@]}"; do
        for name in this ${other:+other}; do
            port=$((port + 1))
            search $name "$folder" "$seed" $port &
            clients+=($!)
        done
    done
    wait "${clients[@]}"
done
for run in "$work"/*.run; do "$bin/kcast" export "$run" --events >"${run%.run}.events"; done
python3 "$here/routing_table.py" "$work" "${folders[@]}"
