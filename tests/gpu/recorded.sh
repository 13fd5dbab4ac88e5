#!/usr/bin/env bash
# Candidates in Python and with host launchers on a real GPU: each of tests/gpu/recorded has the verdict that its second line, or first,
# expects; twenty Triton kernels are measured, and said is how many a second; a problem whose baseline is PyTorch's is checked with its
# mutants. Nothing of ours may be left afterwards. Needs PyTorch and Triton, and nvcc for two of the candidates.
#   tests/gpu/recorded.sh BIN WORK PROBLEMS     programs of a bundle; a folder for state and logs. Last line: "N passed, N failed".
# KCAST_RECORDED: patterns of names, default all. KCAST_INLINE=1: the candidate whose compiling takes 40 s, too.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=$1 work=$2/recorded problems=$3 here=$(dirname "$0")/recorded
url=tcp://127.0.0.1:7416 passed=0 failed=0 daemon=
mkdir -p "$work"
stop() { [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; daemon=; }; }
trap stop EXIT
kcast() { "$bin/kcast" --no-worker --pool $url -q "$@"; }
ready() { kcast status 2>/dev/null | grep -qE '^ *cuda0 .* ready'; }
ours() { ps -eo comm= | grep -cE '^(kcast|python)'; }
seconds() { python3 -c "import sys; print(f'{float(sys.argv[2]) - float(sys.argv[1]):.2f}')" "$1" "$(date +%s.%N)"; }
count() { # 0 or 1 that failed, name, what was seen
    if [ "$1" -eq 0 ]; then passed=$((passed + 1)); echo "ok      $2: $3"; else failed=$((failed + 1)); echo "FAILED  $2: $3"; fi
}
judge() { # candidate
    local file=$1 expected line name
    name=$(basename "$file")
    expected=$(sed -n 's/^\(#\|\/\/\) Expected: //p' "$file" | head -1)
    kcast measure --fresh "$problems/${name%%-*}" "$file" >"$work/$name.out" 2>&1 </dev/null
    line=$(grep -m1 ': ' "$work/$name.out" | cut -c 1-260)
    printf '%s' "$line" | grep -qE ": ($expected)" || line="$line (expected: $expected)"
    echo "$line" >"$work/$name.line"
}

before=$(ours)
"$bin/kcastd" --listen $url --devices cuda:0 --state "$work/state" --compile-time "${KCAST_COMPILE_TIME:-30s}" >"$work/kcastd.log" 2>&1 &
daemon=$!
within 30 ready || { echo "the daemon does not come up:"; tail -3 "$work/kcastd.log"; exit 1; }

start=$(date +%s.%N)
kcast measure --fresh "$problems/softmax" "$here/softmax-triton.py" 2>&1 | cut -c 1-200
echo "the first candidate, with the start of the interpreter: $(seconds "$start") s"

# Twice, with other sources: in the first round interpreters are started, one for each compilation at once.
for round in 1 2; do
    mkdir -p "$work/gen$round"
    n=0
    for warps in 1 2 4 8 16; do for times in 1 2; do for flavour in exp exp2; do
        n=$((n + 1))
        body="e = tl.exp(v - m)"
        [ $flavour = exp ] || body="e = tl.exp2((v - m) * 1.4426950408889634)"
        cat >"$work/gen$round/triton$n.py" <<P
# round $round
import triton
import triton.language as tl


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    v = tl.load(x + at + i, mask=i < n, other=-float("inf"))
    m = tl.max(v, 0)
    $body
    tl.store(y + at + i, e / tl.sum(e, 0), mask=i < n)


def softmax(x, y):
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=$times * triton.next_power_of_2(x.shape[1]), num_warps=$warps)
P
    done; done; done
    start=$(date +%s.%N)
    kcast measure --fresh "$problems/softmax" "$work/gen$round"/triton*.py >"$work/triton.out" 2>&1
    took=$(seconds "$start")
    grep -E 'py: ' "$work/triton.out" | sed 's/.*\///' | cut -c 1-110
    echo "round $round: $n Triton candidates, from source to verdict: $took s, $(python3 -c "print(f'{$n / $took:.2f}')") a second"
done

for file in "$here"/${KCAST_RECORDED:-*-*}; do
    case $file in *softmax-inline.py) [ "${KCAST_INLINE:-0}" = 1 ] || continue ;; esac
    judge "$file" &
    [ "$(jobs -rp | wc -l)" -le 8 ] || wait -n
done
for job in $(jobs -p); do [ "$job" = "$daemon" ] || wait "$job"; done
for line in "$work"/*.line; do
    grep -q '(expected: ' "$line"
    count $((1 - $?)) "$(basename "$line" .line)" "$(cat "$line")"
done

for i in 1 2 3 4 5 6; do kcast measure --fresh "$problems/softmax" "$here/softmax-torch.py" 2>&1 | grep -m1 ': '; done | cut -c 1-110 | sed 's/^/again   /'

cp -r "$problems/softmax" "$work/softmax" && rm "$work/softmax/baseline.cu"
tail -n +2 "$here/softmax-torch.py" >"$work/softmax/baseline.py"
kcast problem check "$work/softmax" >"$work/check.out" 2>&1
count $? "a problem whose baseline is PyTorch's" "$(tail -1 "$work/check.out" | cut -c 1-200)"
grep -vE '^  ok ' "$work/check.out" | cut -c 1-220 | head -30
kcast measure --fresh "$work/softmax" "$here/softmax-triton.py" 2>&1 | cut -c 1-200

stop
within 10 eval '[ "$(ours)" -le "$before" ]'
count $? "nothing is left" "$(($(ours) - before)) processes"
grep -E 'record|escape' "$work/kcastd.log" | grep -v device-reading | tail -20 | cut -c 1-300
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
