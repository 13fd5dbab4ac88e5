"""The measures of `kcast eval`, computed with SciPy and scikit-learn, for tests/e2e/test_eval.sh.

  eval_reference.py make SEED FILE    writes random forecasts with outcomes as JSON lines
  eval_reference.py check FILE        reads them again and the output of `kcast eval --json` on
                                      stdin; prints what differs, exit code 1 then
"""
import json
import math
import sys

import numpy as np
from scipy import integrate, stats
from sklearn import metrics

MARGIN = 0.0072
EDGES = np.log2([1 / 4, 1 / 2, 1 / 1.25, 1 / 1.05, 1.05, 1.25, 1.6, 2.5, 4, 8, 16, 32, 64, 128])
RATE = 2.0
RISK = 0.1


def make(seed, path):
    rng = np.random.default_rng(seed)
    with open(path, "w", encoding="utf-8") as out:
        for i in range(240):
            mean = rng.normal(0.5, 1.5)
            bins = rng.dirichlet(0.7 * np.ones(15)) + 1e-5
            incumbent = float(rng.choice([0, 0.5]))
            # Few different probabilities, so that there are ties of every kind.
            line = {
                "engine": str(rng.choice(["static", "llm"])),
                "cluster": int(rng.integers(30)) if seed % 2 else f"c{rng.integers(30)}",
                "p_correct": round(float(rng.uniform()), 1),
                "p_improves": round(float(rng.uniform()), 2),
                "propensity": float(rng.choice([1, 0.5, 0.25])),
                "incumbent_log2": incumbent,
            }
            if rng.uniform() < 0.8:
                line["bins"] = [float(b) for b in bins]
            if rng.uniform() < 0.6 or "bins" not in line:
                line["mean_log2"] = round(mean, 1)
            if rng.uniform() < 0.7:
                line["confidence"] = float(rng.choice([0, 0.5, 0.6, 0.75, 0.9]))
            verdict = rng.uniform()
            if verdict < 0.75:
                line["verdict"] = str(rng.choice(["faster", "slower", "equivalent"]))
                line["log2"] = round(float(mean + rng.normal()), 2)
            elif verdict < 0.95:
                line["verdict"] = str(rng.choice(["wrong", "crash", "compile-error"]))
            out.write(json.dumps(line) + "\n")


def pieces(p):
    """Each bin as (low, high, F) with F its share of the distribution function."""
    below = np.concatenate([[0], np.cumsum(p)])
    yield -np.inf, EDGES[0], lambda t: p[0] * math.exp(RATE * (t - EDGES[0]))
    for b in range(1, 14):
        low, high = EDGES[b - 1], EDGES[b]
        yield low, high, lambda t, b=b, low=low, high=high: below[b] + p[b] * (t - low) / (high - low)
    yield EDGES[13], np.inf, lambda t: 1 - p[14] * math.exp(-RATE * (t - EDGES[13]))


def crps(p, y):
    area = 0.0
    for low, high, cdf in pieces(p):
        if low < y:
            area += integrate.quad(lambda t: cdf(t) ** 2, low, min(high, y))[0]
        if high > y:
            area += integrate.quad(lambda t: (1 - cdf(t)) ** 2, max(low, y), high)[0]
    return area


def bins_mean(p):
    middles = np.concatenate([[EDGES[0] - 1 / RATE], (EDGES[:-1] + EDGES[1:]) / 2, [EDGES[-1] + 1 / RATE]])
    return float(np.dot(p, middles))


def ece(p, event, w):
    if len(p) == 0:
        return None
    p, event, w = map(np.asarray, (p, event, w))
    total, plain, noisy = w.sum(), 0.0, 0.0
    band = np.zeros(len(p), dtype=int)
    for value in np.unique(p):
        middle = w[p < value].sum() + w[p == value].sum() / 2
        band[p == value] = min(9, int(10 * middle / total))
    for b in range(10):
        mine = band == b
        if not mine.any():
            continue
        share = w[mine].sum() / total
        o = np.average(event[mine], weights=w[mine])
        gap = abs(o - np.average(p[mine], weights=w[mine]))
        n = w[mine].sum() ** 2 / (w[mine] ** 2).sum()
        s = math.sqrt(o * (1 - o) / max(n - 1, 1))
        plain += share * gap
        noisy += share * (stats.foldnorm.mean(c=gap / s, scale=s) if s > 0 else gap)
    return max(0.0, 2 * plain - noisy)


def selective(confidence, wrong, w):
    confidence, wrong, w = map(np.asarray, (confidence, wrong, w))
    c, lost, aurc, augrc, coverage = [0.0], [0.0], 0.0, 0.0, 0.0
    for value in np.unique(confidence)[::-1]:
        mine = confidence >= value
        c.append(w[mine].sum() / w.sum())
        lost.append((w * wrong)[mine].sum() / w.sum())
        line = lambda t: np.interp(t, c[-2:], lost[-2:])
        aurc += integrate.quad(lambda t: line(t) / t, max(c[-2], 1e-300), c[-1])[0]
        if lost[-1] / c[-1] <= RISK + 1e-12:
            coverage = c[-1]
    augrc = integrate.trapezoid(lost, c)
    return aurc, augrc, coverage


def best_tenth(value, w):
    left, share = 0.1 * w.sum(), np.zeros(len(value))
    for v in np.unique(value)[::-1]:
        mine = value == v
        share[mine] = min(1, left / w[mine].sum())
        left = max(0, left - w[mine].sum())
    return share


def recall(mean, outcome, correct, w):
    said, was = best_tenth(mean, w), best_tenth(outcome, w) * correct
    return float((w * said * was).sum() / (w * was).sum())


def measures(rows):
    for r in rows:
        r["w"] = 1 / r.get("propensity", 1)
        r["correct"] = "log2" in r
        r["improved"] = r["correct"] and r["log2"] > r.get("incumbent_log2", 0) + MARGIN
        if "bins" in r:
            r["p"] = np.array(r["bins"]) / np.sum(r["bins"])
        r["mean"] = r["mean_log2"] if "mean_log2" in r else bins_mean(r["p"])
    good = [r for r in rows if r["correct"]]
    full = [r for r in good if "p" in r]
    w = np.array([r["w"] for r in rows])
    wg, wf = np.array([r["w"] for r in good]), np.array([r["w"] for r in full])
    bin_of = lambda y: int(np.searchsorted(EDGES, y, side="right"))
    actual = np.array([bin_of(r["log2"]) for r in good])
    said = np.array([int(np.argmax(r["p"])) if "p" in r else bin_of(r["mean"]) for r in good])
    p = np.array([r["p"] for r in full])
    hit = np.array([bin_of(r["log2"]) for r in full])
    call = [(r["p_improves"] >= 0.5) == r["improved"] for r in rows]
    confidence = [r.get("confidence", max(r["p_improves"], 1 - r["p_improves"])) for r in rows]
    claims = [i for i, c in enumerate(confidence) if c > 0]
    aurc, augrc, coverage = selective(confidence, [not c for c in call], w)
    twice = np.repeat(np.arange(len(good)), np.round(wg).astype(int))
    tau = stats.kendalltau([good[i]["mean"] for i in twice], [good[i]["log2"] for i in twice])[0]
    every = np.array([r["mean"] for r in rows])
    outcome = np.array([r["log2"] if r["correct"] else -np.inf for r in rows])
    return {
        "accuracy": metrics.accuracy_score(actual, said, sample_weight=wg),
        "within_one": np.average(np.abs(actual - said) <= 1, weights=wg),
        "half_brier": np.average(((p - np.eye(15)[hit]) ** 2).sum(axis=1) / 2, weights=wf),
        "crps": np.average([crps(r["p"], r["log2"]) if "p" in r else abs(r["mean"] - r["log2"]) for r in good],
                           weights=wg),
        "nll": metrics.log_loss(hit, p, sample_weight=wf, labels=range(15)),
        "ece_bin": ece(p.max(axis=1), p.argmax(axis=1) == hit, wf),
        "ece_correct": ece([r["p_correct"] for r in rows], [r["correct"] for r in rows], w),
        "ece_improves": ece([r["p_improves"] for r in rows], [r["improved"] for r in rows], w),
        "ece_call": ece([confidence[i] for i in claims], [call[i] for i in claims], w[claims]),
        "aurc": aurc,
        "augrc": augrc,
        "coverage_at_risk": coverage,
        "kendall_tau": tau,
        "auc_improves": metrics.roc_auc_score([r["improved"] for r in rows], [r["p_improves"] for r in rows],
                                              sample_weight=w),
        "recall_best": recall(every, outcome, np.isfinite(outcome), w),
    }


def interval(rows):
    """The 95 % interval of the accuracy, by a cluster bootstrap with other random numbers."""
    groups = {}
    for r in rows:
        if r["correct"]:
            said = int(np.argmax(r["p"])) if "p" in r else int(np.searchsorted(EDGES, r["mean"], side="right"))
            hit = said == int(np.searchsorted(EDGES, r["log2"], side="right"))
            groups.setdefault(r["cluster"], []).append((r["w"], r["w"] * hit))
        else:
            groups.setdefault(r["cluster"], [])
    sums = np.array([np.sum(g, axis=0) if g else [0.0, 0.0] for g in groups.values()])
    ratio = lambda i: sums[i, 1].sum(axis=-1) / sums[i, 0].sum(axis=-1)
    got = stats.bootstrap((np.arange(len(sums)),), lambda i, axis=-1: ratio(i.astype(int)), n_resamples=4000,
                          method="percentile", vectorized=True, random_state=np.random.default_rng(7))
    return got.confidence_interval


def check(path):
    bad = 0
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    answers = [json.loads(line) for line in sys.stdin]
    if {a["engine"] for a in answers} != {r["engine"] for r in rows}:
        print("the engines differ")
        bad = 1
    for answer in answers:
        mine = [r for r in rows if r["engine"] == answer["engine"] and "verdict" in r]
        for name, value in measures(mine).items():
            got = answer["metrics"][name]["value"]
            if got is None or abs(got - value) > 1e-7:
                print(f"{path}: {answer['engine']}: {name} is {got}, and {value} by SciPy")
                bad = 1
        low, high = interval(mine)
        ours = answer["metrics"]["accuracy"]
        if abs(ours["lo"] - low) > 0.2 * (high - low) or abs(ours["hi"] - high) > 0.2 * (high - low):
            print(f"{path}: the interval of the accuracy is {ours['lo']} to {ours['hi']}, and {low} to {high} by SciPy")
            bad = 1
    return bad


if sys.argv[1] == "make":
    make(int(sys.argv[2]), sys.argv[3])
else:
    sys.exit(check(sys.argv[2]))
