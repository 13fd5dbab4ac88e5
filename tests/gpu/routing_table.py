#!/usr/bin/env python3
"""The figures of tests/gpu/routing.sh.

  routing_table.py WORK FOLDER...     reads WORK/FOLDER-all.events and WORK/FOLDER-NAME-SEED.events
"""
import glob
import json
import math
import os
import random
import statistics
import sys


def read(path):
    """Returns the log2 speedups of what was measured, in order, and of the candidates that were chosen before they were compiled the
    forecast and the outcome."""
    name, order, forecast, chosen = {}, [], {}, {}
    for line in open(path, encoding="utf-8"):
        event = json.loads(line)
        body = event["body"]
        if event["event"] == "proposed":
            name[body["candidate"]] = body["name"]
            chosen[body["candidate"]] = body.get("screened", 0) > 0
        elif event["event"] == "forecast" and body.get("forecast", {}).get("trained_rows", 0) > 0:
            forecast.setdefault(body["candidate"], body["forecast"]["mean_log2"])
        elif event["event"] == "measured" and body["purpose"] == 1 and "speedup" in body["result"]:
            order.append((body["candidate"], body["result"]["speedup"]["log2"]))
    pairs = [(forecast[c], y) for c, y in order if chosen[c] and c in forecast]
    return {name[c]: y for c, y in order}, pairs


def ranks(values):
    order = sorted(values)
    return [order.index(v) + (order.count(v) - 1) / 2 for v in values]


def agreement(pairs):
    """Spearman's rank correlation; None where it says nothing."""
    if len(pairs) < 5 or len({p for p, _ in pairs}) < 2:
        return None
    return statistics.correlation(ranks([p for p, _ in pairs]), ranks([y for _, y in pairs]))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    work, folders = sys.argv[1], sys.argv[2:]
    final = {}
    for folder in folders:
        outcome, _ = read(os.path.join(work, f"{folder}-all.events"))
        best = max(outcome.values())
        for who in ("this", "other"):
            paths = sorted(glob.glob(os.path.join(work, f"{folder}-{who}-*.events")))
            found = {path.rsplit("-", 1)[1]: read(path) for path in paths}
            runs = {seed: run for seed, run in found.items() if run[0]}
            if len(runs) < len(paths):
                print(f"{folder:12} {who:6} {len(paths) - len(runs)} searches measured nothing and are left out")
            if not runs:
                continue
            ends = {(folder, seed): max(outcome.get(n, -math.inf) for n in measured) - best for seed, (measured, _) in runs.items()}
            final[who] = final.get(who, {}) | ends
            runs = list(runs.values())
            agree = [a for a in (agreement(pairs) for _, pairs in runs) if a is not None]
            print(f"{folder:12} {who:6} {len(outcome)} kernels with a ratio, {len(runs)} searches of {statistics.mean(len(m) for m, _ in runs):.0f}: "
                  f"best found {2 ** statistics.mean(ends.values()):.3f} of the best; rank correlation of forecasts before compiling with outcomes "
                  f"{statistics.mean(agree) if agree else math.nan:.2f} ({statistics.mean(len(p) for _, p in runs):.1f} kernels a search)")
    both = [search for search in final.get("this", {}) if search in final.get("other", {})]
    if both:
        ratio = [final["this"][search] - final["other"][search] for search in both]
        draw = random.Random(1)
        means = sorted(statistics.mean(draw.choices(ratio, k=len(ratio))) for _ in range(4000))
        print(f"best found, this over other: {2 ** statistics.mean(ratio):.3f} [{2 ** means[100]:.3f}, {2 ** means[3899]:.3f}]")


main()
