#!/usr/bin/env bash
# Candidates in Python and with host launchers on a real GPU: each of tests/gpu/recorded and tests/gpu/unsealed, measured with the options that it names, has the
# verdict that its second line, or first, expects; launches on four streams are faster than the same ones in turn; Triton kernels of many problems are measured, and said
# is how many a second; so is how much speedups of the same kernel differ, sealed and recorded; two clients search a folder of Triton kernels, one of them is killed and
# goes on, and none is measured twice; problems whose baseline or reference is PyTorch's are checked with their mutants. Nothing of ours
# may be left afterwards. Needs PyTorch and Triton, and nvcc for two of the candidates.
#   tests/gpu/recorded.sh BIN WORK PROBLEMS     programs of a bundle; a folder for state and logs. Last line: "N passed, N failed".
# How long load_inline takes is printed, too.
# KCAST_KERNELBENCH: a checkout of KernelBench, whose examples of an addition, CUDA by load_inline and Triton, are measured unchanged.
# KCAST_RECORDED: patterns of names, default all. KCAST_INLINE=1: the one that needs PyTorch's headers, which takes 40 s and more of
# KCAST_COMPILE_TIME than the default, too. KCAST_FOLDER: how many kernels the two clients search, default 200; 0: none.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=$1 work=$2/recorded problems=$3 here=$(dirname "$0")/recorded folder=${KCAST_FOLDER:-200}
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
    local file=$1 expected line problem name options=()
    problem=$(basename "$file")
    name=$(basename "$(dirname "$file")")-$problem
    name=${name#recorded-} problem=${problem%%-*}
    expected=$(sed -n 's/^\(#\|\/\/\) Expected: //p' "$file" | head -1)
    read -ra options < <(sed -n 's/^\(#\|\/\/\) Options: //p' "$file" | head -1)
    kcast measure --fresh "${options[@]}" "$problems/$problem" "$file" >"$work/$name.out" 2>&1 </dev/null
    line=$(grep -m1 ': ' "$work/$name.out" | cut -c 1-260)
    [ -n "$expected" ] && printf '%s' "$line" | grep -qE ": ($expected)" || line="$line (expected: $expected)"
    echo "$line" >"$work/$name.line"
}

before=$(ours)
"$bin/kcastd" --listen $url --devices cuda:0 --state "$work/state" --compile-time "${KCAST_COMPILE_TIME:-30s}" >"$work/kcastd.log" 2>&1 &
daemon=$!
within 30 ready || { echo "the daemon does not come up:"; tail -3 "$work/kcastd.log"; exit 1; }

# KernelBench's examples: the one in CUDA with the start of the interpreter and, as another file, without; sixteen at once, twice. What is
# there to tell files apart is a comment behind the last line.
example() { # NAME FILE…; sets took
    local name=$1
    shift
    start=$(date +%s.%N)
    kcast measure "$here/add" "$@" >"$work/example.out" 2>&1
    took=$(seconds "$start")
    [ "$(grep -cE 'py: (faster|slower|equivalent|inconclusive)' "$work/example.out")" -eq $# ]
    count $? "KernelBench's $name" "$took s from source to verdict: $(grep -m 1 'py: ' "$work/example.out" | sed 's/.*py: //' | cut -c 1-90)"
}
if [ -n "${KCAST_KERNELBENCH:-}" ]; then
    prompts=$KCAST_KERNELBENCH/src/kernelbench/prompts
    example "CUDA, with the start of the interpreter" "$prompts/model_new_ex_add.py"
    mkdir -p "$work/examples"
    for n in $(seq 0 32); do { cat "$prompts/model_new_ex_add.py" && echo "# $n"; } >"$work/examples/$n.py"; done
    example "CUDA, interpreter started" "$work/examples/0.py"
    example "CUDA, sixteen at once with the start of as many interpreters" "$work"/examples/{1..16}.py
    example "CUDA, sixteen at once" "$work"/examples/{17..32}.py
    echo "sixteen at once, interpreters started: $(python3 -c "print(f'{16 / $took:.2f}')") a second"
    example "Triton" "$prompts/model_new_ex_add_triton.py"
fi

start=$(date +%s.%N)
kcast measure --fresh "$problems/softmax" "$here/softmax-triton.py" 2>&1 | cut -c 1-200
echo "the first Triton candidate: $(seconds "$start") s"

triton() { # FOLDER COUNT NUMBER: writes so many kernels of softmax there, which differ in what they launch, and with the number
    mkdir -p "$1"
    local n=0 step warps policy flavour body
    for step in 1 2 3 4 5 6 7 8 9 10; do for warps in 2 4 8 16 32; do for policy in evict_first evict_last; do for flavour in exp exp2; do
        [ $n -lt "$2" ] || return 0
        n=$((n + 1))
        body="e = tl.exp(v - m)"
        [ $flavour = exp ] || body="e = tl.exp2((v - m) * 1.4426950408889634)"
        cat >"$1/triton$n.py" <<P
import triton
import triton.language as tl


@triton.jit
def rows(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * n
    i = tl.arange(0, BLOCK)
    v = tl.load(x + at + i, mask=i < n, other=-float("inf"), eviction_policy="$policy")
    m = tl.max(v, 0) + $(($3 + step)) * 1e-7
    $body
    tl.store(y + at + i, e / tl.sum(e, 0), mask=i < n)


def softmax(x, y):
    rows[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=$warps)
P
    done; done; done; done
}

# Twenty-one kernels of many problems, as people write them: first with the start of the interpreters, one for each compilation at once,
# then three of each, whose kernels have other names, so that none is known. A client for each problem, all at once.
kernels=("$here/softmax-triton.py" "$here"/triton/*.py)
measure_kernels() { # NAME COPIES; sets took, and verdicts
    local file problem copy clients=() to=$work/$1
    for file in "${kernels[@]}"; do
        problem=$(basename "$file")
        problem=${problem%%-*}
        mkdir -p "$to/$problem"
        for copy in $(seq "$2"); do
            python3 -c '
import re, sys
text = sys.stdin.read()
for name in re.findall(r"@triton.jit\s+def (\w+)", text):
    text = re.sub(rf"\b{name}\b", f"{name}_{sys.argv[1]}", text)
print(text, end="")' "$1$copy" <"$file" >"$to/$problem/$copy-$(basename "$file")"
        done
    done
    start=$(date +%s.%N)
    for problem in "$to"/*; do
        kcast measure "$problems/$(basename "$problem")" "$problem"/*.py >"$problem.out" 2>&1 &
        clients+=($!)
    done
    wait "${clients[@]}"
    took=$(seconds "$start") verdicts=$(cat "$to"/*.out | grep -cE 'py: (faster|slower|equivalent|inconclusive)')
}
measure_kernels first 1
grep -hE 'py: ' "$work"/first/*.out | sed 's/.*first.//' | cut -c 1-110
count $((${#kernels[@]} - verdicts)) "${#kernels[@]} Triton kernels of many problems" "$verdicts compared, $took s from source to verdict"
measure_kernels steady 3
echo "three of each, interpreters started: $verdicts compared, $took s, $(python3 -c "print(f'{$verdicts / $took:.2f}')") a second"

files=()
for pattern in ${KCAST_RECORDED:-*-*}; do files+=("$here"/$pattern "$here"/../unsealed/$pattern); done
for file in "${files[@]}"; do
    [ -f "$file" ] || continue # the pattern matches nothing there
    case $file in *-inline-pybind.py) [ "${KCAST_INLINE:-0}" = 1 ] || continue ;; esac
    judge "$file" &
    [ "$(jobs -rp | wc -l)" -le 8 ] || wait -n
done
for job in $(jobs -p); do [ "$job" = "$daemon" ] || wait "$job"; done
for line in "$work"/*.line; do
    grep -q '(expected: ' "$line"
    count $((1 - $?)) "$(basename "$line" .line)" "$(cat "$line")"
done

# How long a neighbour waits for its verdict, from its source on, while all of these go on, more than once one after the other: a sealed
# kernel of axpy that is clearly slower, and none that was measured before. First alone.
hostile=(crash disk escape forks gpu-memory host-read memory outside patch sleep)
neighbour() { # NUMBER; adds what it took to $took
    start=$(date +%s.%N)
    kcast measure "$problems/axpy" "$work/neighbours/$1.cu" >"$work/neighbour.out" 2>&1
    took+=("$(seconds "$start")")
    grep -q 'cu: slower' "$work/neighbour.out" || count 1 "a neighbour of hostile candidates" "${took[-1]} s: $(grep -m 1 'cu: ' "$work/neighbour.out" | cut -c 1-160)"
}
spread_of() { python3 -c 'import sys; s = sorted(map(float, sys.argv[1:])); print(f"{len(s)}, median {s[len(s) // 2]:.2f} s, longest {s[-1]:.2f} s")' "$@"; }
mkdir -p "$work/neighbours" "$work/hostile"
for n in $(seq 0 89); do
    sed -e "s/\baxpy\b/axpy$n/g" -e 's/y\[i\] = .*/float v = a * x[i] + y[i]; for (int k = 0; k < 4; k++) { y[i] = v; __threadfence(); }/' \
        "$problems/axpy/baseline.cu" >"$work/neighbours/$n.cu"
done
took=() clients=()
for n in $(seq 0 9); do neighbour "$n"; done
alone=("${took[@]}") took=()
for name in "${hostile[@]}"; do
    for again in 1 2 3; do { cat "$here/softmax-$name.py" && echo "# $again"; } >"$work/hostile/$name-$again.py"; done
    kcast measure "$problems/softmax" "$work/hostile/$name"-*.py >"$work/hostile/$name.out" 2>&1 &
    clients+=($!)
done
for n in $(seq 10 89); do kill -0 "${clients[@]}" 2>/dev/null && neighbour "$n"; done # as long as one of them goes on
beside=${#took[@]}
wait "${clients[@]}"
verdicts=$(cat "$work/hostile"/*.out | grep -cE 'py: [a-z]')
echo "a neighbour, from source to verdict, alone: $(spread_of "${alone[@]}")"
echo "a neighbour, beside $((3 * ${#hostile[@]})) hostile candidates: $(spread_of "${took[@]}")"
[ "$beside" -ge 10 ] && [ "$verdicts" -eq $((3 * ${#hostile[@]})) ]
count $? "neighbours of hostile candidates" "$beside measured meanwhile, $verdicts verdicts of the hostile ones"

# CUDA in a string, compiled without PyTorch's headers; with them it takes half a minute. Alone, after the interpreter has started, and
# sixteen different ones at once.
mkdir -p "$work/inline"
for n in $(seq 0 17); do sed "s/^import torch$/import torch  # $n/" "$here/softmax-inline.py" >"$work/inline/$n.py"; done
for n in 16 17; do
    start=$(date +%s.%N)
    kcast measure "$problems/softmax" "$work/inline/$n.py" >"$work/inline.out" 2>&1
    echo "load_inline alone, from source to verdict: $(seconds "$start") s: $(grep -m 1 'py: ' "$work/inline.out" | sed 's/.*\///' | cut -c 1-80)"
done
rm "$work/inline/16.py" "$work/inline/17.py"
start=$(date +%s.%N)
kcast measure "$problems/softmax" "$work/inline"/*.py >"$work/inline.out" 2>&1
echo "load_inline, 16 at once, from source to verdict: $(seconds "$start") s; $(grep -cE 'py: (faster|slower|equivalent|inconclusive)' "$work/inline.out") have a verdict"

# How much eight speedups of the same kernel differ, sealed and recorded: the baseline against itself, 64 launches a shape unless it is
# known sooner that there is no difference. Alone, and while others are recorded. Launches of axpy vary little, some of softmax by 2 %.
spread() { # PROBLEM NAME CANDIDATE
    for _ in 1 2 3 4 5 6 7 8; do kcast --json measure --fresh --launches 64 "$problems/$1" "$3"; done >"$work/again.json" 2>/dev/null
    python3 - "$work/again.json" "$1, $2" <<'P'
import json, math, statistics, sys
results = [json.loads(line) for line in open(sys.argv[1])]
def differ(speedups): return 100 * statistics.stdev(map(math.log, speedups))
shapes = ", ".join(f'{shape[0]["candidate_ns"]["p50"] / 1000:.1f} us {differ([case["speedup"] for case in shape]):.2f} %'
                   for shape in zip(*(one["cases"] for one in results)))
print(f'spread  {sys.argv[2]}: {len(results)} speedups, sd {differ([one["speedup"] for one in results]):.2f} % ({shapes}), '
      f'half of the intervals {100 * statistics.mean(math.log(one["ci95"][1] / one["ci95"][0]) / 2 for one in results):.2f} %')
P
}
launcher() { # PROBLEM; standard input: what launches its baseline
    { grep -v '^//@' "$problems/$1/baseline.cu" && echo '#include <cstdint>' && cat; } >"$work/$1-recorded.cu"
}
launcher softmax <<'C'
extern "C" void kcast_run(const float *x, float *y, int64_t R, int64_t N, cudaStream_t stream)
{
    softmax<<<(unsigned)R, 256, 0, stream>>>(x, y, (int)N);
}
C
launcher axpy <<'C'
extern "C" void kcast_run(const float *x, float *y, int64_t N, double a, cudaStream_t stream)
{
    axpy<<<(unsigned)((N + 255) / 256), 256, 0, stream>>>(x, y, (int)N, (float)a);
}
C
for problem in axpy softmax; do
    spread $problem "sealed" "$problems/$problem/baseline.cu"
    spread $problem "recorded" "$work/$problem-recorded.cu"
done
measure_kernels beside 4 &
beside=$!
spread softmax "sealed, while others are recorded" "$problems/softmax/baseline.cu"
kill -0 $beside 2>/dev/null || echo "they had been recorded before that ended"
wait $beside

# The same four launches beside each other and one after the other: each leaves most of the GPU idle.
speedup() { kcast --json measure --fresh "$problems/softmax" "$1" 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)["speedup"])'; }
sed 's/^STREAMS = 4$/STREAMS = 1/' "$here/softmax-streams.py" >"$work/softmax-in-turn.py"
beside=$(speedup "$here/softmax-streams.py") turn=$(speedup "$work/softmax-in-turn.py")
python3 -c "import sys; sys.exit(not $beside > 1.5 * $turn)" 2>/dev/null
count $? "launches on four streams overlap" "${beside}x beside each other, ${turn}x in turn"

# Two clients, one of them killed.
client() { # NAME SEED; in the background, where it becomes the command, which can be killed
    exec "$bin/kcast" --no-worker --pool $url -q search "$problems/softmax" --generator "pool:$work/folder" --policy all --candidates 0 \
        --run "$work/$1.run" --seed "$2" >"$work/$1.log" 2>&1
}
jobs_done() { kcast status | sed -n 's/^ *cuda0 .* \([0-9]*\) jobs\? in .*/\1/p'; }
count_measured() { "$bin/kcast" export "$work/$1.run" | grep -c '"measured_order":[0-9]'; }
half_way() { [ "$(jobs_done)" -ge $((jobs_before + folder / 3)) ]; }
if [ "$folder" -gt 0 ]; then
    triton "$work/folder" "$folder" 100
    jobs_before=$(jobs_done)
    start=$(date +%s.%N)
    client first 1 &
    first=$!
    client second 2 &
    second=$!
    within 200 half_way
    kill -9 $second
    wait $second 2>/dev/null
    kcast resume "$work/second.run" >"$work/second.log" 2>&1
    resumed=$?
    wait $first
    ended=$?
    took=$(seconds "$start")
    jobs=$(($(jobs_done) - jobs_before))
    "$bin/kcast" report "$work/first.run" -o "$work/first.html" && "$bin/kcast" report "$work/second.run" -o "$work/second.html"
    reported=$?
    echo "two clients: $(count_measured first) and $(count_measured second) of $folder measured, $jobs jobs of the GPU (with second measurements and play-offs), $took s"
    grep -hE '^(best|measured|failed|spent)' "$work/first.log" "$work/second.log" | cut -c 1-160
    # Keys of first measurements begin with m; a kernel that both clients had measured would be there twice.
    measured=$(grep -c 'job-running .*search=softmax-.* key=m[0-9]* .*attempt=0' "$work/kcastd.log")
    [ $ended -eq 0 ] && [ $resumed -eq 0 ] && [ $reported -eq 0 ] && [ "$measured" -gt 0 ] && [ "$measured" -eq "$(count_measured first)" ]
    count $? "two clients search a folder, one killed" "exit codes $ended and $resumed, $measured first measurements by the daemon's log"
fi

cp -r "$problems/softmax" "$work/softmax" && rm "$work/softmax/baseline.cu"
tail -n +2 "$here/softmax-torch.py" >"$work/softmax/baseline.py"
kcast problem check "$work/softmax" >"$work/check.out" 2>&1
count $? "a problem whose baseline is PyTorch's" "$(tail -1 "$work/check.out" | cut -c 1-200)"
grep -vE '^  ok ' "$work/check.out" | cut -c 1-220 | head -30
kcast measure --fresh "$work/softmax" "$here/softmax-triton.py" 2>&1 | cut -c 1-200

# References in Python: of softmax, with its own baseline, template and mutants; of a problem that has no other source than Python; and
# one that cannot be recorded, of which is said once why.
python() { # REFERENCE FOLDER: softmax with this reference there
    mkdir -p "$2" && cp -r "$problems/softmax" "$2" && rm "$2/softmax/reference.cu" && cp "$here/reference/$1" "$2/softmax/reference.py"
}
python softmax.py "$work/python"
cp -r "$here/reference/gather" "$work/python"
for problem in softmax gather; do
    start=$(date +%s.%N)
    kcast problem check "$work/python/$problem" >"$work/python/$problem.out" 2>&1
    count $? "$problem, whose reference is Python" "$(tail -1 "$work/python/$problem.out" | cut -c 1-200), $(seconds "$start") s"
    grep -vE '^  ok ' "$work/python/$problem.out" | cut -c 1-220 | head -30
done
kcast measure --fresh "$work/python/softmax" "$here/softmax-triton.py" >"$work/python/triton.out" 2>&1
grep -qE 'py: (faster|equivalent|slower)' "$work/python/triton.out"
count $? "a candidate against a reference in Python" "$(grep -m 1 'py: ' "$work/python/triton.out" | sed 's/.*\///' | cut -c 1-160)"
python softmax-host-read.py "$work/unrecorded"
kcast problem check "$work/unrecorded/softmax" >"$work/unrecorded/out" 2>&1
said='reference.py of problem softmax cannot be recorded: reference.py:5: it reads a result on the host'
[ "$(grep -c "^Nothing could be tried: $said" "$work/unrecorded/out")" -eq 1 ]
count $? "a reference that cannot be recorded" "$(tail -2 "$work/unrecorded/out" | head -1 | cut -c 1-200)"

stop
within 10 eval '[ "$(ours)" -le "$before" ]'
count $? "nothing is left" "$(($(ours) - before)) processes"
grep -E 'record|escape' "$work/kcastd.log" | grep -v device-reading | tail -20 | cut -c 1-300
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
