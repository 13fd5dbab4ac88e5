#!/usr/bin/env python3
"""Holds `kcast import kernel-tuner` against Kernel Tuner itself, which it needs (pip install kernel_tuner) and a gcc.

    scripts/check-kernel-tuner.py build/debug/bin/kcast

Tunes a small C function, some configurations of which do not compile or fail, and imports the cache file as it is while
tuning goes on and afterwards, and the T4 results; compares every candidate with what Kernel Tuner returned. Run by hand.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

import kernel_tuner
import numpy
from kernel_tuner.core import DeviceInterface
from kernel_tuner.file_utils import store_output_file
from kernel_tuner.util import RuntimeFailedConfig

SOURCE = """
#include <chrono>
#ifndef BLOCK
#define BLOCK 1
#endif
extern "C" float scale(float *out, const float *in, int n) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < n; i += BLOCK)
        for (int j = i; j < i + BLOCK && j < n; j++)
            out[j] = KIND * FACTOR * in[j];
    return std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count();
}
"""


def convert(kcast, path, space, *options):
    subprocess.run([kcast, "import", "kernel-tuner", path, "-o", space, "--quiet", *options], check=True)
    lines = subprocess.run([kcast, "export", space], check=True, capture_output=True, text=True).stdout
    return {row["name"]: row for row in map(json.loads, lines.splitlines())}


def compare(what, rows, results, params):
    base = None
    names = {" ".join(f"{key}={result[key]}" for key in params): result for result in results}
    assert set(rows) == set(names), f"{what}: {sorted(rows)} are not {sorted(names)}"
    for name, result in names.items():
        row = rows[name]
        if "__error__" in result:
            assert row["verdict"] in ("compile-error", "crash") and row["speedup"] is None, (what, row)
            continue
        base = result["time"] * row["speedup"] if base is None else base
        assert math.isclose(result["time"] * row["speedup"], base, rel_tol=1e-9), (what, row)
        assert row["ci95"][0] <= row["speedup"] <= row["ci95"][1], (what, row)
        assert math.isclose(row["compile_seconds"], result["compile_time"] / 1e3, rel_tol=1e-9), (what, row)
        held = (result["verification_time"] + result["benchmark_time"]) / 1e3
        assert math.isclose(row["seconds"]["held"], held, rel_tol=1e-9), (what, row)
    median = sorted(r["time"] for r in results if "__error__" not in r)
    assert math.isclose(base, median[(len(median) - 1) // 2], rel_tol=1e-9), f"{what}: the baseline is not the median"
    print(f"{what}: {len(rows)} configurations agree")


def fail_some():
    """Kernel Tuner's C backend lets an exception end the tuning where those for GPUs note a failure; this notes two kinds."""
    compile_kernel, benchmark = DeviceInterface.compile_kernel, DeviceInterface.benchmark

    def compile_or_fail(self, instance, verbose):
        return None if instance.params["BLOCK"] == 64 else compile_kernel(self, instance, verbose)

    def benchmark_or_fail(self, func, gpu_args, instance, *rest, **named):
        if instance.params["BLOCK"] == 16 and instance.params["FACTOR"] == 2.25:
            return {"__error__": RuntimeFailedConfig()}
        return benchmark(self, func, gpu_args, instance, *rest, **named)

    DeviceInterface.compile_kernel, DeviceInterface.benchmark = compile_or_fail, benchmark_or_fail


def main():
    fail_some()
    kcast = os.path.abspath(sys.argv[1])
    params = {"BLOCK": [1, 4, 16, 64], "FACTOR": [1.5, 2.25], "KIND": ["1.0f", "(float)2"]}
    n = numpy.int32(100000)
    arguments = [numpy.zeros(n, numpy.float32), numpy.random.rand(n).astype(numpy.float32), n]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where the tuner leaves what it compiles
        cache, t4, space = (os.path.join(folder, name) for name in ("cache.json", "t4.json", "a.space"))
        results, _ = kernel_tuner.tune_kernel(
            "scale", SOURCE, int(n), arguments, params, lang="C", compiler="g++", cache=cache, quiet=True)
        compare("closed cache", convert(kcast, cache, space, "--device", "cpu"), results, params)
        text = open(cache).read()
        open(cache, "w").write(text[: text.rindex("}\n}")] + ",")
        compare("open cache", convert(kcast, cache, space, "--device", "cpu"), results, params)
        store_output_file(t4, results, params)
        compare("T4 results", convert(kcast, t4, space, "--problem", "scale", "--device", "cpu"), results, params)


main()
