#!/usr/bin/env python3
"""An endpoint that answers as a language model would that is asked for programs in Python, with no model in it:
  scripted_model.py LOG     prints its url, then answers until it is killed
Where the program to start from has no Triton kernel it gives the worked example of the question itself, and one like it. Otherwise it edits
that program in the question's own form of edits, with the indentation of the lines left out: another number of warps or other steps; it
rewrites the whole file, and now and then writes it wrong or makes an edit that fits nowhere. A question for CUDA gets the example of such
programs and plain kernels with several numbers of threads, one for a forecast always the same. LOG has a line for each question for
programs: their first lines."""
import http.server
import json
import re
import sys

FORECAST = '{"bin": "E", "p": {"D": 0.3, "E": 0.4, "F": 0.3}, "p_correct": 0.9}'
CUDA = """// %(threads)d threads for each row, unrolled %(unroll)d times
//@ launch row_sum grid=(rows) block=(%(threads)d) args=(x, y, cols, a)
extern "C" __global__ void row_sum(const float *x, float *y, int cols, double a)
{
    __shared__ float sums[%(threads)d];
    float sum = 0;

    #pragma unroll %(unroll)d
    for (int c = threadIdx.x; c < cols; c += %(threads)d) {
        sum += x[(long long)blockIdx.x * cols + c];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = %(threads)d / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) {
            sums[threadIdx.x] += sums[threadIdx.x + step];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        y[blockIdx.x] = (float)a * sums[0];
    }
}
"""


def parent(question):
    """The program to start from; None: the baseline."""
    quoted = re.findall(r"Start from this candidate.*?\n==== candidate (\w+)\n(.*?)\n==== end \1\n", question, re.S)
    return quoted[-1][1] if quoted else None


def example(question):
    return re.search(r"A whole file, for y\[r\].*?```\n(.*?)```\n", question, re.S).group(1)


def edit(comment, line, replacement):
    return f"# {comment}\n<<<<<<< SEARCH\n{line.strip()}\n=======\n{replacement.strip()}\n>>>>>>> REPLACE\n"


def changed(source, name, factor):
    """An edit of the last line that names a constant, by a factor; None: there is none."""
    lines = [line for line in source.split("\n") if re.search(rf"\b{name}=\d+", line)]
    if not lines:
        return None
    value = int(re.findall(rf"\b{name}=(\d+)", lines[-1])[-1])
    new = max(1, int(value * factor))
    return edit(f"{name} {new} instead of {value}", lines[-1], re.sub(rf"\b{name}=\d+", f"{name}={new}", lines[-1]))


def rewritten(source, number):
    """The whole program with other sizes."""
    rows, warps = (1, 2, 8, 16)[number % 4], (2, 4, 8)[number // 4 % 3]
    for name, value in (("ROWS", rows), ("num_warps", warps)):
        source = re.sub(rf"\b{name}=\d+", f"{name}={value}", source)
    source = re.sub(r"cdiv\(rows, \d+\)", f"cdiv(rows, {rows})", source)
    return f"# {rows} rows for each program, {warps} warps\n" + re.sub(r"^#.*\n", "", source)


def programs(question):
    """What is written follows from the question alone: from its number in its round, the round and the batch."""
    draw = int(re.search(r"\(Draw (\d+)\.\)", question).group(1))
    number = draw % 8 + draw // 8 % 1000 + draw // 8000
    source = parent(question)
    if "is one file of Python" not in question:
        plain = [CUDA % {"threads": (512, 128, 64, 1024, 32)[n % 5], "unroll": (1, 2, 4, 8)[n // 5 % 4]} for n in (number, number + 7)]
        return [example(question)] + plain
    if not source or "@triton.jit" not in source:
        return [example(question), rewritten(example(question), number)]
    written = [rewritten(source, number), changed(source, "num_warps", 2 if number % 2 else 0.5)]
    steps = re.search(r"min\((\d+), triton", source)
    line = next(line for line in source.split("\n") if "min(" in line)
    new = {512: 1024, 1024: 2048, 2048: 256, 256: 512}.get(int(steps.group(1)), 512)
    written.append(edit(f"steps of {new}", line, line.replace(f"min({steps.group(1)},", f"min({new},")))
    if number % 3 == 1:
        written.insert(0, "# wrong on purpose\n" + source.replace("mask=r < rows", "mask=r < rows - 1"))
    if number % 3 == 2:
        written.insert(0, edit("fits nowhere", "there is no such line", "x"))
    return written


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        question = "\n".join(m["content"] if isinstance(m["content"], str) else "".join(p.get("text", "") for p in m["content"])
                             for m in body["messages"])
        text = FORECAST
        if "faster program" in question:
            written = programs(question)
            with open(sys.argv[1], "a", encoding="utf-8") as log:
                start = "the baseline" if parent(question) is None else "a candidate"
                print(f"from {start}: " + "; ".join(w.split("\n", 1)[0] for w in written), file=log)
            text = "Memory bounds it, so I change how it is read.\n" + "".join(f"```python\n{w.rstrip()}\n```\n" for w in written)
        reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
                            "usage": {"prompt_tokens": len(question) // 4, "completion_tokens": len(text) // 4}}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}/v1", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
