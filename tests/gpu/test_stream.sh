#!/usr/bin/env bash
# The program that streams new data (tests/gpu/stream.c), with a GPU that is not there: it sees the speedups that the daemon measures,
# sees it when they are not the same, finds outputs that differ from the baseline's, and ends with a sentence when the GPU fails.
# Skipped where there is no CUDA compiler.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:?} build=${KCAST_BUILD:?}
work=$(mktemp -d)
daemon= bad=0
finish() {
    [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; }
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
found=
for root in "${KCAST_CUDA_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-*; do
    [ -n "$root" ] && ls "$root"/lib*/libnvrtc.so.1[2-9] >/dev/null 2>&1 && found=$root
done
if [ -z "$found" ]; then echo "skipped because there is no CUDA compiler (scripts/install-toolkit.sh fetches one)"; exit 77; fi
export LD_LIBRARY_PATH=$build/tests/fake

# Problems whose kernels the fake knows by name; the block's size decides how long they take. The loose one accepts anything.
problem() { # name, tolerance, kernel of the template, inputs
    mkdir "$1"
    cat >"$1/problem.json" <<J
{"name": "$1", "title": "y = a x", "license": "MIT", "language": "cuda",
 "params": [{"name": "n", "type": "int"}, {"name": "a", "type": "f64"}],
 "tensors": [{"name": "x", "direction": "in", "dtype": "f32", "shape": ["n"], "values": {"distribution": "normal", "mean": 0, "stddev": 1}},
             {"name": "y", "direction": "out", "dtype": "f32", "shape": ["n"], "tolerance": $2}],
 "cases": {"check": [{"n": 1000, "a": 2}], "bench": [{"params": {"n": 20000, "a": 2.5}, "weight": 1}, {"params": {"n": 3000, "a": 2.5}, "weight": 1}],
           "hidden": {"n": {"min": 1, "max": 3000}}},
 "cache": "$4", "work": {"flops": "n", "bytes": "8*n"}}
J
    cat >"$1/reference.cu" <<'C'
//@ launch fk_ref_scale grid=(ceildiv(n, 256)) block=(256) args=(x, y, y_scale, n, a)
extern "C" __global__ void fk_ref_scale(const float *x, double *y, double *s, int n, double a) {}
C
    cat >"$1/baseline.cu" <<'C'
//@ scratch unused bytes=64 init=zero
//@ launch fk_scale grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)
extern "C" __global__ void fk_scale(const float *x, float *y, int n, float a) {}
C
    cat >"$1/template.cu" <<C
//@ tune BLOCK in (64, 128)
//@ launch $3 grid=(ceildiv(n, BLOCK)) block=(BLOCK) args=(x, y, n, a)
extern "C" __global__ void $3(const float *x, float *y, int n, float a) {}
C
    echo 'A problem for a fake GPU.' >"$1/README.md"
}
problem p 4 fk_scale cold
problem warm 4 fk_scale warm
problem loose 1e9 fk_scale_zero cold

export KCAST_FAKE_GPU='block=256;noise=0.02'
"$bin/kcastd" --state "$work/state" --listen tcp://127.0.0.1:0 --devices cuda 2>log &
daemon=$!
ready_or_ended() {
    url=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' log)
    [ -n "$url" ] || ! kill -0 "$daemon" 2>/dev/null
}
within 60 ready_or_ended
[ -n "$url" ] || { cat log; exit 1; }

say() { echo "$*"; cat out; bad=1; }
stream() { # settings of the fake for the program alone; arguments
    local settings=$1
    shift
    KCAST_FAKE_GPU="$KCAST_FAKE_GPU;$settings" KCAST_POOL=$url timeout 200 "$bin/stream" . "$@" >out 2>&1
}
stream seed=2 2 6 2 p warm || say "points that are right do not pass:"
[ "$(grep -c 'measured 0\.[89].*streamed 0\.[89].*: ratio \(1\.00\|0\.99\)' out)" -eq 4 ] || say "the two do not see the same slow points:"
[ "$(grep -c 'n=20000 .*ratio\|n=3000 .*ratio' out)" -eq 8 ] || say "there is not a line for each case:"
tail -1 out | grep -q '^4 points: 0\.[0-9]* % apart in the median, 0\.[0-9]* % at most; 0 wrong outputs$' || say "the summary is not that of four points:"

# All kernels take half as long again as they did for the daemon, in both arms: the times that are printed are the program's own.
stream 'fault=slow:1:50' 1 6 1 p || say "a slow GPU is no failure:"
grep -q 'n=20000 .*baseline *4[0-9.]* *6[0-9.]* us, candidate *4[0-9.]* *6[0-9.]* us' out || say "a slow GPU is not seen:"

stream seed=2 1 6 1 loose && say "wrong outputs pass:"
grep -q '^loose BLOCK=.* computes something else here than the baseline, for n=20000 a=2.5$' out || say "wrong outputs are not named:"
tail -1 out | grep -q '; 2 wrong outputs$' || say "wrong outputs are not counted:"

stream 'fault=dies:9' 1 6 1 p && say "a GPU that dies passes:"
grep -q '^benchmark: p: .*ECC' out || say "it does not say that the GPU has died:"
stream 'fault=oom:2' 1 6 1 p && say "a GPU without memory passes:"
grep -q '^benchmark: .*memory.*OUT_OF_MEMORY' out || say "it does not say that there is no memory:"
stream 'fault=no-device' 1 6 1 p && say "a machine without a GPU passes:"
grep -q '^benchmark: the CUDA driver: CUDA_ERROR_NO_DEVICE' out || say "it does not say that there is no GPU:"
stream seed=2 1 6 1 nothing && say "a problem that is not there passes:"
exit $bad
