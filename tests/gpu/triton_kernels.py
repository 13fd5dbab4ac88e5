#!/usr/bin/env python3
"""Writes folders of Triton kernels that differ as those do that people and language models write for one problem: in tiles, warps and
stages, in how a loop or a grid is put, in the passes over a row, and in where a constant stands (argument, module, default, dictionary).

  triton_kernels.py FOLDER COUNT     FOLDER/PROBLEM/0.py … for the problems bf16_gemm, softmax and layernorm; the same in every run
"""
import os
import random
import sys

HEAD = "import triton\nimport triton.language as tl\n\n"


def place(draw, constants, warps, stages):
    """Returns lines of the module, parameters of the kernel and arguments of its launch that give it these constants."""
    parameters = "".join(f", {name}: tl.constexpr" for name in constants)
    launch = {"num_warps": warps, "num_stages": stages}
    kind = draw.choice(("argument", "module", "default", "dictionary"))
    if kind == "argument":
        return "", parameters, "".join(f", {name}={value}" for name, value in (constants | launch).items())
    if kind == "module":
        lines = "".join(f"{name.upper()}_ = {value}\n" for name, value in (constants | launch).items())
        return lines + "\n", parameters, "".join(f", {name}={name.upper()}_" for name in constants | launch)
    if kind == "default":
        return "", "".join(f", {name}: tl.constexpr = {value}" for name, value in constants.items()), "".join(
            f", {name}={value}" for name, value in launch.items())
    entries = ", ".join(f'"{name}": {value}' for name, value in (constants | launch).items())
    return f"META = {{{entries}}}\n\n", parameters, ", **META"


def bf16_gemm(draw):
    tall, wide, deep = draw.choice((16, 32, 64, 128, 256)), draw.choice((32, 64, 128, 256)), draw.choice((16, 32, 64, 128))
    warps, stages = draw.choice((2, 4, 8)), draw.choice((1, 2, 3, 4))
    wide = 64 if tall * wide > 32768 else wide
    stages = 1 if 2 * stages * deep * (tall + wide) > 220000 else stages
    lines, parameters, arguments = place(draw, {"BM": tall, "BN": wide, "BK": deep}, warps, stages)
    where = draw.choice(("""\
    pm = pid // tl.cdiv(N, BN)
    pn = pid % tl.cdiv(N, BN)
""", """\
    stripe = 8 * tl.cdiv(N, BN)
    first = pid // stripe * 8
    size = tl.minimum(tl.cdiv(M, BM) - first, 8)
    pm = first + pid % size
    pn = pid % stripe // size
"""))
    loop = draw.choice(("    for at in range(0, K, BK):\n", "    for step in range(0, (K + BK - 1) // BK):\n        at = step * BK\n"))
    add = draw.choice(("acc += tl.dot(a, b)", "acc = tl.dot(a, b, acc)"))
    grid = draw.choice((f"(M + {tall} - 1) // {tall} * ((N + {wide} - 1) // {wide})", f"triton.cdiv(M, {tall}) * triton.cdiv(N, {wide})"))
    return f"""{HEAD}{lines}
@triton.jit
def kernel(A, B, C, M, N, K{parameters}):
    pid = tl.program_id(0)
{where}    m = pm * BM + tl.arange(0, BM)[:, None]
    n = pn * BN + tl.arange(0, BN)[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
{loop}        k = at + tl.arange(0, BK)
        a = tl.load(A + m * K + k[None, :], mask=(m < M) & (k[None, :] < K), other=0.0)
        b = tl.load(B + k[:, None] * N + n, mask=(k[:, None] < K) & (n < N), other=0.0)
        {add}
    tl.store(C + m * N + n, acc.to(tl.bfloat16), mask=(m < M) & (n < N))


def bf16_gemm(A, B, C, M, N, K):
    kernel[({grid},)](A, B, C, M, N, K{arguments})
"""


def softmax(draw):
    kind = draw.choice(("whole", "passes", "online"))
    block, warps = draw.choice((128, 256, 512, 1024, 2048, 4096, 8192)), draw.choice((1, 2, 4, 8, 16, 32))
    warps = max(warps, 4) if kind == "whole" else warps
    evict = draw.choice(("", ', eviction_policy="evict_first"', ', eviction_policy="evict_last"'))
    exp = draw.choice(("tl.exp({})", "tl.exp2(({}) * 1.4426950408889634)"))
    value = f'tl.load(x + at + i, mask=i < n, other=-float("inf"){evict})'
    lines, parameters, arguments = place(draw, {} if kind == "whole" else {"BLOCK": block}, warps, 1)
    if kind == "whole":
        body = f"""    i = tl.arange(0, BLOCK)
    v = {value}
    e = {exp.format("v - tl.max(v, 0)")}
    tl.store(y + at + i, e / tl.sum(e, 0), mask=i < n)
"""
        parameters += ", BLOCK: tl.constexpr"
        arguments += ", BLOCK=triton.next_power_of_2(x.shape[1])"
    elif kind == "passes":
        body = f"""    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    for k in range(0, (n + BLOCK - 1) // BLOCK):
        i = k * BLOCK + tl.arange(0, BLOCK)
        most = tl.maximum(most, {value})
    top = tl.max(most, 0)
    part = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        part += {exp.format(value + " - top")}
    total = tl.sum(part, 0)
"""
    else:
        body = f"""    top = -float("inf")
    total = 0.0
    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        v = {value}
        new = tl.maximum(top, tl.max(v, 0))
        total = total * {exp.format("top - new")} + tl.sum({exp.format("v - new")}, 0)
        top = new
"""
    if kind != "whole":
        body += f"""    for k in range(0, n, BLOCK):
        i = k + tl.arange(0, BLOCK)
        tl.store(y + at + i, {exp.format(value + " - top")} / total, mask=i < n)
"""
    return f"""{HEAD}{lines}
@triton.jit
def kernel(x, y, n{parameters}):
    at = tl.program_id(0).to(tl.int64) * n
{body}

def softmax(x, y):
    kernel[(x.shape[0],)](x, y, x.shape[1]{arguments})
"""


def layernorm(draw):
    rows, block = draw.choice((1, 2, 4, 8)), draw.choice((128, 256, 512, 1024, 2048, 4096))
    rows = 1 if rows * block > 8192 else rows
    lines, parameters, arguments = place(draw, {"ROWS": rows, "BLOCK": block}, draw.choice((1, 2, 4, 8, 16)), draw.choice((1, 2, 3)))
    each = """\
    for at in range(0, n, BLOCK):
        i = at + tl.arange(0, BLOCK)[None, :]
        inside = (r < rows) & (i < n)
"""
    value = "tl.load(x + r * n + i, mask=inside, other=0.0).to(tl.float32)"
    one_pass = f"""{each}        d = tl.where(inside, {value} - first, 0.0)
        sums += d
        squares += d * d
    mean = tl.sum(sums, 1, keep_dims=True) / n
    factor = tl.rsqrt(tl.sum(squares, 1, keep_dims=True) / n - mean * mean + eps)
"""
    two_passes = f"""{each}        sums += tl.where(inside, {value} - first, 0.0)
    mean = tl.sum(sums, 1, keep_dims=True) / n
{each}        d = tl.where(inside, {value} - first - mean, 0.0)
        squares += d * d
    factor = tl.rsqrt(tl.sum(squares, 1, keep_dims=True) / n + eps)
"""
    return f"""{HEAD}{lines}
@triton.jit
def kernel(x, w, b, y, rows, n, eps{parameters}):
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    first = tl.load(x + r * n, mask=r < rows, other=0.0).to(tl.float32)
    sums = tl.zeros((ROWS, BLOCK), tl.float32)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
{draw.choice((one_pass, two_passes))}{each}        d = {value} - first - mean
        weight = tl.load(w + i, mask=i < n, other=0.0).to(tl.float32)
        offset = tl.load(b + i, mask=i < n, other=0.0).to(tl.float32)
        tl.store(y + r * n + i, (d * factor * weight + offset).to(tl.float16), mask=inside)


def layernorm(x, w, b, y, R, N, eps):
    kernel[((R + {rows} - 1) // {rows},)](x, w, b, y, R, N, eps{arguments})
"""


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    draw = random.Random(7)
    for write in (bf16_gemm, softmax, layernorm):
        folder = os.path.join(sys.argv[1], write.__name__)
        os.makedirs(folder, exist_ok=True)
        kernels = {}  # each once, in the order in which they were drawn
        while len(kernels) < int(sys.argv[2]):
            kernels[write(draw)] = True
        for number, text in enumerate(kernels):
            with open(os.path.join(folder, f"{number}.py"), "w", encoding="utf-8") as file:
                file.write(text)


main()
