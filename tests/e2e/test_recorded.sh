#!/usr/bin/env bash
# References, baselines and candidates in Python from the client to the verdict: a daemon with a GPU that is not there
# (tests/support/fake_gpu), the real recorder in its jail with a stand-in for PyTorch (tests/support/fake_torch), the real executor.
# Skipped where there is no CUDA compiler.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:?} build=${KCAST_BUILD:?} support=$(cd "$(dirname "$0")/../support" && pwd)
work=$(mktemp -d)
daemon= bad=0
finish() {
    [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; }
    rm -rf "$work"
}
trap finish EXIT
chmod 755 "$work"
cd "$work"
found=
for root in "${KCAST_CUDA_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-*; do
    [ -n "$root" ] && ls "$root"/lib*/libnvrtc.so.1[2-9] >/dev/null 2>&1 && found=$root
done
if [ -z "$found" ]; then echo "skipped because there is no CUDA compiler (scripts/install-toolkit.sh fetches one)"; exit 77; fi
(umask 022; /usr/bin/python3 -m venv --without-pip env) || { echo "skipped because there is no python3 with venv"; exit 77; }
cp -R "$support/fake_torch/torch" env/lib/python3*/site-packages/
cp "$build/tests/fake/capture/libcuda.so.1" env/lib/python3*/site-packages/torch/

say() { echo "$*"; bad=1; }
kcast() { timeout 300 "$bin/kcast" --no-worker --pool "$url" "$@"; }
ready_or_ended() {
    url=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' log)
    [ -n "$url" ] || ! kill -0 "$daemon" 2>/dev/null
}
: >log
LD_LIBRARY_PATH=$build/tests/fake KCAST_FAKE_GPU="count=1;noise=0.2" "$bin/kcastd" --state "$work/state" --listen tcp://127.0.0.1:0 \
    --devices cuda --python "$work/env/bin/python3" 2>log &
daemon=$!
within 60 ready_or_ended
[ -n "$url" ] || { cat log; say "the daemon does not start"; exit 1; }
has_interpreter() { interpreter=$(pgrep -o -f "^$work/env/bin/python3 -I -B /proc/self/fd/"); }
if within 60 has_interpreter; then
    [ "$(ps -o ni= -p "$interpreter" | tr -d ' ')" = 10 ] || say "the interpreter does not give way to who measures"
else
    say "no interpreter is started before anybody asks for one"
fi

problem() { # FOLDER: a problem there with a reference in Python, on standard input, and a sealed baseline
    mkdir -p "$1/p"
    cat >"$1/p/reference.py"
    cat >"$1/p/problem.json" <<'J'
{"name": "p", "title": "y = a x", "license": "MIT", "language": "cuda",
 "params": [{"name": "n", "type": "int"}, {"name": "a", "type": "f64"}],
 "tensors": [{"name": "x", "direction": "in", "dtype": "f32", "shape": ["n"], "values": {"distribution": "normal", "mean": 0, "stddev": 1}},
             {"name": "y", "direction": "out", "dtype": "f32", "shape": ["n"], "tolerance": 4}],
 "cases": {"check": [{"n": 1000, "a": 2}, {"n": 1000, "a": -3}], "bench": [{"params": {"n": 20000, "a": 2.5}, "weight": 1}],
           "hidden": {"n": {"min": 1, "max": 3000}}},
 "cache": "cold", "work": {"flops": "n", "bytes": "8*n"}}
J
    candidate fk_scale >"$1/p/baseline.cu"
}
candidate() {
    printf '//@ launch %s grid=(ceildiv(n, 256)) block=(256) args=(x, y, n, a)\nextern "C" __global__ void %s(const float *x, float *y, int n, float a) {}\n' "$1" "$1"
}
for kind in '' _fast30 _slow30 _wrong; do candidate "fk_scale$kind" >"c$kind.cu"; done
printf 'import torch\n\n\ndef p(x, y, n, a):\n    torch.launch("fk_scale_fast30", x, y, n, a)\n' >fast.py
printf 'import torch\n\n\ndef p(x, y, n, a):\n    torch.launch("fk_scale", x, y, n, abs(a))\n' >magnitude.py
problem plain <<'P'
def reference(x, a):
    y = x * a
    return y, y.abs()
P
verdict() { # PROBLEM FILE PATTERN OPTIONS: of the line about the candidate
    kcast measure "$1" "$2" "${@:4}" >out 2>&1 </dev/null
    grep -qE "$3" out || { say "$2 should be $3:"; cat out; }
}
jobs_run() { grep -c ' job-running ' log; }

# ---- what a reference in Python says is right, for shapes that nobody has known before as well ----
verdict plain/p c_fast30.cu ': faster, 1\.[1-9]'
verdict plain/p c_slow30.cu ': slower, 0\.[6-9]'
verdict plain/p c_wrong.cu ': wrong: y\[[0-9]+\] is'
verdict plain/p fast.py ': faster, 1\.[1-9]'
verdict plain/p magnitude.py ': wrong: .*for n=1000 a=-3' # of two cases of the same extents
cp -r plain python
rm python/p/baseline.cu
printf 'import torch\n\n\ndef p(x, y, n, a):\n    torch.launch("fk_scale", x, y, n, a)\n' >python/p/baseline.py
verdict python/p c_fast30.cu ': faster, 1\.[1-9]'

# ---- one that never ends while it is recorded keeps nobody waiting ----
cp -r plain sealed
rm sealed/p/reference.py
printf '//@ launch fk_ref_scale grid=(ceildiv(n, 256)) block=(256) args=(x, y, y_scale, n, a)\nextern "C" __global__ void fk_ref_scale(const float *x, double *y, double *y_scale, int n, double a) {}\n' >sealed/p/reference.cu
printf 'import time\n\n\ndef p(x, y, n, a):\n    while True:\n        time.sleep(0.1)\n' >sleeps.py
records() { [ "$(pgrep -c -f "^$work/env/bin/python3 -I -B /proc/self/fd/")" -gt "$interpreters" ]; }
within 60 has_interpreter
interpreters=$(pgrep -c -f "^$work/env/bin/python3 -I -B /proc/self/fd/")
timeout 300 "$bin/kcast" --no-worker --pool "$url" measure sealed/p sleeps.py >slept 2>&1 </dev/null & # not the function: its shell would be killed alone
client=$!
within 60 records || say "what sleeps is not recorded"
verdict sealed/p c_fast30.cu ': faster, 1\.[1-9]' --fresh
kill -0 $client 2>/dev/null || { say "what sleeps has ended before its neighbour was measured"; cat slept; }
kill $client
wait $client 2>/dev/null

# ---- who compiles gives way, also where the system weighs sessions ----
weighs() { # MODE NICE: a process of this mode has this number
    local pid
    for pid in $(pgrep -P "$daemon" -f "kcast-exec $1"); do
        grep -q "nice $2\$" "/proc/$pid/autogroup" 2>/dev/null && return 0
    done
    return 1
}
if [ "$(cat /proc/sys/kernel/sched_autogroup_enabled 2>/dev/null)" = 1 ]; then
    for mode in cuda-compile cuda-record; do weighs $mode 10 || say "no session of $mode gives way to who measures"; done
    weighs cuda-measure 0 || say "the sessions of who measures give way, too"
fi

# ---- a result is of its reference ----
before=$(jobs_run)
verdict plain/p c_fast30.cu ': faster, 1\.[1-9]'
[ "$(jobs_run)" -eq "$before" ] || say "the same measurement is made again"
problem other <<'P'
def reference(x, a):
    y = x * (a + 1.0)
    return y, y.abs()
P
verdict other/p c_fast30.cu ': wrong: |the baseline disagrees with the reference'
[ "$(jobs_run)" -gt "$before" ] || say "with another reference nothing is measured"

# ---- what its author is told ----
problem reads <<'P'
def reference(x, a):
    y = x * a
    if y.tolist()[0] == 0:
        y = y * 2.0
    return y, y.abs()
P
kcast problem check reads/p >out 2>&1 && say "a reference that cannot be recorded is admitted"
said='Nothing could be tried: reference.py of problem p cannot be recorded: reference.py:3: it reads a result on the host'
[ "$(grep -cF "$said" out)" -eq 1 ] || { say "it is not said once why"; cat out; }
candidate fk_scale >reads/p/reference.cu
kcast problem check reads/p >out 2>&1 && say "two references are admitted"
grep -q 'reads/p has both reference.cu and reference.py' out || { say "it is not said that there are two"; cat out; }
exit $bad
