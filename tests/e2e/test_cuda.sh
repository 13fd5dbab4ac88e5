#!/usr/bin/env bash
# A daemon with GPUs that are not there (tests/support/fake_gpu): real compiler, real jail, real executor, every verdict, faults of the
# device, and a whole search. Skipped where there is no CUDA compiler.
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
unset KCAST_KERNELS # the daemon keeps them

say() { echo "$*"; bad=1; }
kcast() { timeout 120 "$bin/kcast" --pool "$url" "$@"; }
start() { # settings of the fake, options of the daemon
    local settings=$1
    shift
    : >log # of the one before
    KCAST_FAKE_GPU=$settings "$bin/kcastd" --state "$work/state" --listen tcp://127.0.0.1:0 "$@" 2>log &
    daemon=$!
    within 60 ready_or_ended
    [ -n "$url" ]
}
ready_or_ended() {
    url=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' log)
    [ -n "$url" ] || ! kill -0 "$daemon" 2>/dev/null
}
stop() { kill "$daemon" 2>/dev/null; wait "$daemon"; daemon=; }

# ---- a problem whose kernels the fake knows by name ----
mkdir p
cat >p/problem.json <<'J'
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
kernel fk_ref_scale 'const float *x, double *y, double *s, int n, double a' 'x, y, y_scale, n, a' >p/reference.cu
candidate fk_scale >p/baseline.cu
echo 'A problem for a fake GPU.' >p/README.md
for kind in '' _wrong _zero _nothing _oob _fault _misaligned _assert _hang _slow10 _fast30 _input _count _nondet _toobig; do
    candidate "fk_scale$kind" >"c$kind.cu"
done
# the block's size matters on the fake: a search has something to find
{ echo '//@ tune BLOCK in (32, 64, 128, 256, 512, 1024)'; echo '//@ tune WHAT in (0, 1, 2, 3)'
  echo '//@ launch fk_scale grid=(ceildiv(n, BLOCK)) block=(BLOCK) args=(x, y, n, a)'
  echo 'extern "C" __global__ void fk_scale(const float *x, float *y, int n, float a) { if (WHAT > 9) y[0] = a; }'; } >p/template.cu

# ---- verdicts ----
start "count=2" --devices cuda || { cat log; say "the daemon does not start"; exit 1; }
[ "$(kcast status | grep -c 'cuda[01] ')" -eq 2 ] || say "status does not show two GPUs"
verdict() { # file, pattern of the line, options
    kcast measure p "$1.cu" "${@:3}" >out 2>&1 </dev/null
    grep -qE "$2" out || { say "$1 should be $2:"; cat out; }
}
equal() { # of equal kernels one measurement in a hundred or so says that they differ, by design; two in a row do not
    kcast measure p "$1.cu" >out 2>&1 </dev/null
    grep -qE ': equivalent|: inconclusive' out || verdict "$1" ': equivalent|: inconclusive' --fresh
}
equal c
verdict c_slow10 ': slower, 0\.[89]'
verdict c_fast30 ': faster, 1\.[1-9]'
equal c_nondet
verdict c_wrong ': wrong: y\[[0-9]+\] is' # of which case: the one that is least work
verdict c_zero ': wrong'
verdict c_nothing ': wrong'
verdict c_oob ': wrong: it wrote outside y'
verdict c_input ': wrong: it changed its input x'
verdict c_count ': wrong|: quarantined'
verdict c_fault ': crash: .*ILLEGAL_ADDRESS'
verdict c_misaligned ': crash: .*MISALIGNED'
verdict c_assert ': crash: .*ASSERT'
verdict c_toobig ': crash: .*cannot be launched'
verdict c_hang ': timeout: a launch did not end'
equal c # whatever was there before
echo 'no kernel at all' >none.cu
verdict none ': compile-error: .*launch'
# ---- what is compiled when ----
mkdir special
{ echo '//@ specialize n'; candidate fk_scale; } >special/good.cu
{ cat special/good.cu; printf '#if KCAST_n == 1000\n#error too small\n#endif\n'; } >special/late.cu
"$bin/kcast-worker" --state "$work/worker" --listen tcp://127.0.0.1:0 --threads 2 2>worker.log &
worker=$!
worker_ready() { grep -q ' listening url=' worker.log || ! kill -0 $worker 2>/dev/null; }
within 60 worker_ready
special() { # run, folder of candidates, options
    local run=$1 from=$2
    shift 2
    kcast "$@" search p --policy threshold --generator "pool:$from" --seed 1 --run "$run" >out 2>&1 </dev/null || { say "the search of $run fails"; cat out; }
    kcast export --events "$run" >"$run.json" || say "$run has no events"
}
events() { grep -c "$2" "$1.json"; }
special forecast.run special --machine-code --worker "$(sed -n 's/.* listening url=\([^ ]*\) .*/\1/p' worker.log)"
kill $worker
wait $worker
machine_code='"sass_.*' # a toolkit without nvdisasm has none
ls "${CUDA_HOME:-/usr/local/cuda}"/bin/nvdisasm /usr/local/cuda-*/bin/nvdisasm "${KCAST_ROOT:-.}"/build/toolkit/bin/nvdisasm 2>/dev/null | grep -q . || machine_code=
[ "$(events forecast.run "\"kind\":\"compiled\".*$machine_code\"incomplete\":true,\"no_machine_code\":false")" -eq 2 ] ||
    say "candidates are not compiled for features alone, or without machine code"
[ "$(events forecast.run '"kind":"measured".*"reason":"for the case n=1000 a=2: candidate.cu([0-9]*): ')" -eq 1 ] ||
    say "a variant that is refused at the measurement is not named"
[ "$(events forecast.run '"kind":"measured".*"speedup".*"incomplete":false')" -eq 1 ] || say "the rest of a candidate is not compiled for its measurement"
mkdir special2
{ echo '// another one'; cat special/good.cu; } >special2/other.cu
special measured.run special2 --no-worker
[ "$(events measured.run '"kind":"compiled".*"incomplete":false')" -eq 1 ] || say "what is measured in any case is not compiled at once"
[ "$(events measured.run '"kind":"compiled".*"sass_')" -eq 0 ] || say "machine code is read for nobody"
[ "$bad" -eq 0 ] || cut -c 1-2000 forecast.run.json measured.run.json

grep -q 'state=quarantined\|device-quarantined' log && { say "candidates' faults were blamed on the GPU"; grep quarantined log; }

# ---- a search ----
kcast --no-worker search p --run p.run --candidates 12 --seed 1 >out 2>&1 </dev/null || { say "the search fails"; cat out; }
grep -q 'best .*candidate' out || { say "the search finds nothing"; cat out; }
kcast report p.run -o p.html >out 2>&1 || { say "no report"; cat out; }
stop
[ -z "$(pgrep -f "kcast-exec cuda-.*" -P 1)" ] || say "a process is left behind"

# ---- without a sandbox, and with kernels of the executor that are kept from before ----
kept=$work/state/kernels/sm_90.cubin
[ "$(ls "$work/state/kernels")" = sm_90.cubin ] || say "the executor's kernels are not kept: $(ls "$work/state/kernels")"
before=$(stat -c %i "$kept")
start "count=1" --devices cuda --sandbox off || { cat log; say "the daemon does not start without a sandbox"; exit 1; }
verdict c_fast30 ': faster, 1\.[1-9]'
stop
[ "$(stat -c %i "$kept")" = "$before" ] || say "kernels that were kept are compiled again"
truncate -s 1000 "$kept"
start "count=1" --devices cuda --sandbox off || { cat log; say "the daemon does not start with kernels that are spoilt"; exit 1; }
stop
[ "$(stat -c %s "$kept")" -gt 100000 ] || say "kernels that are spoilt are not written anew"

# ---- no GPU ----
if start "count=0" --devices cuda; then say "a daemon without GPUs starts with --devices cuda"; stop; fi
grep -q 'GPU' log || { say "it does not say that there is no GPU"; cat log; }
daemon=
start "count=0" --devices auto || { say "a daemon without GPUs does not start with --devices auto"; cat log; exit 1; }
kcast measure p c.cu >out 2>&1 && say "a CUDA candidate is measured without a GPU"
grep -q 'no device' out || { say "it is not said that no device runs CUDA"; cat out; }
stop
exit $bad
