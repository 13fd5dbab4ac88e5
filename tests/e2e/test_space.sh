#!/usr/bin/env bash
# Spaces at the command line: those that are shipped are as docs/spaces.md says, go out as rows for another tool and come back
# the same; a file of a tuner comes in.
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
bad=0
complain() { echo "$1"; bad=1; }

count=0
for space in "$root"/docs/h200/spaces/*.space; do
    name=$(basename "$space" .space)
    count=$((count + 1))
    "$bin/kcast" export "$space" >lines || complain "$name: not exported"
    all=$(wc -l <lines) correct=$(grep -cE '"verdict":"(faster|slower|equivalent|inconclusive)"' lines)
    said=$(sed -nE "s/^\| $name \| ([0-9,]+) \| ([0-9,]+) \|.*/\1 \2/p" "$root/docs/spaces.md" | tr -d ,)
    [ "$said" = "$all $correct" ] || complain "$name: docs/spaces.md says \"$said\" of $all candidates, $correct of them correct"
done
[ $count -eq 15 ] || complain "$count spaces are shipped"

for name in transpose softmax; do
    space=$root/docs/h200/spaces/$name.space baseline=$root/problems/cuda/$name/baseline.cu
    "$bin/kcast" export "$space" --format gpu-forecasters --baseline "$baseline" -q >one.jsonl || complain "$name: no rows"
    "$bin/kcast" import gpu-forecasters one.jsonl -q || complain "$name: its rows are not taken back"
    "$bin/kcast" export one.space --format gpu-forecasters -q >two.jsonl || complain "$name: no rows the second time"
    for file in one two; do sed -E 's/"internal_experiment":.*//; s/("aggregated_speedup":[0-9.]{10})[0-9e.-]*/\1/' $file.jsonl >$file.cut; done
    [ -s one.cut ] && cmp one.cut two.cut || complain "$name: its rows have changed"
done

cat >tuned.json <<'TEXT'
{"device_name": "NVIDIA A100", "kernel_name": "add", "tune_params_keys": ["block"], "tune_params": {"block": [32, 64, 96]}, "cache": {
"32": {"block": 32, "time": 4.0}, "64": {"block": 64, "time": 1.0}, "96": {"block": 96, "__error__": "RuntimeFailedConfig"},
TEXT
"$bin/kcast" import kernel-tuner tuned.json --baseline block=32 --json >said || complain "tuned.json is not taken"
grep -q '"problem":"add".*"candidates":3,"correct":2,"launch_costs":2' said || complain "import says $(cat said)"
"$bin/kcast" export tuned.space >lines
grep -q '"name":"block=64".*"speedup":4.0' lines && grep -q '"name":"block=96".*"verdict":"crash"' lines || { complain "tuned.space has"; cat lines; }

cat >ktt.json <<'TEXT'
{"Metadata": {"Device": "NVIDIA A100", "TimeUnit": "Microseconds"}, "Results": [
{"KernelName": "add", "Configuration": [{"Name": "block", "Value": 32}], "Status": "Ok", "TotalDuration": 400.0, "TotalOverhead": 9600.0},
{"KernelName": "add", "Configuration": [{"Name": "block", "Value": 64}], "Status": "Ok", "TotalDuration": 100.0, "TotalOverhead": 9900.0},
{"KernelName": "add", "Configuration": [{"Name": "block", "Value": 96}], "Status": "ValidationFailed", "TotalDuration": 90.0, "TotalOverhead": 9900.0}]}
TEXT
gzip ktt.json && "$bin/kcast" import ktt ktt.json.gz --baseline block=32 --json >said || complain "ktt.json.gz is not taken"
grep -q '"problem":"add".*"candidates":3,"correct":2,"launch_costs":0' said || complain "import says $(cat said)"
"$bin/kcast" export ktt.space >lines.ktt
grep -q '"name":"block=64".*"speedup":4.0.*"held":0.01[,}]' lines.ktt && grep -q '"name":"block=96".*"verdict":"wrong"' lines.ktt ||
    { complain "ktt.space has"; cat lines.ktt; }

# Where one launch is all that is known of what measuring costs, import and replay say so.
warning='for 2 of 3 candidates a search is charged one kernel launch'
"$bin/kcast" import kernel-tuner tuned.json --baseline block=32 2>said || complain 'tuned.json is not taken again'
grep -qF "kcast: tuned.space: $warning" said || complain "import says of the costs of tuned.json $(cat said)"
"$bin/kcast" replay --policy all --seeds 1 tuned.space >table 2>&1 && grep -qF "(tuned: $warning" table || { complain 'replay does not'; cat table; }
"$bin/kcast" import ktt ktt.json.gz 2>said && ! grep -q 'one kernel launch' said || complain "import says of the costs of ktt.json $(cat said)"

# Packed files are told by how they begin, whatever they are called; a file that unpacks to too much is refused at once.
gzip -n <tuned.json >packed.json.gz && cp packed.json.gz named-as-if-plain.json
"$bin/kcast" import kernel-tuner packed.json.gz --baseline block=32 -q && "$bin/kcast" export packed.space | cmp - lines ||
    complain 'a packed file gives another space'
"$bin/kcast" import kernel-tuner named-as-if-plain.json --baseline block=32 -q || complain 'a packed file is told by its name'
head -c 1M /dev/zero | gzip -n9 >member
for _ in $(seq 257); do cat member; done >bomb.json
"$bin/kcast" import kernel-tuner bomb.json 2>said && complain 'what unpacks to too much is taken'
grep -q 'bomb.json: it unpacks to more than 256 MiB' said && [ ! -e bomb.space ] || complain "of what unpacks to too much is said $(cat said)"
head -c 60 packed.json.gz >cut.json
"$bin/kcast" import kernel-tuner cut.json 2>said && complain 'a cut file is taken'
grep -q 'cut.json: it begins like a gzip file and cannot be unpacked' said || complain "of a cut file is said $(cat said)"
exit $bad
