#!/usr/bin/env python3
"""Prints in which order Kernel Tuner's strategies measure the candidates of spaces, for `kcast replay --orders`.

    python3 -m venv build/kernel-tuner && build/kernel-tuner/bin/pip install kernel_tuner==1.5.0
    build/kernel-tuner/bin/python scripts/kernel-tuner-orders.py build/release/bin/kcast --share 10 --seeds 30 SPACE… >FILE

Runs every strategy with its default hyper-parameters in Kernel Tuner's simulation mode, on a cache file of each space whose
benchmark times are the device time that each measurement was charged when the space was recorded. Kernel Tuner's budget is
that time alone: its own time, and failures to compile, cost nothing; what a strategy evaluates again costs nothing either.
Strategies get, besides, as many evaluations as are that share of the space, to which some of them fit their schedules;
one that ends, or fails, before the device time is used begins again, with what it has measured for nothing.

One line for each search: kernel-tuner/STRATEGY SPACE SEED, then the numbers of candidates as `kcast export` prints them.
"""
import argparse
import contextlib
import io
import json
import math
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import warnings

STRATEGIES = (
    "random_sample", "greedy_ils", "greedy_mls", "mls", "ordered_greedy_mls", "genetic_algorithm", "simulated_annealing",
    "basinhopping", "dual_annealing", "diff_evo", "pso", "firefly_algorithm", "hybrid_vndx", "adaptive_tabu_greywolf", "bayes_opt",
)
RESTARTS = 20  # of one search, at most
IDLE = 20  # a strategy that has evaluated as many times the space without anything new is stuck, and ends
SLOW = {"bayes_opt": 1500}  # left out where a space has more candidates: a search of it takes minutes


class Budget:
    """Device time alone, in place of kernel_tuner.util.TuningBudget."""

    def __init__(self, seconds, evaluations, stop, stuck):
        self.time_limit, self.max_fevals, self.stop, self.stuck = seconds, evaluations, stop, stuck
        self.used, self.num_fevals = 0.0, 0

    def add_evaluations(self, n=1):
        self.num_fevals += n

    def add_time(self, seconds=0, milliseconds=0):
        self.used += seconds + milliseconds / 1e3

    def get_evaluations_spent(self):
        return self.num_fevals

    def get_evaluations_remaining(self):
        return max(self.max_fevals - self.num_fevals, 0)

    def is_done(self):
        return self.used >= self.time_limit or self.num_fevals >= self.max_fevals or self.stuck()

    def raise_exception_if_done(self):
        if self.is_done():
            raise self.stop("the budget is used")

    def get_fraction_consumed(self):
        return min(1.0, max(self.used / self.time_limit, self.num_fevals / self.max_fevals))


def number(value):
    return int(value) if value == int(value) else value


def read_space(lines):
    """Entries of a cache file, {key: entry}, and {key: number of the candidate}, from the lines of `kcast export`."""
    entries, numbers = {}, {}
    rows = [json.loads(line) for line in lines]
    known = [row["seconds"]["held"] for row in rows if row["seconds"] and row["seconds"]["held"]]
    mean = sum(known) / len(known) if known else 1.0  # as kcast replay has it
    for row in rows:
        entry = {name: number(value) for name, value in row["params"].items()}
        key = ",".join(str(value) for value in entry.values())
        if row["log2_speedup"] is not None:
            entry["time"] = 2.0 ** -row["log2_speedup"]
        else:
            entry["time"] = "CompilationFailedConfig" if row["verdict"] == "compile-error" else "RuntimeFailedConfig"
        held = 0.0 if row["verdict"] == "compile-error" else (row["seconds"] or {}).get("held") or mean
        entry.update(compile_time=0.0, verification_time=0.0, benchmark_time=held * 1e3)
        entries[key], numbers[key] = entry, row["candidate"]
    return entries, numbers


def axes_of(entries):
    """{parameter: its values in order}, of entries of a cache."""
    names = [name for name in next(iter(entries.values())) if name != "time" and not name.endswith("_time")]
    return {name: sorted({entry[name] for entry in entries.values()}) for name in names}


def write_cache(path, entries, axes):
    cache = dict(device_name="recorded", kernel_name="space", problem_size=1, tune_params_keys=list(axes), tune_params=axes,
                 objective="time", cache=entries)
    with open(path, "w") as file:
        json.dump(cache, file)


class Search:
    """One strategy on one space with one seed."""

    def __init__(self, entries, strategy, seed, seconds, evaluations):
        self.entries = {key: dict(entry) for key, entry in entries.items()}
        self.strategy, self.seed, self.seconds, self.evaluations = strategy, seed, seconds, evaluations
        self.used, self.order, self.seen, self.failures, self.idle = 0.0, [], set(), [], 0

    def stuck(self):
        return self.idle > IDLE * len(self.entries)

    def note(self, key):
        if key not in self.seen:
            self.seen.add(key)
            self.idle = 0
            self.order.append(key)
            self.used += self.entries[key]["benchmark_time"] / 1e3
            self.entries[key]["benchmark_time"] = 0.0

    def run_once(self, path, axes):
        import kernel_tuner.interface as interface
        import kernel_tuner.util as util
        from kernel_tuner.runners.simulation import SimulationRunner
        from kernel_tuner.searchspace import Searchspace

        original, search = SimulationRunner.run, self

        def run(self, configurations, options):
            configurations = list(configurations)
            search.idle += len(configurations)
            if search.stuck():
                raise util.StopCriterionReached("nothing new")
            results = original(self, configurations, options)
            for configuration, result in zip(configurations, results):
                if result is not None:
                    search.note(",".join(str(value) for value in configuration))
            return results

        write_cache(path, self.entries, axes)
        limit = self.seconds - self.used
        util.TuningBudget = lambda *_: Budget(limit, self.evaluations, util.StopCriterionReached, self.stuck)
        interface.Searchspace = lambda *_, **__: Searchspace(None, None, None, from_cache={"tune_params": axes, "cache": self.entries})
        SimulationRunner.run = run
        try:
            interface.tune_kernel(
                "space", "void space() {}", 1, [], axes, lang="C", strategy=self.strategy, cache=path,
                strategy_options={"max_fevals": self.evaluations}, simulation_mode=True, quiet=True)
        except util.StopCriterionReached:
            pass  # not every strategy catches it where it begins
        except Exception as error:  # a strategy's own, as of greedy_ils at a configuration without neighbours
            self.failures.append(f"{type(error).__name__}: {error}")
        finally:
            SimulationRunner.run = original

    def run(self, path, axes):
        import numpy

        random.seed(self.seed)
        numpy.random.seed(self.seed)
        for _ in range(RESTARTS):
            before, self.idle = len(self.order), 0
            self.run_once(path, axes)
            if self.used >= self.seconds or len(self.order) in (before, len(self.entries)):
                break


def export(kcast, path):
    return subprocess.run([kcast, "export", path], check=True, capture_output=True, text=True).stdout


def seed_samplers():
    """Latin hypercubes draw from numpy's generator, which is seeded, and not from entropy."""
    import numpy
    from scipy.stats.qmc import LatinHypercube

    original = LatinHypercube.__init__

    def begin(self, *rest, **named):
        named.setdefault("rng", numpy.random.default_rng(numpy.random.randint(2**31)))
        original(self, *rest, **named)

    LatinHypercube.__init__ = begin


def searches(task):
    kcast, path, strategy, first, seeds, share = task
    entries, numbers = read_space(export(kcast, path).splitlines())
    axes = axes_of(entries)
    seconds = share * sum(entry["benchmark_time"] for entry in entries.values()) / 1e3
    name = os.path.basename(path).rsplit(".", 1)[0]
    lines, failures = [], []
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        cache = os.path.join(folder, "cache.json")
        for seed in range(first, first + seeds):
            search = Search(entries, strategy, seed, seconds, math.ceil(share * len(entries)))
            search.run(cache, axes)
            order = " ".join(str(numbers[key]) for key in search.order)
            lines.append(f"kernel-tuner/{strategy} {name} {seed} {order}")
            failures += search.failures
    if failures:
        print(f"kernel-tuner/{strategy} {name}: {len(failures)} times it failed and began again, first with {failures[0]}", file=sys.stderr)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kcast")
    parser.add_argument("space", nargs="+")
    parser.add_argument("--share", type=float, default=10, help="device time, in percent of what measuring the whole space takes")
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--strategies", default=",".join(STRATEGIES))
    options = parser.parse_args()
    strategies = options.strategies.split(",")
    if any(strategy in SLOW for strategy in strategies):
        for path in options.space:
            count = export(options.kcast, path).count("\n")
            for strategy in [name for name in strategies if count > SLOW.get(name, math.inf)]:
                print(f"kernel-tuner/{strategy} is left out: {path} has {count} candidates, more than {SLOW[strategy]}", file=sys.stderr)
                strategies.remove(strategy)
    tasks = [(os.path.abspath(options.kcast), path, strategy, options.seed, options.seeds, options.share / 100)
             for path in options.space for strategy in strategies]
    with multiprocessing.Pool(options.jobs, seed_samplers) as pool:
        for lines in pool.imap(searches, tasks):
            print("\n".join(lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
