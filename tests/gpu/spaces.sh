#!/usr/bin/env bash
# Records spaces: every point of a problem's template, or of a smaller one, measured without a surrogate in random order.
#   tests/gpu/spaces.sh build/kernelcast.tar.xz
# One daemon per GPU, so that a space is of one GPU; problems go round the GPUs, two at a time on each. A space that is not through
# after KCAST_SPACE_SECONDS (default 380) ends there: what was measured is a random sample of it. Leaves the run files, packed, in
# $OUT, or in build/gpu when that is not set, and prints how many candidates each one has.
set -u
cd "$(dirname "$0")/../.."
bundle=$1
out=${OUT:-build/gpu}
seconds=${KCAST_SPACE_SECONDS:-380}
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
    transpose) axis HINT 0 ;;
    sgemm) axis BM "32, 64, 128"; axis BK "8, 16"; axis TM "4, 8"; axis TN "4, 8"; axis STAGES "1, 2, 3"; axis SPLITK "1, 4"; axis MATH 0 ;;
    bf16_gemm) axis BM "32, 64, 128"; axis BN "64, 128, 256"; axis BK "32, 64"; axis WM "1, 2, 4"; axis WN "1, 2, 4"; axis STAGES "1, 2, 3"
        axis SPLITK "1, 4"; axis PART 0; axis TAIL "0, 1"; axis ORDER "0" ;;
    attention) axis BM "16, 32, 64, 128"; axis BN "16, 32, 64, 128"; axis LANES "2, 4, 8"; axis EACH "1, 2"; axis STAGES "1, 2"; axis MASK 1 ;;
    gemv) axis LANES "16, 32, 64, 128"; axis GROUPS "1, 2, 4, 8"; axis ROWS "1, 2, 4"; axis VEC "1, 2, 4"; axis UNROLL "1, 4"; axis SPLIT "1, 4"; axis PLACE "0, 2" ;;
    rmsnorm_residual) axis THREADS "64, 128, 256, 512"; axis ROWS "1, 2"; axis VEC "1, 2, 4, 8"; axis ITEMS "1, 2, 4"; axis HINT "0, 1" ;;
    swiglu) axis THREADS "64, 256, 1024"; axis ITEMS "1, 2, 4"; axis WAVES "1, 4"; axis FORM "0, 2" ;;
    stencil5) axis BX "32, 64, 128"; axis BY "1, 4, 8"; axis ROWS "1, 4, 8, 16"; axis VEC "1, 2, 4"; axis UNROLL "1, 4" ;;
    esac
}

record() { # problem port
    local name=$1 port=$2 run=$work/$1.run
    cp -r "$problems/$name" "$work/$name" && (cd "$work/$name" && trim "$name")
    "$bin/kcast" search "$work/$name" --pool "tcp://127.0.0.1:$port" --no-worker --policy all --strategy best-of-n --batch 32 \
        --candidates "${KCAST_SPACE_CANDIDATES:-1040}" --seed 1 --max-time "${seconds}s" --quiet --run "$run" --json >"$out/$name.json" 2>"$out/$name.log" ||
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
    for _ in $(seq 300); do "$bin/kcast" status --pool "tcp://127.0.0.1:$((7500 + gpu))" >"$work/status" 2>&1 && break; sleep 0.1; done
    cat "$work/status"
done
export -f record axis trim
export bin work out problems seconds
lane=0
for list in "sgemm" "cross_entropy axpy gemv" "softmax rope layernorm" "transpose rmsnorm_residual reduce_sum"; do
    printf '%s\n' $list | xargs -P 4 -I{} bash -c "record {} $((7500 + lane % gpus))" &
    lanes+=($!)
    lane=$((lane + 1))
done
wait "${lanes[@]}"
for run in "$work"/*.run; do
    echo "$(basename "$run" .run): $("$bin/kcast" report "$run" --json | grep -oE '"(considered|compile_failed|measured)":[0-9]+' | tr '\n' ' ')"
done
tar -C "$work" -cf - $(cd "$work" && ls ./*.run) | xz -T0 -4 | split -b 15M - "$out/spaces.tar.xz."
rm -f "$out"/*.json "$out"/*.log
tail -n 2 "$work"/kcastd*.log
