#!/usr/bin/env bash
# Records spaces: every point of a problem's template, or of a smaller one, measured without a surrogate in random order.
#   tests/gpu/spaces.sh build/kernelcast.tar.xz
# One daemon per GPU, so that a space is of one GPU; the problems of a GPU take turns on it. A space that is not through after
# KCAST_SPACE_SECONDS (default 500), or has KCAST_SPACE_CANDIDATES (default 1600), ends there: what was measured is a random sample of
# it. Leaves the spaces in one tar file, split, in $OUT, or in build/gpu when that is not set, and prints how many candidates each has.
set -u
. "$(dirname "$0")/../support/until.sh"
cd "$(dirname "$0")/../.."
bundle=$1
out=${OUT:-build/gpu}
seconds=${KCAST_SPACE_SECONDS:-500}
mkdir -p "$out"
work=$(mktemp -d)
tar -C "$work" -xJf "$bundle" || exit 1
bin=$work/kernelcast/bin
problems=$work/kernelcast/share/kernelcast/problems/cuda
daemons=()
trap 'kill "${daemons[@]}" 2>/dev/null; wait; rm -rf "$work"' EXIT

# axis NAME VALUES: the template in the current folder gets only these values of a parameter.
axis() { sed -i -E "s#^//@ tune $1 in \([^)]*\)#//@ tune $1 in ($2)#" template.cu; }
# What is left out of templates that are too large to be measured whole.
trim() {
    case $1 in
    sgemm) axis BK "8, 16"; axis TM "2, 4, 8"; axis TN "4, 8"; axis STAGES "1, 2, 3"; axis SPLITK "1, 4"; axis TAIL 1; axis MATH 0 ;;
    bf16_gemm) axis BM "32, 64, 128"; axis BN "64, 128, 256"; axis BK "32, 64"; axis STAGES "2, 3, 4"; axis SPLITK "1, 4"; axis PART 0; axis TAIL 1 ;;
    batched_gemm) axis TM "1, 2, 4"; axis TN "1, 2, 4"; axis MATS "1, 2, 4, 8"; axis BK "4, 8, 16, 32"; axis SYNC 0; axis TAIL 1; axis SPECIAL 1 ;;
    conv3x3) axis TH "4, 8"; axis OB "16, 32, 64"; axis PX "1, 2, 4"; axis OC "2, 4, 8"; axis CB "2, 4, 8"; axis SPLIT "1, 2"; axis TAIL 1 ;;
    conv1d_causal) axis ROWS "1, 2, 4"; axis PER "1, 2, 4"; axis EDGE 1; axis EXP "0, 2"; axis STREAM 0 ;;
    attention) axis MASK 1; axis KEEP 0 ;;
    softmax) axis ROWS "1, 2, 4"; axis EXP "0, 1" ;;
    layernorm) axis ROWS "1, 2, 4, 8"; axis MOMENTS "0, 2"; axis MASK 1 ;;
    gemv) axis LANES "16, 32, 64, 128"; axis GROUPS "1, 2, 4, 8"; axis UNROLL "1, 4"; axis SPLIT "1, 2, 4"; axis PLACE "0, 2" ;;
    stencil5) axis BX "32, 64, 128"; axis BY "1, 4, 8"; axis UNROLL "1, 4"; axis BORDER 1 ;;
    topk) axis THREADS "64, 128, 256, 512"; axis ROWS "1, 2, 4"; axis UNROLL "1, 4"; axis SPLIT "1, 2, 4, 8" ;;
    embedding_bag) axis BAGS "1, 2, 4, 8"; axis UNROLL "1, 2, 4" ;;
    transpose) axis HINT 0 ;;
    esac
}

record() { # problem port
    local name=$1 port=$2 run=$work/$1.run
    cp -r "$problems/$name" "$work/$name" && (cd "$work/$name" && trim "$name")
    "$bin/kcast" search "$work/$name" --pool "tcp://127.0.0.1:$port" --no-worker --machine-code --policy all --strategy best-of-n --batch 32 \
        --candidates "${KCAST_SPACE_CANDIDATES:-1600}" --seed 1 --max-time "${seconds}s" --quiet --run "$run" --json >"$out/$name.json" 2>"$out/$name.log" ||
        { echo "$name: failed"; tail -3 "$out/$name.log"; }
}

gpus=$(nvidia-smi --list-gpus | wc -l)
cores=$(($(nproc) / gpus - 1))
for gpu in $(seq 0 $((gpus - 1))); do
    "$bin/kcastd" --devices "cuda:$gpu" --listen "tcp://127.0.0.1:$((7500 + gpu))" --compile-jobs "$cores" --state "$work/state$gpu" \
        >"$work/kcastd$gpu.log" 2>&1 &
    daemons+=($!)
done
for gpu in $(seq 0 $((gpus - 1))); do
    within 30 "$bin/kcast" status --pool "tcp://127.0.0.1:$((7500 + gpu))" >"$work/status" 2>&1
    cat "$work/status"
done
export -f record axis trim
export bin work out problems seconds
lane=0
for list in "sgemm softmax cross_entropy topk" "bf16_gemm layernorm rope embedding_bag" "attention transpose gemv batched_gemm" \
    "conv3x3 conv1d_causal stencil5"; do
    printf '%s\n' $list | xargs -P 4 -I{} bash -c "record {} $((7500 + lane % gpus))" &
    lanes+=($!)
    lane=$((lane + 1))
done
wait "${lanes[@]}"
for run in "$work"/*.run; do
    name=$(basename "$run" .run)
    "$bin/kcast" export "$run" --format space -o "$work/$name.space" &&
        echo "$name: $("$bin/kcast" report "$run" --json | grep -oE '"(considered|compile_failed|measured)":[0-9]+' | head -n 3 | tr '\n' ' ')" &
done
wait $(jobs -p | grep -vxF "$(printf '%s\n' "${daemons[@]}")")
tar -C "$work" -cf - $(cd "$work" && ls ./*.space) | split -b 15M - "$out/spaces.tar."
rm -f "$out"/*.json "$out"/*.log
tail -n 2 "$work"/kcastd*.log
