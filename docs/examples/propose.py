#!/usr/bin/env python3
"""Proposes candidates to kcast search --generator exec:docs/examples/propose.py: loops unrolled otherwise."""
import json
import random
import re
import sys

request = json.loads(sys.stdin.readline())
parent = request["parent"]["source"] if request["parent"] else request["problem"]["baseline"]
tried = {parent} | {result["source"] for result in request["results"] if "source" in result}
chance = random.Random(request["draw"])
lines = [line for line in parent.splitlines() if not line.startswith("#pragma GCC unroll")]
loops = [number for number, line in enumerate(lines) if re.match(r"\s*for \(", line)]
for _ in range(20 * request["count"]):
    number, times = chance.choice(loops), chance.choice([2, 3, 4, 6, 8, 12, 16])
    source = "\n".join(lines[:number] + [f"#pragma GCC unroll {times}"] + lines[number:]) + "\n"
    if source not in tried and request["count"] > 0:
        print(json.dumps({"name": f"line {number + 1} unrolled {times} times", "source": source}))
        tried.add(source)
        request["count"] -= 1
