#!/bin/sh
# Puts pynng and msgpack from PyPI into build/pynng, a virtual environment. Only the test of examples/pynng_measure.py needs it; where
# PyPI cannot be reached, that test is skipped.
set -eu
cd "$(dirname "$0")/.."
build/pynng/bin/python -c 'import msgpack, pynng' 2>/dev/null && exit 0
mkdir -p build
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "fetching pynng from PyPI into build/pynng" >&2
rm -rf build/pynng
if ! { python3 -m venv build/pynng && build/pynng/bin/python -m pip install -q --disable-pip-version-check --retries 1 --timeout 20 \
    'pynng>=0.9,<1' 'msgpack>=1,<2'; } >"$log" 2>&1; then
    rm -rf build/pynng
    tail -2 "$log" >&2
    echo "install-pynng.sh: there is no pynng: its test will be skipped" >&2
fi
