#!/usr/bin/env python3
"""Prints a table of spaces for docs/spaces.md, one row per file.

    scripts/spaces-table.py build/debug/bin/kcast docs/h200/spaces/*.space

Speedups are of correct candidates, of the second measurement where there is one; device time is that of all measurements,
each counted once, though candidates of the same object share it.
"""
import json
import os
import statistics
import subprocess
import sys

FAILED = ("crash", "timeout", "rejected", "quarantined")


def row(kcast, path):
    text = subprocess.run([kcast, "export", path], check=True, capture_output=True, text=True).stdout
    lines = [json.loads(line) for line in text.splitlines()]
    verdicts = [line["verdict"] for line in lines]
    speedups = [line["speedup"] for line in lines if line["speedup"] is not None]
    measured = {line["object"] or line["name"]: line for line in lines}.values()
    held = sum(line[key]["held"] or 0 for line in measured for key in ("seconds", "record_seconds") if line[key])
    return [
        os.path.basename(path).removesuffix(".space"),
        f"{len(lines):,}",
        f"{len(speedups):,}",
        str(verdicts.count("wrong")),
        str(verdicts.count("compile-error")),
        str(sum(verdicts.count(name) for name in FAILED)),
        f"{max(speedups):.3f}×",
        f"{statistics.median(speedups):.3f}×",
        f"{held:.0f} s",
    ]


print("| space | candidates | correct | wrong | did not compile | failed otherwise | best speedup | median | device time |")
print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
for path in sys.argv[2:]:
    print("| " + " | ".join(row(sys.argv[1], path)) + " |")
