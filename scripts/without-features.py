#!/usr/bin/env python3
"""Makes copies of spaces in which features say nothing, to see by replays what they are worth.

  without-features.py PREFIX FOLDER SPACE...
      Writes FOLDER/NAME.space for each SPACE, with 0 for every feature whose name begins with PREFIX.

A model learns nothing from what is the same for all candidates. Replay both, and compare searches with the same seed:
`kcast replay --json --policy rank,threshold --strategy greedy --seeds 12 --budget 10% SPACE...`
"""
import gzip
import os
import re
import sys


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    prefix, folder, spaces = sys.argv[1], sys.argv[2], sys.argv[3:]
    # A feature in a space (proto/result.def, message fact): its name, then the tag of its value and eight bytes of it.
    feature = re.compile(re.escape(prefix.encode()) + rb"\w*\x02\xcb(.{8})", re.ASCII | re.DOTALL)
    os.makedirs(folder, exist_ok=True)
    for path in spaces:
        copy = os.path.join(folder, os.path.basename(path))
        if os.path.exists(copy) and os.path.samefile(path, copy):
            sys.exit(f"without-features.py: {copy} is the space itself; name another folder")
        with gzip.open(path) as file:
            text = file.read()
        text, count = feature.subn(lambda match: match[0][:-8] + bytes(8), text)
        if count == 0:
            sys.exit(f"without-features.py: {path} has no feature whose name begins with {prefix}")
        with open(copy, "wb") as file:
            file.write(gzip.compress(text, mtime=0))
        print(f"{copy}: {count} values")


main()
