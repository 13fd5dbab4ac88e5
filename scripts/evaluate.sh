#!/usr/bin/env bash
# Writes the tables of docs/evaluation.md, between its two marks, from the spaces that are there:
#   scripts/evaluate.sh BIN [SPACE…]          prints them (without SPACE: docs/h200/spaces/*.space)
#   scripts/evaluate.sh BIN --write           replaces those of docs/evaluation.md
# BIN is a folder with kcast, best of a release build. SEEDS (30), SHARE of the device time that measuring a whole space takes (10, in
# percent), JOBS processes at once (as many as there are processors). Kernel Tuner's strategies are among the peers where
# build/kernel-tuner has it; `make evaluation` puts it there. Nothing is kept from one run to the next, unless SAVE names a file for
# the searches, one line of JSON each, of which scripts/replay-tables.py makes the tables.
set -eu
cd "$(dirname "$0")/.."
bin=$1 write=
shift
[ "${1:-}" != --write ] || { write=1; shift; }
[ $# -gt 0 ] || set -- docs/h200/spaces/*.space
seeds=${SEEDS:-30} share=${SHARE:-10} jobs=${JOBS:-$(nproc)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=build/kernel-tuner/bin/python
with=()
started=$SECONDS
export OMP_NUM_THREADS=1 # searches run side by side already

if [ -x $python ]; then
    $python scripts/kernel-tuner-orders.py "$bin/kcast" --share "$share" --seeds "$seeds" --jobs "$jobs" "$@" >"$work/orders" 2>"$work/said" ||
        { cat "$work/said" >&2; exit 1; }
    with=(--orders "$work/orders")
fi
searches() { # policies, strategies, arguments of kcast replay…
    local policies=$1 strategies=$2
    shift 2
    "$bin/kcast" replay --json --policy "$policies" --strategy "$strategies" --seeds "$seeds" --budget "$share%" --jobs "$jobs" "$@" >>"$work/searches"
}
searches all best-of-n,greedy --peers tvm,tvm-knobs "${with[@]}" "$@"
searches rank,threshold,budget,published,published-correct greedy "$@"
searches rank,threshold greedy --forecaster perfect "$@"
[ -z "${SAVE:-}" ] || cp "$work/searches" "$SAVE"

{
    echo "$# spaces, $seeds seeds, $share % of the device time that measuring the whole space takes, $(date -u +%Y-%m-%d)."
    python3 scripts/replay-tables.py --only final,costs,missed,audits,claims,families "$work/searches" | sed 1d
    if [ -x $python ]; then
        printf '\nKernel Tuner is release %s. ' "$($python -c 'import importlib.metadata as m; print(m.version("kernel_tuner"))')"
        sed -n 's/^kernel-tuner\/\(.*\): \([0-9]*\) times it failed.*/\1 (\2)/p' "$work/said" | paste -sd, | sed 's/,/, /g; s/^..*$/Failed and began again: &./'
        echo
        sed -n 's/^\(kernel-tuner\/[a-z_]* is left out: .*\)$/\1./p' "$work/said"
    else
        printf '\nKernel Tuner is not in build/kernel-tuner: its strategies are not among the variants.\n'
    fi
} >"$work/tables"
echo "scripts/evaluate.sh: $(((SECONDS - started + 59) / 60)) minutes, with $jobs processes at once" >&2

if [ -z "$write" ]; then
    cat "$work/tables"
else
    doc=docs/evaluation.md
    sed -n '1,/^<!-- tables of scripts\/evaluate.sh -->/p' $doc >"$work/doc"
    cat "$work/tables" >>"$work/doc"
    sed -n '/^<!-- end of the tables -->/,$p' $doc >>"$work/doc"
    grep -q '^<!-- end of the tables -->' "$work/doc" || { echo "scripts/evaluate.sh: $doc has no marks for the tables; put them back" >&2; exit 1; }
    cp "$work/doc" $doc
fi
