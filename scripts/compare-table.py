#!/usr/bin/env python3
"""Makes tables of what tests/gpu/compare.sh measured.

    scripts/compare-table.py compare.jsonl[.gz] [CONTROL [OURS]]      variants, default all/best-of-n and rank/greedy

Per problem and variant the median final speedup over its seeds, with what was considered, measured and used, and when the search
first had a kernel within 2 % of the best known one: the best that any search of the file ended with on that problem, or what was known
before where searches ended when they were that near (KCAST_COMPARE_KNOWN) and one was. Of these times the median is over all searches, of which some may never have had it; wall times of incumbents are recorded since 2026-11-25.
Over all problems the geometric means of final speedups, and of the times until then, in which a search that never had it counts
with all of its time, over the control's and over ours, paired by problem and seed, with the 95 % interval of a bootstrap over both.
"""
import gzip
import json
import math
import random
import statistics
import sys

DRAWS = 4000
NEAR = 0.98  # of the best known


def read(path):
    rows = {}
    for line in (gzip.open if path.endswith(".gz") else open)(path, "rt"):
        row = json.loads(line)
        report = row["report"]
        best = report.get("best")
        rows[row["arm"], row["problem"], row["seed"]] = {
            "log2": best["log2_speedup"] if best else 0.0, "steps": report["steps"], "known": row.get("known"),
            **{name: report[name] for name in ("considered", "measured", "device_seconds", "compile_seconds", "wall_seconds")}}
    return rows


def best_known(rows, problem):
    """As log2. A search ends when it is near to what was known before, if that can be had, so what it ended with says no more."""
    own = [row for (_, of, _), row in rows.items() if of == problem]
    best = max(row["log2"] for row in own)
    known = own[0]["known"]
    return min(best, math.log2(known)) if known and best >= math.log2(NEAR * known) else best


def first_near(row, best_log2, key):
    """Seconds until the search first had a kernel so near to the best known; infinite when never, None when not recorded."""
    for step in row["steps"]:
        if step["log2_speedup"] >= best_log2 + math.log2(NEAR):
            return step.get(key)
    return math.inf


def time_cell(own, best_log2, key):
    """The lower median, because a time that is infinite has no mean with another."""
    times = [first_near(row, best_log2, key) for row in own]
    if sum(time == math.inf for time in times) > len(times) // 2:
        return "never"
    return "not recorded" if None in times else f"{sorted(times)[(len(times) - 1) // 2]:.1f} s"


def log2_time(row, best_log2, key):
    time = first_near(row, best_log2, key)
    return math.log2(row[key] if time == math.inf else time)


def ratio(values, arm, control):
    """Of what has its log2 in values, by variant, problem and seed: arm's over control's."""
    pairs = {}
    for (of, problem, seed), value in values.items():
        if of == arm and (control, problem, seed) in values:
            pairs.setdefault(problem, []).append(value - values[control, problem, seed])
    pairs = list(pairs.values())
    if not pairs:
        return "not recorded"
    rng = random.Random(1)
    draws = sorted(statistics.fmean(statistics.fmean(rng.choices(row, k=len(row))) for row in rng.choices(pairs, k=len(pairs)))
                   for _ in range(DRAWS))
    middle = statistics.fmean(statistics.fmean(row) for row in pairs)
    return "{:.3f} [{:.3f}, {:.3f}]".format(*(2 ** x for x in (middle, draws[DRAWS // 40], draws[-DRAWS // 40])))


def main():
    rows = read(sys.argv[1])
    control = sys.argv[2] if len(sys.argv) > 2 else "all/best-of-n"
    ours = sys.argv[3] if len(sys.argv) > 3 else "rank/greedy"
    arms, problems, seeds = (list(dict.fromkeys(key[i] for key in rows)) for i in range(3))
    for arm in (control, ours):
        if arm not in arms:
            sys.exit(f"{sys.argv[1]} has no searches of {arm}, only of {', '.join(arms)}; name two of these as CONTROL and OURS")
    arms.sort(key=lambda arm: (arm != control, arm))
    problems.sort()
    best = {problem: best_known(rows, problem) for problem in problems}
    print("| problem | variant | final speedup, median (least, greatest) | considered | measured | device time | wall time "
          "| searches within 2 % of the best known | device time until then | wall time until then |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for problem in problems:
        for arm in arms:
            own = [rows[arm, problem, seed] for seed in seeds if (arm, problem, seed) in rows]
            if own:
                speedup = sorted(2 ** row["log2"] for row in own)
                middle = {name: statistics.median(row[name] for row in own) for name in own[0] if name not in ("steps", "known")}
                near = sum(math.isfinite(first_near(row, best[problem], "device_seconds")) for row in own)
                print(f"| {problem} | `{arm}` | {statistics.median(speedup):.3f}× ({speedup[0]:.3f}, {speedup[-1]:.3f}), {len(own)} searches "
                      f"| {middle['considered']:.0f} | {middle['measured']:.0f} | {middle['device_seconds']:.1f} s | {middle['wall_seconds']:.0f} s "
                      f"| {near} of {len(own)} | {time_cell(own, best[problem], 'device_seconds')} | {time_cell(own, best[problem], 'wall_seconds')} |")
    tables = {}
    if not any(row["known"] for row in rows.values()):
        tables["final speedup"] = {key: row["log2"] for key, row in rows.items()}
    for key, what in (("device_seconds", "device time"), ("wall_seconds", "wall time")):
        tables[f"{what} until within 2 %"] = {of: log2_time(row, best[of[1]], key) for of, row in rows.items()
                                              if first_near(row, best[of[1]], key)}
    for what, values in tables.items():
        print(f"\n| variant | {what}, over `{control}` | over `{ours}` |\n| --- | --- | --- |")
        for arm in arms:
            print(f"| `{arm}` | {ratio(values, arm, control)} | {ratio(values, arm, ours)} |")


if __name__ == "__main__":
    sys.exit(main())
