#!/usr/bin/env python3
"""Makes tables of what tests/gpu/compare.sh measured.

    scripts/compare-table.py compare.jsonl[.gz] [CONTROL [OURS]]      variants, default all/best-of-n and threshold/greedy

Per problem and variant the median final speedup over its seeds, with what was considered, measured and used; over all problems the
geometric mean of final speedups over the control's and over ours, paired by problem and seed, with the 95 % interval of a bootstrap over both.
"""
import gzip
import json
import random
import statistics
import sys

DRAWS = 4000


def read(path):
    rows = {}
    for line in (gzip.open if path.endswith(".gz") else open)(path, "rt"):
        row = json.loads(line)
        report = row["report"]
        best = report.get("best")
        rows[row["arm"], row["problem"], row["seed"]] = {
            "log2": best["log2_speedup"] if best else 0.0,
            **{name: report[name] for name in ("considered", "measured", "device_seconds", "compile_seconds", "wall_seconds")}}
    return rows


def ratio(rows, arm, control, problems, seeds):
    pairs = [[rows[arm, problem, seed]["log2"] - rows[control, problem, seed]["log2"] for seed in seeds
              if (arm, problem, seed) in rows and (control, problem, seed) in rows] for problem in problems]
    pairs = [row for row in pairs if row]
    rng = random.Random(1)
    draws = sorted(statistics.fmean(statistics.fmean(rng.choices(row, k=len(row))) for row in rng.choices(pairs, k=len(pairs)))
                   for _ in range(DRAWS))
    middle = statistics.fmean(statistics.fmean(row) for row in pairs)
    return "{:.3f} [{:.3f}, {:.3f}]".format(*(2 ** x for x in (middle, draws[DRAWS // 40], draws[-DRAWS // 40])))


def main():
    rows = read(sys.argv[1])
    control = sys.argv[2] if len(sys.argv) > 2 else "all/best-of-n"
    ours = sys.argv[3] if len(sys.argv) > 3 else "threshold/greedy"
    arms, problems, seeds = (list(dict.fromkeys(key[i] for key in rows)) for i in range(3))
    arms.sort(key=lambda arm: (arm != control, arm))
    problems.sort()
    print("| problem | variant | final speedup, median (least, greatest) | considered | measured | device time | wall time |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for problem in problems:
        for arm in arms:
            own = [rows[arm, problem, seed] for seed in seeds if (arm, problem, seed) in rows]
            if own:
                speedup = sorted(2 ** row["log2"] for row in own)
                middle = {name: statistics.median(row[name] for row in own) for name in own[0]}
                print(f"| {problem} | `{arm}` | {statistics.median(speedup):.3f}× ({speedup[0]:.3f}, {speedup[-1]:.3f}), {len(own)} searches "
                      f"| {middle['considered']:.0f} | {middle['measured']:.0f} | {middle['device_seconds']:.1f} s | {middle['wall_seconds']:.0f} s |")
    print(f"\n| variant | final speedup over `{control}` | over `{ours}` |\n| --- | --- | --- |")
    for arm in arms:
        print(f"| `{arm}` | {ratio(rows, arm, control, problems, seeds)} | {ratio(rows, arm, ours, problems, seeds)} |")


if __name__ == "__main__":
    sys.exit(main())
