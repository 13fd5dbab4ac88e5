#!/usr/bin/env python3
"""Replays searches on spaces that nothing was chosen on; scripts/replay-tables.py makes tables of them.

  held-out.py import CLONE FOLDER
      Makes the spaces in FOLDER, one of each row of HUB below, from a clone of
      https://github.com/AutoTuningAssociation/benchmark_hub (a bare one will do), at one commit.
      What is kept for checking, its folder convolution_milo and every file of the MI250X, is not read.

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
HUB = (
    [(f"convolution-ktt-{gpu}", "ktt", f"{UNUSED}/KTT data/KTConvolutionOutput_{gpu}.json.gz") for gpu in ("2080Ti", "3090")]
    + [(f"pnpoly-ktt-{gpu}", "ktt", f"{UNUSED}/KTT data/KTPnpolyOutput_{gpu}.json.gz") for gpu in ("2080Ti", "3090")]
    + [(f"{kernel}-{gpu}", "kernel-tuner", f"{UNUSED}/KernelTuner data/{kernel}/{gpu}.json.gz")
       for kernel in ("convolution", "gemm", "pnpoly") for gpu in ("RTX_2080_Ti", "RTX_3060_laptop", "RTX_3090", "RTX_Titan")]
    + [(f"dedispersion-{gpu}", "kernel-tuner", f"cachefiles/dedispersion_milo/{gpu}.json.gz")
       for gpu in ("A100", "A4000", "A6000", "W6600", "W7800")]
)


def program(name):
    return os.path.join(os.environ.get("KCAST_BIN", "build/release/bin"), name)


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def import_spaces(options):
    os.makedirs(options.folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for name, kind, path in HUB:
            packed = os.path.join(work, name + ".json.gz")
            with open(packed, "wb") as file:
                subprocess.run(["git", "-C", options.clone, "show", f"{HUB_COMMIT}:{path}"], check=True, stdout=file)
            output(program("kcast"), "import", kind, packed, "-o", os.path.join(options.folder, name + ".space"))


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
    importing.add_argument("clone")
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
