#!/usr/bin/env python3
"""Replays searches on spaces that nothing was chosen on, and compares them by kernel family.

  held-out.py [--seeds N] [--measurements N] [--policies LIST] [--forecasters LIST] [--families WORDS]
              [--save FILE] SPACE...

Every search gets the device time that so many measurements of the space take on average. The final
speedup of a policy is divided by that of greedy without a surrogate (all/greedy) with the same seed;
the geometric mean of a space's ratios counts for its family, the first of the words that its file's
name has, and the interval is Student's t over families. Programs: those of $KCAST_BIN, or build/release/bin.
"""
import argparse
import json
import math
import os
import subprocess
import sys
from collections import defaultdict

T975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365}
CONTROL = ("all", "greedy")


def command(name, *arguments):
    path = os.path.join(os.environ.get("KCAST_BIN", "build/release/bin"), name)
    return subprocess.run([path, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def replay(space, options):
    rows = [json.loads(line) for line in command("kcast", "export", space).splitlines()]
    measurable = sum(row["verdict"] != "compile-error" for row in rows)
    share = min(100.0, 100.0 * options.measurements / measurable)
    out = command("kcast-replay", space, "--policy", options.policies, "--strategy", "greedy",
                  "--forecaster", options.forecasters, "--budget", f"{share:.3f}%", "--seeds", str(options.seeds), "--json")
    return [json.loads(line) for line in out.splitlines()]


def arm_of(row):
    """The policy, with its forecaster where that is not the model."""
    return row["policy"] + ("/perfect" if row["forecaster"] == "perfect" else "")


def family_of(space, words):
    name = os.path.basename(space).lower()
    return next((word for word in words if word in name), name)


def mean(values):
    return sum(values) / len(values)


def interval(values):
    """Mean and 95 % interval of log2 ratios, as ratios."""
    centre, n = mean(values), len(values)
    if n < 2:
        return 2**centre, math.nan, math.nan
    deviation = math.sqrt(sum((v - centre) ** 2 for v in values) / (n - 1))
    half = T975.get(n - 1, 1.96) * deviation / math.sqrt(n)
    return 2**centre, 2 ** (centre - half), 2 ** (centre + half)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--measurements", type=float, default=110)
    parser.add_argument("--policies", default="all,rank")
    parser.add_argument("--forecasters", default="static", help="static, perfect")
    parser.add_argument("--families", default="convolution,gemm,pnpoly,dedispersion,hotspot")
    parser.add_argument("space", nargs="+")
    parser.add_argument("--save", help="append every search to this file, for scripts/guarantee.py")
    options = parser.parse_args()
    words = options.families.split(",")
    ratio = defaultdict(lambda: defaultdict(list))  # by policy and family: one mean for each space
    totals = defaultdict(lambda: defaultdict(float))  # by policy
    for space in options.space:
        rows = replay(space, options)
        if options.save:
            with open(options.save, "a") as out:
                out.writelines(json.dumps(row) + "\n" for row in rows)
        control = {r["seed"]: r for r in rows if (r["policy"], r["strategy"]) == CONTROL}
        for policy in {arm_of(r) for r in rows}:
            mine = [r for r in rows if arm_of(r) == policy]
            logs = [r["best_log2"] - control[r["seed"]]["best_log2"] for r in mine]
            ratio[policy][family_of(space, words)].append(mean(logs))
            for key in ("considered", "measured", "compile_seconds", "simulated_seconds", "fraction_of_best",
                        "improvers_looked_at", "passed_over_better"):
                totals[policy][key] += sum(r[key] for r in mine) / len(mine)
        print(f"{os.path.basename(space)}: " + ", ".join(
            f"{p} {2 ** ratio[p][family_of(space, words)][-1]:.3f}" for p in sorted(ratio)), file=sys.stderr)
    count, base = len(options.space), totals["all"]
    print(f"{count} spaces, {options.seeds} seeds, device time of {options.measurements:g} measurements\n")
    print("| policy | final speedup over all/greedy, by family | worst space | of the best | considered | "
          "measured | compile time | wall time | passed over |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for policy in sorted(ratio):
        families = [mean(v) for v in ratio[policy].values()]
        worst = 2 ** min(v for values in ratio[policy].values() for v in values)
        t = totals[policy]
        compiling = f"{t['compile_seconds'] / base['compile_seconds']:.2f}" if base["compile_seconds"] else "–"
        print("| `%s` | %.3f [%.3f, %.3f] | %.3f | %.3f | %.0f | %.0f | × %s | × %.2f | %.1f %% |" % (
            policy, *interval(families), worst, t["fraction_of_best"] / count, t["considered"] / count,
            t["measured"] / count, compiling, t["simulated_seconds"] / base["simulated_seconds"],
            100 * t["passed_over_better"] / max(t["improvers_looked_at"], 1)))
    print()
    for policy in sorted(ratio):
        print(f"{policy}: " + ", ".join(f"{f} {2 ** mean(v):.3f} ({len(v)})" for f, v in ratio[policy].items()))


if __name__ == "__main__":
    main()
