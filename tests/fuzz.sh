#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (default 10) from its corpus, as many at once as there are processors, or $KCAST_TEST_JOBS. New
# inputs go to a scratch folder, not into the tree.
set -u
cd "$(dirname "$0")/.."
seconds=${FUZZ_SECONDS:-10} folder=${1:-build/fuzz/tests/fuzz}
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# FUZZER: runs it, adds "passed" or "failed" to the results, and prints what there is to say in one piece.
one() {
    local name scratch=$(mktemp -d) options=()
    name=$(basename "$1")
    [ ! -f "tests/fuzz/dictionaries/$name.dict" ] || options+=("-dict=tests/fuzz/dictionaries/$name.dict")
    options+=("$scratch")
    [ ! -d "tests/fuzz/corpus/$name" ] || options+=("tests/fuzz/corpus/$name")
    if "$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$scratch/" "${options[@]}" >"$scratch.log" 2>&1; then
        echo passed >>"$results"
        printf 'ok   %-24s %s\n' "$name" "$(grep -o 'Done [0-9]* runs.*' "$scratch.log")" >"$scratch.said"
        rm -rf "$scratch"
    else
        echo failed >>"$results"
        { printf 'FAIL %-24s inputs in %s\n' "$name" "$scratch" && tail -40 "$scratch.log" | sed 's/^/     | /'; } >"$scratch.said"
    fi
    flock "$results" cat "$scratch.said"
    rm -f "$scratch.log" "$scratch.said"
}
export -f one
export results seconds
find "$folder" -maxdepth 1 -name 'fuzz_*' ! -name '*.?' | sort | xargs -P "${KCAST_TEST_JOBS:-$(nproc)}" -I{} bash -c 'one "$1"' one {}
passed=$(grep -c passed "$results") failed=$(grep -c failed "$results")
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
