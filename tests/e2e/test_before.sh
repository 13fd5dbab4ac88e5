#!/usr/bin/env bash
# Files of before are read as they were written: a run that was finished, one whose client was killed, a space, a daemon's
# state with unfinished jobs, a worker's outcomes. tests/data/before has them, and what the programs of then said of them.
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?} hill=${KCAST_ROOT:?}/tests/data/client/hill
dir=$(mktemp -d)
die() { echo "$1"; cat "$dir/out" "$dir/err" 2>/dev/null; exit 1; }
# shellcheck source=tests/e2e/programs.sh
. "$root/tests/e2e/programs.sh"
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$dir"' EXIT
cd "$dir" || exit 1
cp "$root"/tests/data/before/*.gz . && gunzip *.gz || die 'tests/data/before cannot be unpacked'
same() { python3 "$root/tests/e2e/same_as_before.py" "$1" "$2" >differs || die "$3 is not what it was: $(head -5 differs | cut -c 1-300)"; }


"$bin/kcast" report finished.run --json >report.json 2>err || die 'the finished run has no report'
grep -q '"wall":{"recorded":false,"not_recorded":2\.5[0-9]*,"start_up":null,"measuring":null,' report.json ||
    die "the report of a run of before does not say that its times are not recorded: $(cat report.json)"
# What is said since then, and that nothing was saved, as no forecast was trusted.
grep -q '"counts":{"considered":24,"measured":18,"audits":0,"trusted":0,"not_compiled":0,"duplicates":6,' report.json ||
    die "the rows of a run of before: $(cat report.json)"
sed -e 's/"wall":{[^}]*},"work":{[^}]*},"devices":\[[^]]*\],//' -e 's/"counts":{[^}]*},//' -e 's/"confidence":0.9[0-9]*,//' report.json >report.then
# Its nineteen results have the same A/A control, which counts once since then.
sed -i -e 's/"saving":1.33[0-9]*,/"saving":null,/' -e 's/"controls":19,/"controls":1,/' finished.report.json
same report.then finished.report.json 'the report of a run of before'
"$bin/kcast" export finished.run >run.jsonl 2>err || die 'the finished run is not exported'
same run.jsonl finished.jsonl 'the export of a run of before'
"$bin/kcast" export finished.run --events >events.jsonl 2>err || die 'the events of the finished run are not exported'
same events.jsonl finished.events.jsonl 'the list of events of a run of before'
"$bin/kcast" report finished.run -o page.html -q 2>err && grep -q '</html>' page.html || die 'the finished run has no page'
"$bin/kcast" replay finished.space --policy all --json --seeds 3 >replay.jsonl 2>err || die 'the space is not replayed'
# It is decided as then. Measurements have begun earlier since then, so that times differ.
sed -i -E 's/"simulated_seconds":[^,]*,//; s/\[[0-9.e-]+,([0-9.e-]+)\]/[\1]/g' replay.jsonl finished.replay.jsonl
same replay.jsonl finished.replay.jsonl 'the replay of a space of before'

# Jobs that a daemon of before had accepted are done by the daemon of today, under their numbers.
try_sandbox
mkdir daemon && tar xJf "$root/tests/data/before/daemon.tar.xz" -C daemon
mkfifo log
"$bin/kcastd" --parent-death --state daemon --listen tcp://127.0.0.1:0 --sandbox "$sandbox" --devices cpu:1 2>log &
daemon=$!
exec {lines}<log
done=0 reloaded=no url=
while [ $done -lt 11 ] && read -r -t 60 line; do
    echo "$line" >>out
    case $line in
    *'jobs-reloaded unfinished=11 finished=0'*) reloaded=yes ;;
    *' ready url='*) url=$(sed -n 's/.* url=\([^ ]*\) .*/\1/p' <<<"$line") ;;
    *' job-done '*) done=$((done + 1)) ;;
    esac
done <&"$lines"
[ "$reloaded" = yes ] || die 'the daemon has not read the jobs of before'
[ $done -eq 11 ] || die "$done of 11 jobs of before were done"

# What a worker of before had learnt is counted by the worker of today.
mkdir worker && mv worker.db worker/
start kcast-worker worker --state worker --listen tcp://127.0.0.1:0
"$bin/kcast" --worker "$started_url" --pool "$url" status --json >out 2>err
grep -q '"outcomes":18' out || die 'the worker does not know the outcomes of before'

# The search whose client was killed goes on, where devices of its class are.
class=$("$bin/kcast" export killed.run --events 2>/dev/null | sed -n 's/.*"device_class":"\([^"]*\)".*/\1/p' | head -1)
"$bin/kcast" --local --sandbox "$sandbox" -q resume killed.run --json >out 2>err && grep -q '"considered":60' out && exit 0
grep -qF "$class" err || die 'the killed run is not resumed'
