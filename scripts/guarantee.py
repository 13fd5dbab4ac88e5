#!/usr/bin/env python3
"""How often what a search says of the unmeasured comes true, and the constant that it rests on.

  guarantee.py [--fit] FILE...

FILE: what `kcast-replay --json` printed. Without --fit: of the searches that said "none is more than
X % faster", the share in which that was so, in all and by space, and how large X was. With --fit: the
constants GUARANTEE_EXPECTED of client/policy/guarantee.c that these searches give, at several levels
(shares of searches of which something false is said), and the coverage of spaces that each was not
fitted on (leave one space out). The constant in use is that of the level at which this is the
confidence that is stated.
"""
import argparse
import json
import math
from collections import defaultdict

PRIOR = 2.0  # PROMISES_PRIOR
LEAST = 1  # percent, the least that is said
FLOOR = math.log2(1.05)


def levels():
    percent = [0.5 * i if i < 9 else 4 * 1.22 ** (i - 8) for i in range(24)]
    return [math.log2(1 + p / 100) for p in percent]


LEVELS = levels()


def corrected(row):
    factor = (row["kept"] + PRIOR) / (row["promised"] + PRIOR)
    return [max(n * factor, 1e-12) for n in row["survey"]]


def expected_at(row, log2):
    """How many candidates were expected to lie beyond this margin."""
    numbers = corrected(row)
    if log2 <= 0:
        return numbers[0]
    for i in range(1, len(LEVELS)):
        if log2 <= LEVELS[i]:
            part = (log2 - LEVELS[i - 1]) / (LEVELS[i] - LEVELS[i - 1])
            return math.exp((1 - part) * math.log(numbers[i - 1]) + part * math.log(numbers[i]))
    return 0.0


def margin(row, constant):
    """As guarantee_of_run does it; infinite when nothing can be said."""
    numbers = corrected(row)
    for i, number in enumerate(numbers):
        if number <= constant:
            if i == 0:
                return LEVELS[0]
            before = math.log(numbers[i - 1])
            part = (before - math.log(constant)) / (before - math.log(number))
            return LEVELS[i - 1] + part * (LEVELS[i] - LEVELS[i - 1])
    return math.inf


def said_of(log2):
    """The whole percent that is said of this margin, as log2."""
    return log2 if not math.isfinite(log2) else math.log2(1 + max(math.ceil(percent(log2) - 0.001), LEAST) / 100)


def conformity(row):
    """The greatest constant by which what is said of this search is false is just below this number:
    what was expected beyond the greatest margin that is still said to be less than there was."""
    left = math.ceil(percent(row["left_log2"] or 0) - 1e-9) - 1  # whole percent, below what was left
    return expected_at(row, math.log2(1 + left / 100)) if left >= LEAST else math.inf


def quantile(values, share):
    """The largest value with at most this share of the values strictly below it."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def percent(log2):
    return 100 * (2**log2 - 1)


def describe(rows, stated):
    """rows with the margin that was said of each; prints coverage and size."""
    said = [(r, s) for r, s in zip(rows, stated) if s is not None and math.isfinite(s)]
    if not said:
        return "nothing was said"
    hit = sum((r["left_log2"] or 0) <= s + 1e-9 for r, s in said) / len(said)
    five = sum(s <= FLOOR + 1e-9 for _, s in said) / len(rows)
    middle = sorted(s for _, s in said)[len(said) // 2]
    return (f"said in {100 * len(said) / len(rows):.0f} % of {len(rows)}, true in {100 * hit:.1f} % of these; "
            f"at most 5 % in {100 * five:.0f} %; median {percent(middle):.1f} %")


def fit(rows):
    by_space = defaultdict(list)
    for row in rows:
        by_space[row["space"]].append(row)
    for share in (0.12, 0.10, 0.09, 0.08, 0.07, 0.06, 0.04):
        constant = quantile([conformity(r) for r in rows], share)
        order, said, exact, true = [], [], [], []
        for space, mine in by_space.items():
            one = quantile([conformity(r) for r in rows if r["space"] != space], share)
            for row in mine:
                order.append(row)
                exact.append(margin(row, one))
                said.append(said_of(margin(row, one)))
            finite = [r for r in mine if math.isfinite(margin(r, one))]
            true.append((sum((r["left_log2"] or 0) <= said_of(margin(r, one)) + 1e-9 for r in finite)
                         / max(len(finite), 1), space))
        print(f"level {share}: constant {constant:.3f}; worst spaces: "
              + ", ".join(f"{name} {100 * share_true:.0f} %" for share_true, name in sorted(true)[:3]))
        print(f"  left out, as estimated: {describe(order, exact)}")
        print(f"  left out, as said:      {describe(order, said)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--least", type=int, default=30, help="measurements of a search that counts for --fit")
    parser.add_argument("file", nargs="+")
    options = parser.parse_args()
    rows = []
    for path in options.file:
        with open(path) as lines:
            rows += [json.loads(line) for line in lines]
    rows = [r for r in rows if r.get("survey") and r["left"] > 0 and r.get("forecaster") != "perfect"]
    if options.fit:
        fit([r for r in rows if r["measured"] >= options.least])
        return
    groups = defaultdict(list)
    for row in rows:
        groups[row["policy"]].append(row)
        groups[f"{row['policy']}, {row['space']}"].append(row)
    for name in sorted(groups):
        mine = groups[name]
        print(f"{name}: as said: {describe(mine, [r['stated_log2'] for r in mine])}")
        print(f"{' ' * len(name)}  estimate: {describe(mine, [r['beyond_log2'] for r in mine])}")


main()
