#!/usr/bin/env python3
"""Whether JSON lines of today say all that the same lines of before said: same_as_before.py TODAY BEFORE

Fields that have been added since may say anything. Numbers may differ by rounding, since sums are made in other orders.
"""
import json
import math
import sys


def differs(now, then, where):
    if isinstance(then, dict) and isinstance(now, dict):
        for key in then:
            if key not in now:
                yield f"{where}/{key} is gone"
            else:
                yield from differs(now[key], then[key], f"{where}/{key}")
    elif isinstance(then, list) and isinstance(now, list) and len(now) == len(then):
        for i, (a, b) in enumerate(zip(now, then)):
            yield from differs(a, b, f"{where}[{i}]")
    elif isinstance(then, (int, float)) and isinstance(now, (int, float)) and not isinstance(then, bool):
        if not math.isclose(now, then, rel_tol=1e-12, abs_tol=1e-300):
            yield f"{where} is {now}, it was {then}"
    elif isinstance(then, str) and isinstance(now, int) and then == str(now):
        pass  # seeds were texts once
    elif now != then:
        yield f"{where} is {now!r}, it was {then!r}"


def main():
    today, before = ([json.loads(line) for line in open(path, encoding="utf-8")] for path in sys.argv[1:3])
    found = list(differs(today, before, "line"))
    print("\n".join(found))
    return 1 if found else 0


sys.exit(main())
