#!/usr/bin/env python3
"""Checks the text of every source file: lint.py [--count] [--only CHECK[,CHECK…]] [ROOT]

Prints `file:line: sentence` for each deviation and ends with 1 when there is one. With --count only the number per check.
The standard library is all that it needs; the format is looked at where clang-format 14 is installed.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dialect  # noqa: E402
import layers  # noqa: E402
from source import Source, files_below, read  # noqa: E402

TABLE = "tests/lint/layers.txt"
LINES_MAX = 500
FILES_MAX = 40
WIDTH_MAX = 100
SOURCE_ENDINGS = (".c", ".h", ".cu", ".cuh", ".def", ".sh", ".py")
FORMAT_VERSION = "14"

# A test waits through these two files alone, by condition and with a deadline.
PRINTS = {"printf", "fprintf", "vprintf", "vfprintf", "dprintf", "puts", "fputs", "putchar", "fputc", "putc", "fwrite"}
PRINTING = {"common", "proto", "problem", "net", "daemon", "executor", "worker", "client", "replay"}
SLEEPS = {"sleep", "usleep", "nanosleep", "clock_nanosleep", "uv_sleep", "thrd_sleep"}
SHELL_SLEEP = re.compile(r"(?<![\w./$%-])u?sleep +[\d.\"$]|\bread +[^;|&]*-\w*t *0?\.\d")
PYTHON_SLEEP = re.compile(r"\bsleep\(")


def is_text(path):
    return path.endswith(SOURCE_ENDINGS) or path in ("Makefile", ".ci/run")


class Tree:
    """The files of one root, read once."""

    def __init__(self, root):
        self.root = root
        self.table = layers.read_table(root, TABLE)
        self.paths = files_below(root)
        self.texts = {p: read(root, p) for p in self.paths if is_text(p) and not self.is_exempt("text", p)}
        self.sources = [Source(p, t) for p, t in self.texts.items() if p.endswith((".c", ".h"))]
        self.checked = dialect.checked_functions(self.sources)

    def is_exempt(self, check, path):
        return any(layers.is_below(path, e) for e in self.table.exempt.get(check, []))


def each_source(check):
    def run(tree):
        for source in tree.sources:
            for line, text in check(source):
                yield source.path, line, text

    return run


def by_table(check):
    def run(tree):
        for source in tree.sources:
            for line, text in check(source, tree.table):
                yield source.path, line, text

    return run


def result_variable(tree):
    for source in tree.sources:
        for line, text in dialect.result_variable(source, tree.checked):
            yield source.path, line, text


def lines(tree):
    for path, text in tree.texts.items():
        count = text.count("\n")
        if count > LINES_MAX:
            yield path, LINES_MAX + 1, f"the file has {count} lines and may have {LINES_MAX}"


def folders(tree):
    count = {}
    for path in tree.paths:
        folder = path.rpartition("/")[0]
        count[folder] = count.get(folder, 0) + 1
    for folder, files in sorted(count.items()):
        if files > FILES_MAX and not tree.is_exempt("folders", folder):
            yield folder or ".", 1, f"the folder has {files} files and may have {FILES_MAX}"


def marks(tree):
    yield from each_source(dialect.marks_in_comments)(tree)
    for path, text in tree.texts.items():
        if not path.endswith((".c", ".h")):
            for line, sentence in dialect.marks_in_text(text):
                yield path, line, sentence


def blanks(tree):
    for path, text in tree.texts.items():
        if path != "Makefile":
            for line, sentence in dialect.blanks(text):
                yield path, line, sentence


def width(tree):
    """Comments: clang-format keeps code within the width, and leaves comments as they are. Tables and diagrams may be wider."""
    for source in tree.sources:
        for number, line in enumerate(tree.texts[source.path].split("\n"), 1):
            comment = line.partition("//")[2].strip()
            if len(line) > WIDTH_MAX and comment and not re.search(r"\||\S {2,}\S", comment):
                yield source.path, number, f"the comment ends at column {len(line)} and may end at {WIDTH_MAX}"


def shell(tree):
    for path in tree.texts:
        if path.endswith(".sh") or path == ".ci/run":
            said = subprocess.run(["bash", "-n", path], cwd=tree.root, capture_output=True, text=True).stderr
            for line, text in re.findall(r"line (\d+): (.*)", said):
                yield path, int(line), text


def logging(tree):
    for source in tree.sources:
        if layers.is_silent(source, tree.table):
            for line, _ in dialect.calls(source, {"log_event"}):
                yield source.path, line, "this folder does not log: the function that decides does"


def sleeps(tree):
    sentence = "a test does not sleep: it waits for an event, or for a condition through tests/support/until"
    for source in tree.sources:
        if source.path.startswith("tests/") and not tree.is_exempt("sleeps", source.path):
            for line, _ in dialect.calls(source, SLEEPS):
                yield source.path, line, sentence
    for path, text in tree.texts.items():
        pattern = {"sh": SHELL_SLEEP, "py": PYTHON_SLEEP}.get(path.rpartition(".")[2])
        if pattern and path.startswith("tests/") and not tree.is_exempt("sleeps", path):
            for number, line in enumerate(text.split("\n"), 1):
                if pattern.search(re.sub(r"(^|\s)#.*", "", line)):
                    yield path, number, sentence


def prints(tree):
    sentence = "print by common/printable, which escapes what a terminal would obey"
    for source in tree.sources:
        if source.path.split("/")[0] in PRINTING and not tree.is_exempt("prints", source.path):
            for line, _ in dialect.calls(source, PRINTS):
                yield source.path, line, sentence


def table(tree):
    yield from tree.table.errors
    yield from layers.check_table(tree.root, tree.table)


def clang_format():
    """The program, when it is of the version whose format this is."""
    for name in (f"clang-format-{FORMAT_VERSION}", "clang-format"):
        program = shutil.which(name)
        if program:
            version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
            if f"version {FORMAT_VERSION}." in version:
                return program
    return None


def format_(tree):
    program = clang_format()
    if not program:
        print(f"format not checked: needs clang-format {FORMAT_VERSION}", file=sys.stderr)
        return
    paths = [s.path for s in tree.sources]
    for at in range(0, len(paths), 50):
        command = [program, "--dry-run", "--ferror-limit=0", *paths[at : at + 50]]
        said = subprocess.run(command, cwd=tree.root, capture_output=True, text=True).stderr
        for path, line in re.findall(r"^([^\s:]+):(\d+):\d+: (?:warning|error): code should be clang-formatted", said, re.M):
            yield path, int(line), "not as clang-format writes it; run `make format`"


CHECKS = {
    "braces": each_source(dialect.braces),
    "null": each_source(dialect.null_tests),
    "result": result_variable,
    "lines": lines,
    "folders": folders,
    "banned": each_source(dialect.banned),
    "marks": marks,
    "guards": each_source(dialect.guard),
    "blanks": blanks,
    "width": width,
    "shell": shell,
    "logging": logging,
    "sleeps": sleeps,
    "prints": prints,
    "table": table,
    "layers": by_table(layers.layers),
    "libraries": by_table(layers.libraries),
    "format": format_,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", action="store_true", help="only how many there are of each")
    parser.add_argument("--only", help="checks, separated by commas: " + ", ".join(CHECKS))
    parser.add_argument("root", nargs="?", default=".")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(CHECKS)
    if set(names) - set(CHECKS):
        parser.error("unknown check; there are " + ", ".join(CHECKS))
    tree = Tree(options.root)
    bad = 0
    for name in names:
        found = sorted({hit for hit in CHECKS[name](tree) if not tree.is_exempt(name, hit[0])})
        bad += len(found)
        if options.count:
            print(f"{name:10} {len(found)}")
        else:
            for path, line, text in found:
                print(f"{path}:{line}: {text}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
