#!/usr/bin/env bash
# Candidates that a language model writes in Python, from its words to their verdicts: a search of a problem of its own starts from a
# program of PyTorch and asks an endpoint (scripted_model.py, no model) for more. The first answer holds the Triton kernel that every such
# question shows as an example; others are edits with and without indentation, whole files, wrong ones. Needs PyTorch and Triton.
#   tests/gpu/written.sh BIN WORK     programs of a bundle; a folder for state and logs
# Environment: KCAST_WRITTEN_CANDIDATES (24)
set -u
here=$(dirname "$0")
. "$here/../support/until.sh"
bin=$1 work=$2/written pool=tcp://127.0.0.1:7417 worker=tcp://127.0.0.1:7418 pids=() failed=0
mkdir -p "$work/row_sum" "$work/seeds"
stop() { for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null; done; }
trap stop EXIT
check() { # STATUS WHAT
    [ "$1" -eq 0 ] && echo "ok   $2" || { echo "FAIL $2"; failed=$((failed + 1)); }
}

cat >"$work/row_sum/problem.json" <<'P'
{"name": "row_sum", "title": "y = a times the sums of the rows of x", "license": "MIT", "language": "cuda",
 "params": [{"name": "rows", "type": "int"}, {"name": "cols", "type": "int"}, {"name": "a", "type": "f64"}],
 "tensors": [{"name": "x", "direction": "in", "dtype": "f32", "shape": ["rows", "cols"], "values": {"distribution": "normal", "mean": 0, "stddev": 1}},
             {"name": "y", "direction": "out", "dtype": "f32", "shape": ["rows"], "tolerance": 16}],
 "cases": {"check": [{"rows": 3, "cols": 17, "a": 2}, {"rows": 1, "cols": 1, "a": 0.5}, {"rows": 130, "cols": 2047, "a": 1}],
           "bench": [{"params": {"rows": 8192, "cols": 4096, "a": 2}, "weight": 1}, {"params": {"rows": 65536, "cols": 1000, "a": 2}, "weight": 1}],
           "hidden": {"rows": {"min": 1, "max": 3000}, "cols": {"min": 1, "max": 5000}}},
 "cache": "cold", "work": {"flops": "rows*cols", "bytes": "4*rows*cols"}}
P
cat >"$work/row_sum/reference.cu" <<'P'
//@ launch reference grid=(rows) block=(256) args=(x, y, y_scale, cols, a)
extern "C" __global__ void reference(const float *x, double *y, double *y_scale, int cols, double a)
{
    __shared__ double sums[256], sizes[256];
    double sum = 0, size = 0;

    for (int c = threadIdx.x; c < cols; c += 256) {
        double value = x[(long long)blockIdx.x * cols + c];
        sum += value;
        size += fabs(value);
    }
    sums[threadIdx.x] = sum;
    sizes[threadIdx.x] = size;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            sums[threadIdx.x] += sums[threadIdx.x + step];
            sizes[threadIdx.x] += sizes[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = a * sums[0];
        y_scale[blockIdx.x] = fabs(a) * sizes[0];
    }
}
P
cat >"$work/row_sum/baseline.cu" <<'P'
//@ launch row_sum grid=(rows) block=(256) args=(x, y, cols, a)
extern "C" __global__ void row_sum(const float *x, float *y, int cols, double a)
{
    __shared__ float sums[256];
    float sum = 0;

    for (int c = threadIdx.x; c < cols; c += 256) {
        sum += x[(long long)blockIdx.x * cols + c];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = 128; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            sums[threadIdx.x] += sums[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = (float)a * sums[0];
    }
}
P
echo 'def row_sum(x, a): return (a * x.sum(1),)' >"$work/seeds/torch.py"

python3 "$here/scripted_model.py" "$work/questions.log" >"$work/endpoint.url" &
pids+=($!)
within 15 test -s "$work/endpoint.url"
"$bin/kcastd" --listen $pool --devices cuda:0 --state "$work/state" >"$work/kcastd.log" 2>&1 &
pids+=($!)
"$bin/kcast-worker" --listen $worker --engine llm --endpoint "$(cat "$work/endpoint.url")" --model scripted --state "$work/worker" >"$work/worker.log" 2>&1 &
pids+=($!)
kcast() { "$bin/kcast" --pool $pool --worker $worker -q "$@"; }
both_ready() { kcast status 2>/dev/null >"$work/status" && grep -qE '^ *cuda0 .* ready' "$work/status" && grep -q "^worker $worker" "$work/status"; }
within 60 both_ready || { echo "the pool does not come up:"; tail -n 3 "$work/kcastd.log" "$work/worker.log"; exit 1; }

kcast search "$work/row_sum" --generator "pool:$work/seeds,llm" --policy all --candidates "${KCAST_WRITTEN_CANDIDATES:-24}" --play-off 0 --audit 0 \
    --seed 1 --run "$work/run" >"$work/search.log" 2>&1
check $? "a search from a program of PyTorch, $(wc -l <"$work/questions.log") questions"
tail -n 12 "$work/search.log" | cut -c 1-160
cut -c 1-200 "$work/questions.log"
# Each candidate: what became of it, and the line that says what is different. Checks by the kinds of answers.
"$bin/kcast" export "$work/run" | python3 -c '
import json, re, sys
right, kinds = {"faster", "equivalent", "slower", "inconclusive"}, {}
for line in sys.stdin:
    row = json.loads(line)
    source = row["source"]
    first = source.strip().split("\n")[0]
    kind = ("cuda" if "//@ launch" in source else "wrong" if "mask=r < rows - 1" in source else "example" if "four rows for each program" in first
            else "edit" if re.match("# (num_warps|steps)", first) else "file" if "rows for each" in first else "given")
    kinds.setdefault(kind, []).append(row["fate"])
    print("#%d from %s: %s %s, %s" % (row["candidate"], row["parent"], row["fate"], row["speedup"] and "%.2fx" % row["speedup"], first[:70]))
expected = (("the worked example is right", set(kinds.get("example", [])) & right and not set(kinds["example"]) - right),
            ("edits are right", kinds.get("edit") and not set(kinds["edit"]) - right),
            ("whole files are right", kinds.get("file") and not set(kinds["file"]) - right),
            ("what is wrong on purpose is wrong", kinds.get("wrong") and set(kinds["wrong"]) == {"wrong"}))
for what, holds in expected:
    print(("ok   " if holds else "FAIL ") + what)
sys.exit(not all(holds for _, holds in expected))'
check $? "what was written is measured"
echo "$failed failed"
[ $failed -eq 0 ]
