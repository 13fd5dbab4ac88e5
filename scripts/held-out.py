#!/usr/bin/env python3
"""Replays searches on spaces that nothing was chosen on; scripts/replay-tables.py makes tables of them.

  held-out.py import HUB PAPER FOLDER
      Makes the spaces in FOLDER, one of each row of HUB_SPACES and PAPER_SPACES below, from clones of
      https://github.com/AutoTuningAssociation/benchmark_hub and https://github.com/fjwillemsen/kernel_tuner_paper
      (bare ones will do), each at one commit. What is kept for checking, the hub's folder convolution_milo and every
      file of the MI250X, is not read.

  held-out.py replay FILE [options] SPACE...
      Appends one line of JSON for each search to FILE. Every search gets the device time that as many
      measurements of the space take on average (--measurements). With --kernel-tuner PYTHON, an
      interpreter that has Kernel Tuner, its strategies are among the peers
      (scripts/kernel-tuner-orders.py says how to install it).

Programs: those of $KCAST_BIN, or build/release/bin.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HUB_COMMIT = "8eeb99e7179e6838af95d392ac6c60cebfd8c434"
UNUSED = "currently_unused/cachefiles"
# The space's name, the format of `kcast import`, the file in the hub.
HUB_SPACES = (
    [(f"convolution-ktt-{gpu}", "ktt", f"{UNUSED}/KTT data/KTConvolutionOutput_{gpu}.json.gz") for gpu in ("2080Ti", "3090")]
    + [(f"pnpoly-ktt-{gpu}", "ktt", f"{UNUSED}/KTT data/KTPnpolyOutput_{gpu}.json.gz") for gpu in ("2080Ti", "3090")]
    + [(f"{kernel}-{gpu}", "kernel-tuner", f"{UNUSED}/KernelTuner data/{kernel}/{gpu}.json.gz")
       for kernel in ("convolution", "gemm", "pnpoly") for gpu in ("RTX_2080_Ti", "RTX_3060_laptop", "RTX_3090", "RTX_Titan")]
    + [(f"dedispersion-{gpu}", "kernel-tuner", f"cachefiles/dedispersion_milo/{gpu}.json.gz")
       for gpu in ("A100", "A4000", "A6000", "W6600", "W7800")]
)
PAPER_COMMIT = "5ea2c227d69d89c80ba964ec76592f8a682448b6"
# The same of the paper's clone, with several files for one space. Those of hotspot are ten runs that went through the
# space in random orders until their time was up; together they are a random part of it. That of expdist is what a run
# in order had when it ended.
HOTSPOT = "compare_real_world_impact/results/hotspot"
PAPER_SPACES = (
    [(f"hotspot-{gpu}", [f"{HOTSPOT}/{gpu}_f=bruteforce_i={run}.json" for run in range(10)]) for gpu in ("A100", "A4000")]
    + [("expdist-A4000", ["kernels/outputdata/expdist/expdist_NVIDIA_RTX_A4000_size-32768x32768_cache.json"])]
)


def program(name):
    return os.path.join(os.environ.get("KCAST_BIN", "build/release/bin"), name)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def content(clone, commit, path):
    return subprocess.run(["git", "-C", clone, "show", f"{commit}:{path}"], check=True, stdout=subprocess.PIPE).stdout


def joined(clone, paths):
    """The caches of several runs of Kernel Tuner over one space, as one. A point that several have is the first one's."""
    whole = None
    for path in paths:
        text = content(clone, PAPER_COMMIT, path).decode().rstrip().rstrip(",")
        try:
            cache = json.loads(text)
        except ValueError:  # a run that did not come to its end leaves the last braces out
            cache = json.loads(text + "}}")
        whole = whole or cache
        assert whole["tune_params"] == cache["tune_params"] and whole["problem_size"] == cache["problem_size"], path
        whole["cache"] = cache["cache"] | whole["cache"]
    return json.dumps(whole).encode()


def import_space(kind, data, name, folder, suffix):
    with tempfile.NamedTemporaryFile(suffix=suffix) as file:
        file.write(data)
        file.flush()
        output(program("kcast"), "import", kind, file.name, "-o", os.path.join(folder, name + ".space"))


def import_spaces(options):
    os.makedirs(options.folder, exist_ok=True)
    for name, kind, path in HUB_SPACES:
        import_space(kind, content(options.hub, HUB_COMMIT, path), name, options.folder, ".json.gz")
    for name, paths in PAPER_SPACES:
        import_space("kernel-tuner", joined(options.paper, paths), name, options.folder, ".json")


def share_of(space, measurements):
    """Device time of so many measurements on average, in percent of what measuring all candidates takes."""
    rows = [json.loads(line) for line in output(program("kcast"), "export", space).splitlines()]
    return min(100.0, 100.0 * measurements / sum(row["verdict"] != "compile-error" for row in rows))


def orders_of(space, share, options, path):
    """Writes the orders of Kernel Tuner's strategies to this file."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel-tuner-orders.py")
    command = [options.kernel_tuner, script, program("kcast"), space, "--share", f"{share:.3f}",
               "--seeds", str(options.seeds), "--jobs", str(options.jobs)]
    with open(path, "w") as file:
        subprocess.run(command + (["--strategies", options.tuner] if options.tuner else []), check=True, stdout=file)


def replay(space, options):
    share = share_of(space, options.measurements)
    with tempfile.TemporaryDirectory() as work:
        orders = os.path.join(work, "orders")
        if options.kernel_tuner:
            orders_of(space, share, options, orders)
        lines = output(
            program("kcast-replay"), space, "--json", "--budget", f"{share:.3f}%", "--seeds", str(options.seeds),
            "--jobs", str(options.jobs), "--policy", options.policies, "--strategy", options.strategies,
            "--forecaster", options.forecasters, *(["--peers", options.peers] if options.peers else []),
            *(["--orders", orders] if options.kernel_tuner else []))
    with open(options.file, "a") as out:
        out.write(lines)
    print(f"{os.path.basename(space)}: {lines.count(chr(10))} searches, {share:.3f} % of its device time", file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    importing = commands.add_parser("import")
    importing.add_argument("hub")
    importing.add_argument("paper")
    importing.add_argument("folder")
    replaying = commands.add_parser("replay")
    replaying.add_argument("--measurements", type=float, default=110)
    replaying.add_argument("--seeds", type=int, default=20)
    replaying.add_argument("--policies", default="all,rank")
    replaying.add_argument("--strategies", default="greedy")
    replaying.add_argument("--forecasters", default="static", help="static, perfect")
    replaying.add_argument("--peers", default="", help="tvm, tvm-knobs")
    replaying.add_argument("--kernel-tuner", metavar="PYTHON")
    replaying.add_argument("--tuner", metavar="STRATEGIES", help="of Kernel Tuner; default: those of scripts/kernel-tuner-orders.py")
    replaying.add_argument("--jobs", type=int, default=1)
    replaying.add_argument("file")
    replaying.add_argument("space", nargs="+")
    options = parser.parse_args()
    if options.command == "import":
        import_spaces(options)
    else:
        for space in options.space:
            replay(space, options)


if __name__ == "__main__":
    main()
