#!/usr/bin/env python3
"""Makes tables of searches that `kcast replay --json` or scripts/held-out.py printed.

    scripts/replay-tables.py [--control ARM] [--random ARM] [--ours ARM] [--only final,costs,…] FILE…

Arms are POLICY/STRATEGY, with /perfect for the perfect forecaster, or a peer's name. Ratios of final
speedups are paired by space and seed: the mean over the seeds of a space, then over the spaces of a kernel
family, then over families; of logarithms, so that they are geometric means. Intervals by family are 95 % of
Student's t over families. Those by space are of a bootstrap over spaces and seeds, as `kcast replay` has
them; the same kernel on several devices is several spaces there, which are not independent.
"""
import argparse
import json
import math
import random
import statistics
import sys
from collections import defaultdict

import student

# The kernel families, each with the words of which its spaces' names have one; the first that fits.
FAMILIES = {
    "convolution": ("convolution", "conv1d", "conv3x3", "stencil"),
    "matrix product": ("gemm", "gemv"),
    "attention": ("attention",),
    "row reduction": ("cross_entropy", "layernorm", "softmax", "topk"),
    "data movement": ("embedding_bag", "rope", "transpose"),
    "dedispersion": ("dedispersion",),
    "pnpoly": ("pnpoly",),
    "hotspot": ("hotspot",),
    "expdist": ("expdist",),
}
TABLES = {
    "final": "Final kernels", "costs": "Costs", "missed": "What was passed over", "audits": "What audits say of it", "claims": "Ours against each", "families": "By kernel family",
    "spaces": "By space", "within": "Within 20 % of the best",
}
ORDER = ("all/", "rank/", "threshold/", "budget/", "risk/", "published/", "published-correct/", "tvm")  # of rows; then the others
DRAWS = 2000  # of a bootstrap
SAME = 1e-9  # log2 speedups that differ by less are the same number, printed and read again


def family_of(space):
    return next((name for name, words in FAMILIES.items() if any(word in space for word in words)), space)


def arm_of(row):
    return row["policy"] + ("/" + row["strategy"] if row["strategy"] else "") + ("/perfect" if row["forecaster"] == "perfect" else "")


def read(paths):
    """{arm: {(space, seed): row}}; a search that is there twice is refused."""
    arms = defaultdict(dict)
    for path in paths:
        with open(path) as lines:
            for row in map(json.loads, lines):
                own, key = arms[arm_of(row)], (row["space"], row["seed"])
                if key in own:
                    sys.exit(f"{path}: {arm_of(row)} on {row['space']} with seed {row['seed']} is there twice; give each search once")
                own[key] = row
    return arms


class Replays:
    def __init__(self, arms, control):
        self.arms, self.control = arms, arms[control]
        self.spaces = sorted({space for space, _ in self.control})
        self.seeds = len({seed for _, seed in self.control})
        self.families = sorted({family_of(space) for space in self.spaces})

    def names(self):
        def place(arm):
            return next((i for i, begin in enumerate(ORDER) if arm.startswith(begin)), len(ORDER)), arm
        return sorted(self.arms, key=place)

    def is_peer(self, arm):
        """A peer is simulated without compiling and waiting, so that its wall time says nothing."""
        return next(iter(self.arms[arm].values()))["strategy"] == ""

    def rows(self, arm, spaces=None):
        return [row for (space, _), row in self.arms[arm].items() if spaces is None or space in spaces]

    def pairs(self, arm, other):
        """{space: log2 ratios of final speedups, of each seed that both arms have}."""
        ret = defaultdict(list)
        for key, row in self.arms[arm].items():
            if key in self.arms[other]:
                ret[key[0]].append(row["best_log2"] - self.arms[other][key]["best_log2"])
        return ret

    def ratios(self, arm, other):
        """Mean log2 ratios of final speedups: {space: of it}, {family: of it}."""
        spaces = {space: statistics.fmean(values) for space, values in self.pairs(arm, other).items()}
        families = defaultdict(list)
        for space, log2 in spaces.items():
            families[family_of(space)].append(log2)
        return spaces, {name: statistics.fmean(values) for name, values in families.items()}

    def total(self, arm, key):
        return statistics.fmean(row[key] for row in self.rows(arm))

    def times(self, arm, control):
        """Of each search: device time until the control's final result, over what the control was given."""
        ret = []
        for key, row in self.arms[arm].items():
            other = control.get(key)
            if other:
                reached = [seconds for seconds, log2 in row["incumbents"] if log2 >= other["best_log2"] - SAME]
                ret.append(reached[0] / other["given_seconds"] if reached else math.inf)
        return sorted(ret)


def cell(values):
    """Mean and interval of log2 ratios, as ratios."""
    mean, low, high = (2**x for x in student.interval(values))
    return f"{mean:.3f} [{low:.3f}, {high:.3f}]" if len(values) > 1 else f"{mean:.3f}"


def bootstrap(pairs):
    """The mean over spaces of the mean over seeds, with the ends of a bootstrap's interval over both."""
    rng, spaces = random.Random(1), list(pairs.values())
    draws = sorted(statistics.fmean(statistics.fmean(rng.choices(values, k=len(values))) for values in rng.choices(spaces, k=len(spaces)))
                   for _ in range(DRAWS))
    return statistics.fmean(map(statistics.fmean, spaces)), draws[DRAWS // 40], draws[-DRAWS // 40 - 1]


def bootstrap_cell(pairs):
    return "{:.3f} [{:.3f}, {:.3f}]".format(*(2**x for x in bootstrap(pairs)))


def table(heading, rows):
    print("| " + " | ".join(heading) + " |\n|" + " --- |" * len(heading))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def percent(part, digits=0):
    return "never" if math.isinf(part) else f"{100 * part:.{digits}f} %"


def print_final(replays, options):
    rows = []
    for arm in replays.names():
        spaces, families = replays.ratios(arm, options.control)
        found = sorted(row["fraction_of_best"] for row in replays.rows(arm))
        worst = min(spaces, key=spaces.get)
        rows.append([f"`{arm}`", cell(list(families.values())), bootstrap_cell(replays.pairs(arm, options.control)),
                     f"{2 ** spaces[worst]:.3f} ({worst})" if arm != options.control else "–",
                     f"{statistics.fmean(found):.3f}, {statistics.median(found):.3f}, {found[0]:.3f}",
                     percent(sum(x >= 0.99 for x in found) / len(found))])
    table(["variant", f"final speedup over `{options.control}`, by family", "by space", "worst space",
           "of the best: mean, median, worst search", "within 1 %"], rows)


def print_costs(replays, options):
    rows = []
    for arm in replays.names():
        times = replays.times(arm, replays.control)
        middle = times[(len(times) - 1) // 2]
        own = replays.rows(arm)
        unused = [max(0, 1 - row["device_seconds"] / row["given_seconds"]) for row in own if row["left"] > 0]
        def over(key):
            whole = replays.total(options.control, key)
            return "–" if replays.is_peer(arm) or whole == 0 else f"× {replays.total(arm, key) / whole:.2f}"
        rows.append([f"`{arm}`", f"{replays.total(arm, 'considered'):.0f}", f"{replays.total(arm, 'measured'):.0f}", over("compile_seconds"),
                     over("simulated_seconds"),
                     "never" if math.isinf(middle) else f"{middle:.2f}", percent(sum(map(math.isfinite, times)) / len(times)),
                     "–" if replays.is_peer(arm) or not unused else f"{percent(statistics.fmean(unused), 1)}, {percent(max(unused))}"])
    table(["variant", "considered", "measured", "compile time", "wall time",
           f"device time to the final result of `{options.control}`, over its budget", "searches that had it",
           "budget left unused: mean, most"], rows)


def print_missed(replays, options):
    rows = []
    for arm in replays.names():
        if not replays.is_peer(arm):
            own = replays.rows(arm)
            looked = sum(row["improvers_looked_at"] for row in own)
            shares = [row["passed_over_better_share"] for row in own if row["passed_over_better_share"] is not None]
            rows.append([f"`{arm}`", f"{looked:,}", f"{sum(row['passed_over'] for row in own):,}",
                         f"{sum(row['passed_over_better'] for row in own):,}",
                         percent(sum(row["passed_over_better"] for row in own) / max(looked, 1), 1),
                         percent(statistics.fmean(shares), 1) if shares else "–", percent(max(shares), 0) if shares else "–"])
    table(["variant", "improvers looked at", "passed over", "of these better than the last incumbent", "share of improvers",
           "mean of a search's share", "worst search"], rows)


def print_audits(replays, options):
    """Shares of what audits were drawn from, or stand for; the truth is in the recorded space."""
    rows = []
    for arm in replays.names():
        own = [row for row in replays.rows(arm) if row.get("audit_measured", 0) > 0]
        if not own:
            continue
        truths = [row["audit_improvers"] / row["audit_among"] for row in own]
        held = sum(truth <= row["audit_upper"] for truth, row in zip(truths, own))
        errors = defaultdict(list)
        for truth, row in zip(truths, own):
            if row["audit_share"] is not None:  # there is no estimate where not all could have been audited
                errors[row["space"]].append(row["audit_share"] - truth)
        estimated = [row["audit_share"] for row in own if row["audit_share"] is not None]
        low, high = bootstrap(errors)[1:] if errors else (math.nan, math.nan)
        rows.append([f"`{arm}`", f"{len(own)} of {len(replays.rows(arm))}", f"{statistics.fmean(row['audit_measured'] for row in own):.1f}",
                     percent(statistics.fmean(truths), 2), percent(statistics.fmean(estimated), 2) if estimated else "–",
                     f"{100 * low:+.2f} to {100 * high:+.2f}" if errors else "–", percent(statistics.median(row["audit_upper"] for row in own)),
                     f"{held} ({percent(held / len(own), 1)})"])
    if not rows:
        print("None of these searches has audits.\n")
        return
    table(["variant", "searches with audits", "audits of each", "improvers of what was left: truth", "audits' estimate",
           "estimate less truth, 95 %, in points", "upper bound at 90 %, median", "bounds that hold"], rows)


def print_claims(replays, options):
    """Ours against each other arm, corrected for all that are compared."""
    others = [arm for arm in replays.names() if arm != options.ours and not arm.endswith("/perfect")
              and not arm.startswith(tuple(options.own))]
    rows, by_family, by_space = [], [], []
    for arm in others:
        spaces, families = replays.ratios(options.ours, arm)
        by_family.append(list(families.values()))
        by_space.append(list(spaces.values()))
    for arm, families, spaces, p_family, p_space in zip(
            others, by_family, by_space, student.holm([student.p_value(x) for x in by_family]),
            student.holm([student.p_value(x) for x in by_space])):
        rows.append([f"`{arm}`", cell(families), f"{sum(x > SAME for x in families)} of {len(families)}", f"{p_family:.2f}",
                     cell(spaces), f"{sum(x > SAME for x in spaces)} of {len(spaces)}", f"{p_space:.3f}"])
    table([f"`{options.ours}` over", "by family", "ahead on families", f"p, corrected for {len(others)}", "by space", "ahead on spaces",
           "p, corrected"], rows)


def print_families(replays, options):
    rows = []
    for arm in [arm for arm in options.columns.split(",") if arm in replays.arms and arm != options.control]:
        families = replays.ratios(arm, options.control)[1]
        rows.append([f"`{arm}`"] + [f"{2 ** families[name]:.3f}" if name in families else "–" for name in replays.families])
    counts = [sum(family_of(space) == name for space in replays.spaces) for name in replays.families]
    table([f"over `{options.control}`"] + [f"{name} ({count})" for name, count in zip(replays.families, counts)], rows)


def print_spaces(replays, options):
    arms = [arm for arm in options.columns.split(",") if arm in replays.arms]
    rows = []
    for space in replays.spaces:
        row = [space]
        for arm in arms:
            found = [r["fraction_of_best"] for r in replays.rows(arm, {space})]
            row.append(f"{statistics.fmean(found):.3f}, {statistics.median(found):.3f}, {min(found):.3f}" if found else "–")
        rows.append(row)
    table(["of the best: mean, median, worst search"] + [f"`{arm}`" for arm in arms], rows)


def print_within(replays, options):
    """Random points pass on a space when half of their searches do."""
    shares = {space: statistics.fmean(row["fraction_of_best"] >= 0.8 for row in replays.rows(options.random, {space})) for space in replays.spaces}
    hard = {space for space, share in shares.items() if share < 0.5}
    print(f"Random points end within 20 % of the best in at least half of their searches on {len(shares) - len(hard)} of {len(shares)} "
          f"spaces. The others: {', '.join(f'{space} ({percent(shares[space])})' for space in sorted(hard)) or 'none'}.\n")
    if hard:
        table(["variant", "searches within 20 % of the best on these", "of the best there, mean"],
              [[f"`{arm}`", percent(statistics.fmean(row["fraction_of_best"] >= 0.8 for row in replays.rows(arm, hard))),
                f"{statistics.fmean(row['fraction_of_best'] for row in replays.rows(arm, hard)):.3f}"] for arm in replays.names()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--control", default="all/greedy")
    parser.add_argument("--random", default="all/best-of-n")
    parser.add_argument("--ours", default="rank/greedy")
    parser.add_argument("--own", default=["rank/", "threshold/", "budget/", "risk/"], type=lambda text: text.split(","),
                        help="beginnings of the names of other arms of ours, which are no claims")
    parser.add_argument("--columns", default="all/best-of-n,all/greedy,threshold/greedy,rank/greedy,rank/greedy/perfect",
                        help="arms of the tables by family and by space")
    parser.add_argument("--only", default=",".join(TABLES), help=", ".join(TABLES))
    parser.add_argument("--level", type=int, default=3, help="of headings")
    parser.add_argument("file", nargs="+")
    options = parser.parse_args()
    arms = read(options.file)
    for arm in (options.control, options.random, options.ours):
        if arm not in arms:
            sys.exit(f"there are no searches of {arm}, only of {', '.join(sorted(arms))}")
    replays = Replays(arms, options.control)
    print(f"{len(replays.spaces)} spaces of {len(replays.families)} families, {replays.seeds} seeds\n")
    for name in options.only.split(","):
        if name not in TABLES:
            sys.exit(f"--only: there is no table \"{name}\", only {', '.join(TABLES)}")
        print("#" * options.level, TABLES[name] + "\n")
        globals()[f"print_{name}"](replays, options)


if __name__ == "__main__":
    main()
