"""What scripts/student.py and scripts/held-out.py (in the folder of argument 1) compute; argument 2 is a folder to work in."""
import importlib.util
import json
import math
import os
import subprocess
import sys
import types

scripts, work = sys.argv[1:3]
sys.path.insert(0, scripts)
import student  # noqa: E402


def near(value, expected, within=1e-3):
    assert abs(value - expected) < within, f"{value} instead of {expected}"


# Quantiles and probabilities as printed tables have them.
for df, expected in ((1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (20, 2.086), (120, 1.980)):
    near(student.quantile(df), expected)
    near(student.two_sided(expected, df), 0.05, 1e-4)
near(student.quantile(5, 0.99), 4.032)
near(student.two_sided(1, 1), 0.5)
for value, expected in zip(student.interval([1, 2, 3, 4]), (2.5, 2.5 - 3.18245 * math.sqrt(5 / 3) / 2, 2.5 + 3.18245 * math.sqrt(5 / 3) / 2)):
    near(value, expected, 1e-4)
assert math.isnan(student.interval([1])[1])
near(student.p_value([1, 2, 3, 4]), 0.0305)
assert student.p_value([0, 0, 0]) == 1 and student.p_value([1]) == 1 and student.p_value([1, 1]) == 0
for value, expected in zip(student.holm([0.01, 0.04, 0.03, 0.005]), (0.03, 0.06, 0.06, 0.02)):
    near(value, expected, 1e-12)
assert student.holm([0.6, 0.9]) == [1, 1]

# What is imported: 24 spaces of as many files and more, none of those that are kept for checking.
spec = importlib.util.spec_from_file_location("held_out", os.path.join(scripts, "held-out.py"))
held_out = importlib.util.module_from_spec(spec)
spec.loader.exec_module(held_out)
names = [name for name, _, _ in held_out.HUB_SPACES] + [name for name, _ in held_out.PAPER_SPACES]
paths = [path for _, _, path in held_out.HUB_SPACES] + [path for _, several in held_out.PAPER_SPACES for path in several]
assert len(set(names)) == len(names) == 24 and len(set(paths)) == len(paths) == 42
assert not any("convolution_milo" in path or "MI250X" in path.upper() for path in paths)

# From a clone by its commit, whatever its work tree has; then searches, each with the device time of three measurements.
clone, folder = os.path.join(work, "clone"), os.path.join(work, "spaces")


def git(*arguments):
    identity = ("-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false")
    return subprocess.run(["git", *identity, "-C", clone, *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def entry(x, y):
    failed = (x, y) == (1, 1)
    return {"x": x, "y": y, "time": "CompilationFailedConfig" if failed else 1.0 + (x - 3) ** 2 + (y - 2) ** 2, "verification_time": 0.0,
            "benchmark_time": 0.0 if failed else 100.0, "compile_time": 50.0}


os.makedirs(clone)
entries = {f"{x},{y}": entry(x, y) for x in range(1, 5) for y in range(1, 5)}
with open(os.path.join(clone, "tuned.json"), "w") as file:
    json.dump({"device_name": "G", "kernel_name": "pnpoly", "tune_params_keys": ["x", "y"], "cache": entries}, file)
# The same in two runs, which share four points; the second was ended before it could close its braces.
rows = list(entries.items())
for part, own in enumerate((rows[:10], rows[6:])):
    text = json.dumps({"device_name": "G", "kernel_name": "hotspot", "problem_size": [4], "tune_params_keys": ["x", "y"],
                       "tune_params": {"x": [1, 2, 3, 4], "y": [1, 2, 3, 4]}, "cache": dict(own)})
    with open(os.path.join(clone, f"part{part}.json"), "w") as file:
        file.write(text if part == 0 else text.removesuffix("}}") + ",\n")
git("init", "-q")
git("add", ".")
git("commit", "-q", "-m", "tuned")
held_out.HUB_COMMIT = held_out.PAPER_COMMIT = git("rev-parse", "HEAD")
held_out.HUB_SPACES, held_out.PAPER_SPACES = [("pnpoly-G", "kernel-tuner", "tuned.json")], [("hotspot-G", ["part0.json", "part1.json"])]
os.remove(os.path.join(clone, "tuned.json"))
held_out.import_spaces(types.SimpleNamespace(hub=clone, paper=clone, folder=folder))
for name in ("pnpoly-G", "hotspot-G"):
    near(held_out.share_of(os.path.join(folder, name + ".space"), 3), 100 * 3 / 15, 1e-9)
saved = os.path.join(work, "held-out.jsonl")
sys.argv = ["held-out.py", "replay", "--measurements", "3", "--seeds", "2", "--policies", "all", "--strategies", "greedy,best-of-n",
            "--peers", "tvm-knobs", saved, os.path.join(folder, "pnpoly-G.space")]
held_out.main()
rows = [json.loads(line) for line in open(saved)]
assert len(rows) == 6 and {row["policy"] for row in rows} == {"all", "tvm-knobs"}, rows
for row in rows:
    near(row["given_seconds"], 0.3)
    assert row["measured"] >= 3, row
