#!/usr/bin/env bash
# The battery's own rule (tests/gpu/battery.c), with GPUs that are not there: a cheat that is called faster than its twin fails it,
# refused and slower ones pass. Skipped where there is no CUDA compiler.
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

# A problem whose kernels the fake knows by name.
mkdir -p set/problem/p
cat >set/problem/p/problem.json <<'J'
{"name": "p", "title": "y = a x", "license": "MIT", "language": "cuda",
 "params": [{"name": "n", "type": "int"}, {"name": "a", "type": "f64"}],
 "tensors": [{"name": "x", "direction": "in", "dtype": "f32", "shape": ["n"], "values": {"distribution": "normal", "mean": 0, "stddev": 1}},
             {"name": "y", "direction": "out", "dtype": "f32", "shape": ["n"], "tolerance": 4}],
 "cases": {"check": [{"n": 1000, "a": 2}], "bench": [{"params": {"n": 20000, "a": 2.5}, "weight": 1}], "hidden": {"n": {"min": 1, "max": 3000}}},
 "cache": "cold", "work": {"flops": "n", "bytes": "8*n"}}
J
kernel() { # name, parameters, arguments
    printf '//@ launch %s grid=(ceildiv(n, 256)) block=(256) args=(%s)\nextern "C" __global__ void %s(%s) {}\n' "$1" "$3" "$1" "$2"
}
candidate() { kernel "$1" 'const float *x, float *y, int n, float a' 'x, y, n, a'; }
kernel fk_ref_scale 'const float *x, double *y, double *s, int n, double a' 'x, y, y_scale, n, a' >set/problem/p/reference.cu
candidate fk_scale >set/problem/p/baseline.cu
add() { { printf '// expect: %s\n// problem: p\n// %s\n' "$2" "$1"; candidate "$3"; } >"set/$1.cu"; } # name, expectation, kernel
add honest-p ratio fk_scale
add honest_slow ratio fk_scale_slow10
add slow cheat fk_scale_slow10
add same cheat fk_scale
add wrong cheat fk_scale_wrong
add writes cheat fk_scale_oob
add counts cheat fk_scale_count
add fault cheat fk_scale_fault
{ echo '// expect: rejected'; echo '// problem: p'; candidate fk_scale | sed 's/{}/{ float *p = (float *)malloc(n); p[0] = x[0]; y[0] = p[0]; }/'; } >set/refused.cu

"$bin/kcastd" --state "$work/state" --listen tcp://127.0.0.1:0 --devices cuda 2>log &
daemon=$!
ready_or_ended() {
    url=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' log)
    [ -n "$url" ] || ! kill -0 "$daemon" 2>/dev/null
}
within 60 ready_or_ended
[ -n "$url" ] || { cat log; exit 1; }

say() { echo "$*"; cat out; bad=1; }
battery() { KCAST_POOL=$url timeout 200 "$bin/battery" set 7 >out 2>&1; }
battery || say "refused, wrong and slow cheats do not pass:"
[ "$(tail -n 1 out)" = "9 passed, 0 failed" ] || say "the last line is not that nine have passed:"
grep -q '^seed: 0x7$' out || say "the seed is not printed:"

rm set/slow.cu set/same.cu set/w*.cu set/counts.cu set/fault.cu set/refused.cu
# A cheat that is faster fails, after repetitions, in the used process; so do an honest candidate that is refused and a wrong one that
# is called correct.
add fast cheat fk_scale_fast30
add honest_wrong ratio fk_scale_wrong
add not_wrong wrong fk_scale
battery && say "a faster cheat passes:"
[ "$(tail -n 1 out)" = "2 passed, 3 failed" ] || say "the last line is not that three have failed:"
[ "$(grep -c '^FAIL [a-z_]*\.cu$' out)" -eq 3 ] || say "those that failed are not listed:"
[ "$(grep -c '^bad  *fast.cu' out)" -ge 3 ] || say "the faster one was not measured again:"
[ $bad -eq 0 ] && echo "the battery tells cheats that succeed from those that do not"
exit $bad
