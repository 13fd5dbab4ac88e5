#!/usr/bin/env bash
# kcast replay at the command line, on shipped spaces: the same seeds give the same lines whatever the number of processes, a
# surrogate spares measurements, imported spaces without costs work, wrong input is one sentence, and nothing is left behind.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:?} spaces=${KCAST_ROOT:?}/docs/h200/spaces
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0
complain() { echo "$1"; bad=1; }
replay() { "$bin/kcast" replay "$@"; }
sum() { grep -F "\"policy\":\"$1\"" lines | sed -E "s/.*\"$2\":([0-9.e+-]+).*/\1/" | awk '{s += $1} END {print s}'; } # policy key

variants='--policy all,threshold,budget --strategy best-of-n,greedy --seeds 2 --budget 6%'
replay $variants --jobs 1 --json "$spaces/rope.space" "$spaces/gemv.space" >lines || complain "replay ended with $?"
replay $variants --jobs 3 --json "$spaces/rope.space" "$spaces/gemv.space" >again || complain "replay ended with $?"
cmp lines again || complain 'another number of processes gives other lines'
[ "$(wc -l <lines)" -eq 24 ] || complain "$(wc -l <lines) lines instead of 24"
grep -vE '"fraction_of_best":(0\.[5-9]|1)' lines && complain 'a search found less than half of the best'
# Forecasts save measurements once they have shown skill, which takes more than these short searches for most of their candidates.
awk "BEGIN {exit !($(sum threshold considered) / $(sum threshold measured) > $(sum all considered) / $(sum all measured))}" ||
    complain "threshold measured $(sum threshold measured) of $(sum threshold considered), all $(sum all measured) of $(sum all considered)"
grep -F '"policy":"all"' lines | grep -v '"missed":0,' && complain 'all missed something'
replay $variants "$spaces/rope.space" >table || complain "replay ended with $?"
grep -qE '^rope +all/best-of-n ' table && grep -qE '^budget/greedy +[0-9.]+ \[' table || { complain 'the table is'; cat table; }

# Others' searches, and what other programs measured in which order, are charged the same device time.
"$bin/kcast" export "$spaces/gemv.space" >rows
slow=($(grep -n '"verdict":"slower"' rows | head -n 3 | cut -d: -f1)) # never measured again as records
echo "others/first gemv 1 ${slow[0]} ${slow[1]} ${slow[0]} ${slow[2]}" >orders
replay --policy all --strategy best-of-n --peers tenth --orders orders --seeds 1 --budget 5% --json "$spaces/gemv.space" >lines ||
    complain "replay with peers ended with $?"
grep -F '"policy":"tenth"' lines | grep -q '"measured":160,' || { complain 'of 1,600 candidates a tenth measured'; cut -c1-400 lines; }
charged=$(sed -n "${slow[0]}p; ${slow[1]}p; ${slow[2]}p" rows | sed -E 's/.*"seconds":\{[^}]*"held":([0-9.e+-]+).*/\1/' | awk '{s += $1} END {print s}')
[ "$(sum others/first measured)" = 3 ] && awk "BEGIN {d = $(sum others/first device_seconds) - ($charged); exit !(d < 1e-4 && d > -1e-4)}" ||
    { complain "three measurements of $charged s were charged"; cut -c1-400 lines; }
replay --policy all --strategy best-of-n,greedy --seeds 1 --budget 5% --markdown --against all/greedy "$spaces/gemv.space" >table ||
    complain "replay --markdown ended with $?"
grep -qE '^\| `all/best-of-n` \| [01]\.[0-9]{3} \[' table || { complain 'the tables are'; cat table; }
if command -v python3 >/dev/null; then # what Kernel Tuner is given
    whole=$(replay --policy "" --orders orders --seeds 1 --budget 100% --json "$spaces/gemv.space" | sed -E 's/.*"given_seconds":([0-9.e+-]+).*/\1/')
    python3 "$KCAST_ROOT/tests/e2e/tuner_orders.py" "$KCAST_ROOT/scripts/kernel-tuner-orders.py" rows "$whole" || complain 'scripts/kernel-tuner-orders.py converts wrongly'
fi

cat >tuned.json <<'TEXT'
{"device_name": "NVIDIA A100", "kernel_name": "add", "tune_params_keys": ["x", "y"], "cache": {
"1,1": {"x": 1, "y": 1, "time": 4.0}, "2,1": {"x": 2, "y": 1, "time": 1.0}, "1,2": {"x": 1, "y": 2, "time": 2.0}}}
TEXT
"$bin/kcast" import kernel-tuner tuned.json --baseline x=1,y=1 -q || complain 'tuned.json is not taken'
replay --seeds 1 --policy all --json tuned.space >lines 2>said || complain "replay of tuned.space ended with $?"
grep -q '"best_log2":2,.*"measured":3,' lines || { complain 'of tuned.space came'; cat lines said; }

refuse() { # exit code, part of the sentence, arguments…
    local code=$1 sentence=$2 status=0
    shift 2
    replay "$@" >said 2>&1 || status=$?
    [ $status -eq "$code" ] && [ "$(wc -l <said)" -eq 1 ] && grep -qF -- "$sentence" said || { complain "replay $* ended with $status:"; cat said; }
}
refuse 2 'there is no policy "hope"' --policy hope "$spaces/rope.space"
refuse 2 'there is no strategy "hope"' --strategy hope "$spaces/rope.space"
refuse 2 'give --audit above 0' --policy all,risk --audit 0 "$spaces/rope.space"
refuse 2 '--guarantee' --policy risk --guarantee hope "$spaces/rope.space"
refuse 2 'there is no peer "hope"' --peers hope "$spaces/rope.space"
refuse 2 '--against: there is no variant "hope"' --against hope "$spaces/rope.space"
refuse 3 'the orders have no line' --policy '' --orders orders --seeds 1 "$spaces/rope.space"
echo 'others/first gemv one' >wrong
refuse 3 'wrong:1' --orders wrong "$spaces/rope.space"
refuse 2 '1 to 256 spaces'
refuse 2 '--budget' --budget 10x "$spaces/rope.space"
refuse 3 'no.space' no.space
refuse 3 'no space' tuned.json
head -c 5000 "$spaces/rope.space" >cut.space
refuse 3 'cut.space: the file is damaged' cut.space

"$bin/kcast" replay --seeds 5000 "$spaces/rope.space" >table 2>&1 &
pid=$!
has_children() { pgrep -P $pid >children; }
within 60 has_children
[ -s children ] || complain 'it started no processes'
kill -9 $pid
wait $pid 2>/dev/null
all_gone() { for child in $(cat children); do ! kill -0 "$child" 2>/dev/null || return 1; done; }
within 60 all_gone || complain 'its processes outlive it'
exit $bad
