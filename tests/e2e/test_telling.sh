#!/usr/bin/env bash
# What commands say while they go on and when they end: progress and reasons for waiting, results and events as they come, whole
# diagnostics, searches that are extended, damaged files, and private programs that leave nothing.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
pids=()
finish() {
    for pid in "${pids[@]}"; do kill -9 "$pid" 2>/dev/null; done
    rm -rf "$work"
}
trap finish EXIT
cd "$work"
bad=0
complain() { echo "$*"; bad=1; }
unset KCAST_POOL KCAST_WORKER COLUMNS || :
export HOME=$work/home KCAST_PROBLEMS=$root/problems/cpu
scan=$root/problems/cpu/scan

"$bin/kcastd" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 --devices cpu:1 --sandbox off --state state 2>log &
daemon=$!
pids+=($daemon)
listens() {
    url=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' log) http=$(sed -n 's/.* http url=\([^ ]*\).*/\1/p' log)
    [ -n "$url" ] || ! kill -0 $daemon 2>/dev/null
}
within 60 listens
[ -n "$url" ] || { echo "kcastd does not start: $(cat log)"; exit 1; }
kcast() { timeout 300 "$bin/kcast" --no-worker --pool "$url" "$@"; }
# json 'EXPRESSION over o, the objects' FILE
json() { python3 -c 'import json, sys; o = [json.loads(l) for l in open(sys.argv[2])]; assert eval(sys.argv[1]), o' "$1" "$2" || complain "$2: not $1"; }

# ---- the compiler's diagnostics, whole, under the user's name ----
cat >my.c <<'TEXT'
int f(void) { return one; }
int g(void) { return two; }
int h(void) { return WIDTH; }
TEXT
kcast measure "$scan" my.c >out 2>err
for text in "my.c: compile-error: my.c:1:22: error: 'one' undeclared" "    my.c:1:22: error: 'one'" "    my.c:2:22: error: 'two'" "    my.c: In function 'g':" \
    "    my.c:3:22: error: 'WIDTH'" "declare it by a line \`//@ tune WIDTH in"; do
    grep -qF -- "$text" out || complain "the diagnostics lack \"$text\": $(cat out)"
done
! grep -q 'candidate\.c' out || complain "the daemon's name of the file is shown"
kcast --json measure "$scan" my.c >out.json 2>err
json '[d["line"] for d in o[0]["diagnostics"] if d["severity"] == "error"] == [1, 2, 3]' out.json
json 'all(d["file"] == "my.c" for d in o[0]["diagnostics"]) and "candidate.c" not in json.dumps(o)' out.json
json 'o[0]["schema"] == 1 and o[0]["cached"] and "my.c:2:22" in o[0]["compiler_output"] and "WIDTH" in o[0]["advice"]' out.json
{ for i in $(seq 60); do echo "int f$i(void) { return missing$i; }"; done; } >many.c
kcast --json measure "$scan" many.c >out.json 2>err
json 'sum(d["severity"] == "error" for d in o[0]["diagnostics"]) == 60' out.json

# ---- stdin, a folder, a point of a template ----
kcast --json measure "$scan" - <my.c >out.json 2>err
json 'o[0]["candidate"] == "-" and o[0]["diagnostics"][0]["file"] == "<stdin>"' out.json
mkdir sources
cp my.c sources/b.c && cp many.c sources/a.c && : >sources/notes.txt
kcast --json measure "$scan" sources >out.json 2>err
json 'sorted(x["candidate"] for x in o) == ["sources/a.c", "sources/b.c"]' out.json
{ echo '//@ tune WIDTH in (1, 2, 4)'; echo 'int x = WIDTH;'; echo 'int y = z;'; } >template.c
kcast measure "$scan" template.c >out 2>err
grep -qF 'WIDTH is a parameter of the template: give it a value with --define WIDTH=VALUE, or let `kcast tune scan template.c`' out || complain "no pointer to tune: $(cat out)"
kcast --json measure "$scan" template.c --define WIDTH=4 >out.json 2>err
json '[(d["file"], d["line"]) for d in o[0]["diagnostics"] if d["severity"] == "error"] == [("template.c", 3)]' out.json

# ---- results as they come, also into a pipe: the second is slow because its device is drained ----
kcast measure "$scan" "$scan/baseline.c" --launches 1 >/dev/null 2>&1
kcast drain cpu0 --reason 'new fan' >/dev/null
mkfifo results
rm -f err
"$bin/kcast" --no-worker --pool "$url" --json measure "$scan" my.c "$scan/baseline.c" --fresh >results 2>err &
pids+=($!)
measure=$!
exec {results}<results
read -r -t 120 line <&"$results" || line=
grep -q '"candidate":"my.c"' <<<"$line" || complain "the first result does not come before the second: $line"
said() { grep -qs 'waiting: cpu0 is draining (new fan)' err; } # err is removed before: the command makes it anew, and can be signalled from then on
within 60 said || complain "it is not said what is waited for: $(cat err)"
kcast undrain cpu0 >/dev/null
read -r -t 120 line <&"$results" || line=
grep -q '"candidate":".*baseline.c"' <<<"$line" || complain "the second result does not come: $line"
wait $measure || complain "measure ended with $?: $(cat err)"

# Whoever waits says so, not `kcast measure` alone.
kcast drain cpu0 --reason 'new fan' >/dev/null
for flag in '' --json; do
    rm -f err
    # shellcheck disable=SC2086
    "$bin/kcast" --no-worker --pool "$url" $flag problem check "$scan" >checked 2>err &
    pids+=($!)
    check=$!
    within 60 said || complain "problem check $flag does not say what it waits for: $(cat err)"
    kill -INT $check
    wait $check
done
kcast undrain cpu0 >/dev/null

# On a terminal the line says it in place, whole words only.
kcast drain cpu0 --reason 'new fan' >/dev/null
TERM=xterm script -qfc "stty cols 50; exec '$bin/kcast' --no-worker --pool '$url' measure '$scan' '$scan/baseline.c' --fresh" typed </dev/null >/dev/null 2>&1 &
pids+=($!)
typed=$!
lines() { tr '\r' '\n' <typed | grep -a '^measured' | sed 's/\x1b\[K//'; }
drawn() { [ -s typed ] && lines | grep -q 'waiting: cpu0 is'; }
within 60 drawn || complain "no line is drawn: $(lines | tail -3)"
kcast undrain cpu0 >/dev/null
wait $typed
lines | grep -avE '^measured [01] of 1(, [0-9.]+ m?s|, [0-9]+m[0-9]+s)?(, waiting: cpu0 is( (draining|starting|suspect|probing|busy|with|others))*( …)?)?$' >cut
[ ! -s cut ] || complain "words are cut: $(cat cut)"

# Elsewhere a command's line is seen only when it takes long; on a terminal at once.
"$bin/kcast-worker" --listen tcp://127.0.0.1:0 --engine static --state worker --parent-death 2>worker.log &
pids+=($!)
forecasts() { worker=$(sed -nE 's/.*(ready|listening) url=([^ ]*).*/\2/p' worker.log 2>/dev/null); [ -n "$worker" ]; }
within 60 forecasts || complain "kcast-worker does not start: $(cat worker.log)"
TERM=xterm script -qfc "exec '$bin/kcast' --pool '$url' --worker '$worker' forecast '$scan' '$scan/baseline.c'" typed </dev/null >/dev/null 2>&1
tr '\r' '\n' <typed | grep -aqE '^(compiled [0-2] of 2|asked about 0 of 1), ' || complain "forecast draws no line: $(cat typed)"
TERM=xterm script -qfc "exec '$bin/kcast' replay --seeds 1 --policy all --jobs 1 '$root/docs/h200/spaces/rope.space'" typed </dev/null >/dev/null 2>&1
tr '\r' '\n' <typed | grep -aqE '^replayed [01] of 1 searches, ' || complain "replay draws no line: $(cat typed)"
TERM=xterm script -qfc "exec '$bin/kcast' replay -q --seeds 1 --policy all --jobs 1 '$root/docs/h200/spaces/rope.space'" typed </dev/null >/dev/null 2>&1
! grep -aq '^replayed' typed || complain "replay --quiet draws a line"

# ---- events of a search, and a search that is given more ----
kcast --json search "$scan" --run s.run --measurements 2 --candidates 8 --seed 4 >events.json 2>err || complain "search: $(cat err)"
json 'all(x["schema"] == 1 for x in o) and [x["sequence"] for x in o[:-1]] == list(range(1, len(o)))' events.json
json 'o[0]["event"] == "started" and o[-2]["event"] == "finished" and "event" not in o[-1] and o[-1]["measured"] == 2' events.json
json 'all(x["verdict"] in ("faster", "slower", "equivalent", "inconclusive") for x in o if x.get("event") == "measured")' events.json
json 'sum(x.get("event") == "measured" for x in o) >= 2 and isinstance(o[0]["body"]["seed"], int)' events.json
kcast --json resume s.run --measurements 4 >more.json 2>err || complain "resume --measurements: $(cat err)"
json 'o[0]["event"] == "extended" and o[-1]["measured"] == 4 and o[0]["sequence"] == '"$(wc -l <events.json)" more.json
for more in '--candidates 12' '--budget 1h30m' '--max-time 1h'; do
    # shellcheck disable=SC2086
    kcast --json resume s.run $more >more.json 2>err || complain "resume $more: $(cat err)"
    json 'o[0]["event"] == "extended" and "event" not in o[-1]' more.json
done
json 'o[0]["body"]["budget_seconds"] == 5400 and o[0]["body"]["wall_limit_seconds"] == 3600 and o[0]["body"]["candidates_max"] == 12' more.json
kcast --json resume s.run >same.json 2>err
json 'len(o) == 1 and "event" not in o[0]' same.json
"$bin/kcast" report s.run --json >report.json 2>err || complain "an extended run cannot be reported: $(cat err)"

# ---- a reader who goes away ends a search, silently; what was done is kept ----
"$bin/kcast" --no-worker --pool "$url" --json search "$scan" --run gone.run --candidates 200 2>err | head -n 3 >/dev/null
status=${PIPESTATUS[0]}
[ "$status" -eq 141 ] || complain "a search whose reader has gone ended with $status"
! grep -v 'go on with' err | grep -q . || complain "a search whose reader has gone says: $(cat err)"
"$bin/kcast" report gone.run --json >/dev/null || complain "a search whose reader has gone left no run"

for command in 'export s.run' 'export s.run --events' 'report s.run --json' 'report s.run -o -'; do # nobody reads from the start
    # shellcheck disable=SC2086
    python3 -c 'import os, sys; r, w = os.pipe(); os.close(r); os.dup2(w, 1); os.execv(sys.argv[1], sys.argv[1:])' "$bin/kcast" $command 2>err
    status=$?
    [ "$status" -eq 141 ] && [ ! -s err ] || complain "kcast $command into a closed pipe ended with $status and says: $(cat err)"
done
kcast measure "$scan" my.c many.c >/dev/full 2>err
status=$?
[ $status -eq 7 ] && grep -q 'No space left' err || complain "measure onto a full disk ended with $status: $(cat err)"

# ---- the status is one object, whoever gives it ----
same_status() { # unless something changes between the two calls
    kcast --json status >status.json && python3 - "$http" 2>differs <<'TEXT'
import json, sys, urllib.request
ours = json.load(open("status.json"))
theirs = json.load(urllib.request.urlopen(sys.argv[1] + "/status.json"))
def shape(v):
    return {k: shape(x) for k, x in v.items()} if isinstance(v, dict) else [shape(v[0])] if isinstance(v, list) and v else type(v).__name__.replace("int", "number").replace("float", "number")
for both in (ours, theirs):
    both.pop("worker")
    both.pop("searches", None), both.pop("devices")[0].pop("job", None)
assert list(ours) == list(theirs), (list(ours), list(theirs))
assert ours["schema"] == theirs["schema"] == 1 and ours["pool"] == theirs["pool"]
for k in ours:
    assert shape(ours[k]) == shape(theirs[k]), (k, ours[k], theirs[k])
TEXT
}
within 60 same_status || complain "/status.json is not what kcast status --json says: $(tail -n 1 differs)"

# ---- damaged run files ----
cp s.run damaged.run
python3 -c '
import sqlite3
run = sqlite3.connect("damaged.run")
run.execute("UPDATE blob SET data = x'"'00'"'")
run.commit()'
"$bin/kcast" export damaged.run >out.json 2>err
[ $? -eq 3 ] && grep -q 'are missing or damaged' err || complain "damaged sources are not told: $(cat err)"
json 'all(x["source"] is None and x["source_error"]["name"] == "corrupt" for x in o)' out.json
"$bin/kcast" export damaged.run --format space -o damaged.space 2>err
[ $? -eq 3 ] && grep -q 'damaged' err || complain "a space is made of a damaged run: $(cat err)"

# ---- private programs leave nothing, also when kcast is killed ----
mkdir tmp
compilers() { find /proc -maxdepth 2 -name cwd -lname "$work/tmp/kcast-local-$1.*" 2>/dev/null | grep .; } # of a kcast: they work in its folder
export TMPDIR=$work/tmp
"$bin/kcast" --local --sandbox off -q measure "$scan" "$scan/baseline.c" --launches 1 >/dev/null 2>err || complain "--local: $(cat err)"
[ -z "$(ls tmp)" ] || complain "--local leaves $(ls tmp)"
"$bin/kcast" --local --sandbox off -q search "$scan" --run killed.run --candidates 500 >/dev/null 2>&1 &
pids+=($!)
victim=$!
begun() { ls tmp/kcast-local-$victim.*/daemon/ledger.db; } >/dev/null 2>&1
within 60 begun || complain "--local does not begin"
compiles() { [ -n "$(find tmp -maxdepth 4 -name 'kcast-compile.*')" ]; }
within 60 compiles || complain "--local does not compile in its temporary folder"
mkdir "tmp/kcast-local-$$.theirs" tmp/kcast-local-x tmp/other # of a process that runs, and names of others
kill -9 $victim
wait $victim 2>/dev/null
orphans() { ! pgrep -f -- "--state=$work/tmp/kcast-local-$victim" >/dev/null; }
within 60 orphans || complain "private programs outlive kcast"
! compilers $victim >left || complain "compilers outlive kcast: $(cat left)"
[ -n "$(ls -d tmp/kcast-local-$victim.* 2>/dev/null)" ] || complain "there is nothing to sweep"
"$bin/kcast" --local --sandbox off -q measure "$scan" "$scan/baseline.c" --launches 1 >/dev/null 2>err || complain "--local: $(cat err)"
[ "$(ls tmp | sort | tr '\n' ' ')" = "kcast-local-$$.theirs kcast-local-x other " ] || complain "the next start leaves $(ls tmp)"

# A compilation of many seconds ends with whoever wanted it: with kcast, and with a daemon that is killed.
{ echo 'int g(int);'; for i in $(seq 6000); do echo "int f$i(int x) { for (int i = 0; i < $i + x; i++) x = g(x * $i) ^ x; switch (x) { case 1: return g(x); case 3: return 7; } return x + $i; }"; done; } >slow.c
for signal in INT KILL; do
    "$bin/kcast" --local --sandbox off -q measure "$scan" slow.c >out 2>&1 &
    pids+=($!)
    slow=$!
    compiling() { for cwd in $(compilers $slow); do grep -q cc1 "${cwd%cwd}comm" && return; done; return 1; } 2>/dev/null
    within 60 compiling || complain "the slow compilation does not begin: $(cat out)"
    [ $signal = INT ] || pkill -KILL -f -- "kcastd .*--state=$work/tmp/kcast-local-$slow"
    kill -$signal $slow
    wait $slow 2>/dev/null
    gone() { ! compilers $slow >left; }
    within 20 gone || complain "after SIG$signal compilers go on: $(cat left)"
    orphans() { ! pgrep -f -- "--state=$work/tmp/kcast-local-$slow" >/dev/null; }
    within 20 orphans || complain "after SIG$signal a private program goes on"
done
# A daemon of one's own keeps the files of compilations in its state, and leaves none there.
written=none # by the daemon before; the next one takes the job up again
for signal in KILL TERM; do
    : >own.log # so that what the one before has said is not taken for this one's
    "$bin/kcastd" --listen tcp://127.0.0.1:0 --state own --sandbox off >own.log 2>&1 &
    pids+=($!)
    own=$!
    serves() { grep -q ' ready url=' own.log; }
    within 60 serves || complain "kcastd does not start: $(cat own.log)"
    [ ! -e "$written" ] || complain "a new start leaves $written"
    "$bin/kcast" --pool "$(sed -n 's/.* ready url=\([^ ]*\).*/\1/p' own.log)" -q measure "$scan" slow.c >out 2>&1 &
    pids+=($!)
    asks=$!
    writes() { written=$(find own/scratch -name 'candidate.c' -o -name 'slow.c') && [ -n "$written" ]; }
    within 60 writes || complain "the compilation does not begin: $(cat out)"
    kill -$signal $own
    wait $own 2>/dev/null
    kill $asks 2>/dev/null # where it still waits for the daemon
    wait $asks 2>/dev/null
    [ $signal = KILL ] || [ ! -e own/scratch ] || complain "a daemon that was stopped leaves $(find own/scratch)"
done
for program in kcastd kcast-worker; do # whose parent has ended before they could ask to end with it
    KCAST_PARENT=1 "$bin/$program" --listen tcp://127.0.0.1:0 --state early --parent-death >out 2>&1
    [ $? -ne 0 ] && grep -q 'the process that started this one has gone' out || complain "$program outlives a parent that has ended: $(cat out)"
done

# A private daemon that dies is started again, and the command ends well.
"$bin/kcast" --local --sandbox off search "$scan" --run again.run --candidates 12 >out 2>err &
pids+=($!)
search=$!
settled() { ls tmp/kcast-local-$search.*/daemon/ledger.db && grep -q 'job-done .* key=m' tmp/kcast-local-$search.*/kcastd.log; } >/dev/null 2>&1
within 60 settled || complain "the search with a private daemon measures nothing: $(cat err)"
pkill -KILL -f -- "kcastd .*--state=$work/tmp/kcast-local-$search"
wait $search || complain "a search whose private daemon died ended with $?: $(cat err)"
grep -q 'the private kcastd was ended by signal 9 and is started again; it said last: ' err || complain "that the private daemon died is not told: $(cat err)"
exit $bad
