#!/usr/bin/env python3
"""Makes benchmarks of searches in which every point of a template has an outcome, from spaces that have some of them.

  complete-spaces.py [--template own|whole] [--problems FOLDER] [--run RUN]... [--wrong NAME=VALUE]... FOLDER SPACE...
      Writes FOLDER/NAME.space for each SPACE, and prints one line about each: points, how good the fit is, and, where
      there is a RUN of the same problem, how well the completed space foretells what that search has measured.

A search looks at neighbours of what it has measured, and a recorded space is a random sample, or one of a template with
fewer values of its parameters (docs/spaces.md). Here a regression is fitted to the recorded outcomes, and it gives outcomes
to all points: an established kind of benchmark for searches (surrogate benchmarks; NAS-Bench-301, arXiv 2008.09777).

- Points: all of the template in the space (own), or all of the problem's template in --problems (whole). In the
  latter, values occur that no recorded point has. A value that is a deliberate mistake of the template and was left out of
  the space (SHORTCUTS) makes its points wrong, by what the problem's README says; the regression treats any other new value
  like the nearest one that was recorded, so that speeds of such points are a guess.
- Recorded points keep what was recorded, but those with a value of --wrong, which makes all its points wrong. The others
  get the regression's log2 speedup, verdict, device time and compile time.
- What the regression does not explain is added again: to a point's number the error of one of the NEAREST recorded points
  whose forecasts come nearest to the point's, where errors are those of points that the fit was made without
  (FOLDS parts). Which one follows from the point's name alone, so that an outcome is a function of the point.
- A space whose fit has a Kendall rank correlation below TAU_LEAST with the outcomes that it was made without is left out.

What compiling tells of a kernel (registers, instructions) is not made up, so these spaces have no features of
machine code; forecasts go by parameters. Results are imported as T4 results of Kernel Tuner are.

Needs scikit-learn (1.9 was used), numpy and scipy; programs: those of $KCAST_BIN, or build/release/bin.
"""
import argparse
import gzip
import hashlib
import json
import math
import os
import re
import subprocess
import tempfile

import numpy
from scipy.stats import kendalltau
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_predict

FOLDS = 5
NEAREST = 40
TAU_LEAST = 0.6
TUNE = re.compile(rb"//@ tune (\w+) in \(([^)]*)\)(?: if ([^\n]*))?\n")
# Values that spaces.sh left out of the recorded templates and that are mistakes for every point, by problems/cuda/*/README.md.
SHORTCUTS = {
    "attention": {"MASK": [0]}, "batched_gemm": {"TAIL": [0]}, "bf16_gemm": {"PART": [1], "TAIL": [0]},
    "conv1d_causal": {"EDGE": [0]}, "conv3x3": {"TAIL": [0]}, "layernorm": {"MASK": [0]},
    "sgemm": {"MATH": [1], "TAIL": [0]}, "stencil5": {"BORDER": [0]},
}
INVALIDITY = {"wrong": "correctness", "crash": "runtime", "timeout": "timeout", "compile-error": "compile"}


def kcast(*arguments):
    program = os.path.join(os.environ.get("KCAST_BIN", "build/release/bin"), "kcast")
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def points_of(text):
    """All points of a template that meet its conditions, as lists of values, and the parameters' names."""
    points, names = [()], []
    for name, values, condition in TUNE.findall(text):
        names.append(name.decode())
        python = re.sub(r"!(?!=)", " not ", condition.decode()).replace("&&", " and ").replace("||", " or ").replace("/", "//")
        holds = compile(python, "condition", "eval") if python else None
        points = [(*point, value) for point in points for value in map(int, values.split(b","))
                  if not holds or eval(holds, {}, dict(zip(names, (*point, value))))]
    return points, names


def fraction(text):
    """A number from 0 to 1 that follows from the text."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) / 2**64


class Fit:
    """A regression that is fitted to numbers, and its errors at points that it was made without."""

    def __init__(self, features, numbers):
        def regression():
            return HistGradientBoostingRegressor(max_iter=400, learning_rate=0.06, max_leaf_nodes=12, min_samples_leaf=5,
                                                 random_state=1)
        self.numbers = numbers
        self.unseen = cross_val_predict(regression(), features, numbers, cv=KFold(FOLDS, shuffle=True, random_state=1))
        self.model = regression().fit(features, numbers)
        order = numpy.argsort(self.unseen)
        self.forecasts, self.errors = self.unseen[order], (numbers - self.unseen)[order]

    def tau(self):
        return kendalltau(self.numbers, self.unseen)[0]

    def draw(self, features, names, what):
        """The numbers of other points: forecasts, each with an error of a recorded point of much the same forecast."""
        drawn = []
        for forecast, name in zip(self.model.predict(features), names):
            first = numpy.searchsorted(self.forecasts, forecast) - NEAREST // 2
            first = min(max(first, 0), max(len(self.errors) - NEAREST, 0))
            errors = self.errors[first:first + NEAREST]
            drawn.append(forecast + errors[int(fraction(f"{what} {name}") * len(errors))])
        return numpy.array(drawn)


def features_of(points):
    return numpy.log2(numpy.array(points, dtype=float) + 1)


def drawn_verdicts(features, verdicts, new, names):
    """Verdicts of other points, each as often as the classifier says."""
    if len(set(verdicts)) == 1:
        return [verdicts[0]] * len(names)
    model = HistGradientBoostingClassifier(max_iter=200, min_samples_leaf=5, random_state=1).fit(features, verdicts)
    sums = numpy.cumsum(model.predict_proba(new), axis=1)
    places = [min(int(numpy.searchsorted(row, fraction(f"verdict {name}"))), len(row) - 1) for row, name in zip(sums, names)]
    return [str(model.classes_[place]) for place in places]


def with_correctness(features, verdicts):
    return numpy.column_stack([features, [verdict == "correct" for verdict in verdicts]])


def has_value(names, point, values):
    return any(value in values.get(name, ()) for name, value in zip(names, point))


def complete(rows, points, names, shortcuts, wrong):
    """The outcome (verdict, log2 speedup, device seconds, compile seconds) of each point, and the fit of the speedups."""
    known = [row for row in rows if row["compile_seconds"] and (not row["seconds"] or row["seconds"]["held"] > 0)]
    at = [tuple(int(row["params"][name]) for name in names) for row in known]
    features, new = features_of(at), features_of(points)
    labels = [" ".join(f"{name}={value}" for name, value in zip(names, point)) for point in points]
    verdicts = ["correct" if row["log2_speedup"] is not None else row["verdict"] for row in known]
    correct = numpy.array([verdict == "correct" for verdict in verdicts])
    measured = numpy.array([row["seconds"] is not None for row in known])
    speed = Fit(features[correct], numpy.array([row["log2_speedup"] for row in known if row["log2_speedup"] is not None]))
    held = Fit(with_correctness(features, verdicts)[measured],
               numpy.log2([row["seconds"]["held"] for row in known if row["seconds"]]))
    compiling = Fit(features, numpy.log2([row["compile_seconds"] for row in known]))
    verdict = drawn_verdicts(features, verdicts, new, labels)
    for i, point in enumerate(points):
        if has_value(names, point, shortcuts) or has_value(names, point, wrong):
            verdict[i] = "wrong"
    outcome = list(zip(verdict, speed.draw(new, labels, "speed"),
                       2 ** held.draw(with_correctness(new, verdict), labels, "held"),
                       2 ** compiling.draw(new, labels, "compile")))
    place = {point: i for i, point in enumerate(points)}
    for point, row, kind in zip(at, known, verdicts):
        if point in place and not has_value(names, point, wrong):
            outcome[place[point]] = (kind, row["log2_speedup"] or 0, row["seconds"]["held"] if row["seconds"] else 0,
                                     row["compile_seconds"])
    return outcome, speed


def write(path, problem, device, names, points, outcome):
    results = [{"configuration": dict(zip(names, point)), "invalidity": INVALIDITY.get(kind, kind),
                "times": {"compilation": compiling, "validation": 0, "benchmark": held},
                "measurements": [{"name": "time", "value": 2 ** -log2}]}
               for point, (kind, log2, held, compiling) in zip(points, outcome)]
    near, baseline = min((abs(log2), point) for point, (kind, log2, _, _) in zip(points, outcome) if kind == "correct")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, problem + ".json")
        with open(file, "w") as out:
            json.dump({"metadata": {"timeunit": "seconds"}, "results": results}, out)
        kcast("import", "kernel-tuner", file, "--problem", problem, "--device", device, "-o", path,
              "--baseline", ",".join(f"{name}={value}" for name, value in zip(names, baseline)))
    return near


def foretold(run, problem, names, points, outcome):
    """How well the outcomes agree with what this search has measured; empty when it is one of another problem."""
    rows = [json.loads(line) for line in kcast("export", run).splitlines()]
    if rows[0]["problem"] != problem:
        return ""
    place = {point: i for i, point in enumerate(points)}
    pairs, same = [], []
    for row in rows:
        here = place.get(tuple(int(row["params"][name]) for name in names))
        if here is not None and row["fate"] in ("faster", "slower", "equivalent", "inconclusive", "wrong", "crash"):
            kind, log2, _, _ = outcome[here]
            same.append((kind == "correct") == (row["log2_speedup"] is not None))
            if kind == "correct" and row["log2_speedup"] is not None:
                pairs.append((row["log2_speedup"], log2))
    measured, made = zip(*pairs)
    return (f"; {os.path.basename(run)}: {sum(same)} of {len(same)} verdicts, tau {kendalltau(measured, made)[0]:.2f} and "
            f"median error {numpy.median(numpy.abs(numpy.subtract(measured, made))):.3f} log2 of {len(pairs)} speeds")


def values_of(texts):
    """{NAME: [VALUE…]} of texts such as NAME=VALUE."""
    values = {}
    for name, value in (text.split("=") for text in texts):
        values.setdefault(name, []).append(int(value))
    return values


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--template", choices=("own", "whole"), default="whole")
    parser.add_argument("--problems", default="problems/cuda")
    parser.add_argument("--run", action="append", default=[])
    parser.add_argument("--wrong", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("folder")
    parser.add_argument("spaces", nargs="+", metavar="SPACE")
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    for path in arguments.spaces:
        rows = [json.loads(line) for line in kcast("export", path).splitlines()]
        problem = rows[0]["problem"]
        if arguments.template == "own":
            text = gzip.open(path).read()
        else:
            with open(os.path.join(arguments.problems, problem, "template.cu"), "rb") as file:
                text = file.read()
        points, names = points_of(text)
        outcome, speed = complete(rows, points, names, SHORTCUTS.get(problem, {}), values_of(arguments.wrong))
        print(f"{problem}: {len(rows)} recorded, {len(points)} points, "
              f"{sum(kind == 'correct' for kind, _, _, _ in outcome)} correct; unseen: R2 {r2_score(speed.numbers, speed.unseen):.3f}, "
              f"tau {speed.tau():.3f}", end="")
        if speed.tau() < TAU_LEAST:
            print("; left out")
            continue
        write(os.path.join(arguments.folder, problem + ".space"), problem, rows[0]["device_class"], names, points, outcome)
        best = max(log2 for kind, log2, _, _ in outcome if kind == "correct")
        print(f"; best {2 ** best:.3f}x, recorded {2 ** max(row['log2_speedup'] or -math.inf for row in rows):.3f}x, "
              f"{sum(held for kind, _, held, _ in outcome) / len(points):.3f} s a measurement"
              + "".join(foretold(run, problem, names, points, outcome) for run in arguments.run), flush=True)


if __name__ == "__main__":
    main()
