#!/usr/bin/env bash
# Wrong input on purpose: each time one sentence on stderr that names the thing, the documented exit code, and nothing lost.
set -u
. "$(dirname "$0")/../support/until.sh"
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
bad=0 daemon=
finish() {
    [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; }
    rm -rf "$work"
}
trap finish EXIT
cd "$work"

# expect CODE 'text in the sentence' command…
expect() {
    local code=$1 text=$2 status=0
    shift 2
    "$@" >out 2>err </dev/null || status=$?
    if [ $status -ne "$code" ]; then
        echo "$*: exit code $status where $code was expected"; sed 's/^/    /' err; bad=1
    elif ! grep -qF -- "$text" err; then
        echo "$*: stderr does not say \"$text\":"; sed 's/^/    /' err; bad=1
    elif [ "$(grep -c . err)" -gt "${LINES_MAX:-1}" ]; then
        echo "$*: more than one sentence:"; sed 's/^/    /' err; bad=1
    fi
}

# ---- the command line ----
expect 2 'searhc' "$bin/kcast" searhc
expect 2 'unknown' "$bin/kcast" --frobnicate status
expect 2 'PROBLEM' "$bin/kcast" search
expect 2 '--confidence' "$bin/kcast" search x --confidence 2
expect 2 '--budget' "$bin/kcast" search x --budget soon
expect 2 '--devices' "$bin/kcastd" --devices gpu
expect 3 '--cgroup /nowhere: No such file' "$bin/kcast-exec" --cgroup /nowhere probe
expect 3 '--cgroup .: no control group' "$bin/kcast-exec" --cgroup . probe
expect 3 'no port' "$bin/kcast" --pool tcp://nowhere status
expect 6 'no kcastd answers on tcp://127.0.0.1:1' "$bin/kcast" --pool tcp://127.0.0.1:1 status
expect 6 'no kcastd answers' "$bin/kcast" --pool tcp://127.0.0.1:1 measure "$root/problems/cpu/scan" "$root/problems/cpu/scan/baseline.c"

# Files are looked at before a daemon or a worker is asked.
expect 3 'missing.c' "$bin/kcast" --pool tcp://127.0.0.1:1 measure "$root/problems/cpu/scan" missing.c
expect 3 'missing.c' "$bin/kcast" --pool tcp://127.0.0.1:1 --worker tcp://127.0.0.1:1 forecast "$root/problems/cpu/scan" missing.c

# ---- spaces ----
expect 2 'needs kernel-tuner|ktt|gpu-forecasters FILE' "$bin/kcast" import kernel-tuner
expect 2 'kernel-tuner, ktt and gpu-forecasters are' "$bin/kcast" import autotuner x.json
expect 3 'nowhere.json' "$bin/kcast" import kernel-tuner nowhere.json
printf '{"pair_id": 1, "problem_id": 2}\n' >rows.jsonl
expect 3 'rows.jsonl: neither a cache file of Kernel Tuner' "$bin/kcast" import kernel-tuner rows.jsonl
expect 3 'rows.jsonl: no results of KTT' "$bin/kcast" import ktt rows.jsonl
expect 3 'rows.jsonl:1: "parent_code" is missing' "$bin/kcast" import gpu-forecasters rows.jsonl
[ ! -e rows.space ] || { echo "a space was made of rows that are none"; bad=1; }
space=$root/docs/h200/spaces/transpose.space
head -c 5000 "$space" >cut.space
expect 3 'cut.space: the file is damaged' "$bin/kcast" export cut.space
expect 2 'is a space already' "$bin/kcast" export "$space" --format space
expect 2 'has no events' "$bin/kcast" export "$space" --events
cat >tuned.json <<'TEXT'
{"device_name": "X", "kernel_name": "add", "tune_params_keys": ["x"], "cache": {"1": {"x": 1, "time": 4.0}, "2": {"x": 2, "time": 1.0}}}
TEXT
"$bin/kcast" import kernel-tuner tuned.json -q || bad=1
expect 3 'give the file with --baseline' "$bin/kcast" export tuned.space --format gpu-forecasters
expect 3 'not the baseline that' "$bin/kcast" export "$space" --format gpu-forecasters --baseline "$root/problems/cuda/transpose/reference.cu"

# ---- tuning ----
scan=$root/problems/cpu/scan
nobody="$bin/kcast --pool tcp://127.0.0.1:1" # nothing below may get as far as a daemon
expect 2 'PROBLEM' $nobody tune
expect 2 'exclude each other' $nobody tune "$scan" --all-shapes --case N=1
expect 3 'nowhere.c' $nobody tune "$scan" nowhere.c
expect 3 'has no benchmark case "N=3"' $nobody tune "$scan" --case N=3
grep -q 'it has N=' err || { echo "the cases that there are are not named: $(cat err)"; bad=1; }
expect 3 'baseline.c' $nobody tune "$scan" "$scan/baseline.c"
grep -q '//@ tune' err || { echo "what is missing is not named: $(cat err)"; bad=1; }
expect 9 '/proc/w.json.lock: cannot be created' $nobody tune "$scan" --wisdom /proc/w.json
if [ "$(id -u)" -ne 0 ]; then
    mkdir closed && chmod 555 closed
    expect 9 'closed/w.json.lock: cannot be created' $nobody tune "$scan" --wisdom closed/w.json
fi
printf '{"format": "kernelcast-wisdom", "version": 1, "entr' >damaged.json
expect 3 'damaged.json: line 1' $nobody tune "$scan" --wisdom damaged.json
expect 3 'damaged.json: line 1' "$bin/kcast" wisdom damaged.json
[ "$(wc -c <damaged.json)" -eq 51 ] || { echo "a damaged wisdom file was changed"; bad=1; }
printf '{"format": "kernelcast-wisdom", "version": 7, "entries": []}' >later.json
expect 4 'version 7' "$bin/kcast" wisdom later.json
expect 3 'nowhere.json' "$bin/kcast" wisdom nowhere.json
expect 2 '--case needs --problem' "$bin/kcast" wisdom later.json --case N=1
printf '{"format": "kernelcast-wisdom", "version": 1, "entries": []}' >empty.json
expect 3 'nothing for the problem "scan"' "$bin/kcast" wisdom empty.json --problem scan --case N=1

# ---- problems ----
cp -R "$root/problems/cpu/scan" scan
sed -i 's/"license"/"frob": 1, "license"/' scan/problem.json
expect 3 'scan/problem.json' "$bin/kcast" --local measure ./scan scan/baseline.c
grep -q 'frob' err || { echo "the unknown key is not named: $(cat err)"; bad=1; }
cp "$root/problems/cpu/scan/problem.json" scan/
sed -i '1i //@ tune ZERO in (0, 1) if 8 / ZERO > 2' scan/template.c
expect 3 'template.c:1' "$bin/kcast" --local search ./scan --run t.run
grep -qi 'zero' err || { echo "division by zero is not named: $(cat err)"; bad=1; }
[ ! -e t.run ] || { echo "a run file was made for a search that cannot start"; bad=1; }
expect 3 'nowhere' "$bin/kcast" measure nowhere x.c
printf '{"name": "scan"' >scan/problem.json
expect 3 'scan/problem.json' "$bin/kcast" problem check ./scan
head -c 3000 /dev/urandom >scan/problem.json
expect 3 'scan/problem.json' "$bin/kcast" problem check ./scan

# ---- candidates, with one private daemon for all ----
mkdir notify
"$bin/kcastd" --listen tcp://127.0.0.1:0 --state "$work/state" 2>log &
daemon=$!
listens() {
    url=$(grep -o 'tcp://127.0.0.1:[0-9]*' log | tail -1)
    [ -n "$url" ] || kill -0 $daemon 2>/dev/null || { echo "kcastd ended: $(cat log)"; exit 1; }
    [ -n "$url" ]
}
within 60 listens || { echo "kcastd does not listen: $(cat log)"; exit 1; }
scan=$root/problems/cpu/scan
echo 'int other;' >no_entry.c
status=0
"$bin/kcast" --pool "$url" --json measure "$scan" no_entry.c >out 2>err || status=$?
{ [ $status -eq 1 ] && grep -q '"compile-error"' out && grep -q 'does not define' out && grep -q 'scan' out; } ||
    { echo "a candidate without the entry point: exit $status, $(cat out err)"; bad=1; }
expect 3 'missing.c' "$bin/kcast" --pool "$url" measure "$scan" missing.c
: >empty.c
expect 3 'empty.c' "$bin/kcast" --pool "$url" measure "$scan" empty.c

# ---- run files ----
for kind in empty garbage version other; do
    case $kind in
    empty) : >bad.run ;;
    garbage) head -c 20000 /dev/urandom >bad.run ;;
    version) "$bin/kcast" --pool "$url" --no-worker search "$scan" --run good.run --candidates 2 --seed 3 -q >out 2>err || { echo "search: $(cat err)"; bad=1; }
        cp good.run bad.run
        printf '\0\0\0\143' | dd of=bad.run bs=1 seek=60 conv=notrunc status=none ;; # user_version 99
    other) cp "$scan/baseline.c" bad.run ;;
    esac
    sum=$(sha256sum <bad.run)
    code=3
    [ $kind != version ] || code=4
    for command in resume report export; do
        expect $code 'bad.run' "$bin/kcast" --pool "$url" $command bad.run
    done
    [ "$sum" = "$(sha256sum <bad.run)" ] || { echo "bad.run ($kind) was changed"; bad=1; }
    rm -f bad.run bad.run-*
done
expect 3 'good.run' "$bin/kcast" --pool "$url" --no-worker search "$scan" --run good.run --candidates 2
expect 3 'absent.run' "$bin/kcast" report absent.run

# ---- a full disk: the client's, then the daemon's ----
full() { # directory, size, command…
    unshare -Urm sh -c 'mount -t tmpfs -o "size=$2" full "$1" && dir=$1 && shift 2 && "$@"' full "$@"
}
if unshare -Urm true 2>/dev/null; then
    mkdir disk
    expect 7 'disk/s.run' full disk 96k "$bin/kcast" --pool "$url" --no-worker search "$scan" --run disk/s.run --candidates 30 --seed 3 -q
    cat >inside.sh <<'INNER'
head -c 8388608 /dev/zero >disk/filler 2>/dev/null
NOTIFY_SOCKET= "$1/kcastd" --listen tcp://127.0.0.1:0 --state disk/state
INNER
    expect 7 'disk/state' full disk 4k sh inside.sh "$bin"
else
    echo "skipped because user namespaces are not to be had: full disks"
fi

# ---- state of other programs and versions ----
mkdir -p other
head -c 50000 /dev/urandom >other/ledger.db
sum=$(sha256sum <other/ledger.db)
LINES_MAX=4 expect 3 'ledger.db' "$bin/kcastd" --listen tcp://127.0.0.1:0 --state other
[ "$sum" = "$(sha256sum <other/ledger.db)" ] || { echo "a damaged ledger was changed"; bad=1; }
cp other/ledger.db other/worker.db
LINES_MAX=4 expect 3 'worker.db' "$bin/kcast-worker" --listen tcp://127.0.0.1:0 --state other
LINES_MAX=4 expect 3 "$work/no.ini" "$bin/kcastd" --config "$work/no.ini"
printf '[kcastd]\nfrob = 1\n' >c.ini
LINES_MAX=4 expect 3 'c.ini:2' "$bin/kcastd" --config c.ini
LINES_MAX=4 expect 13 'not on loopback' "$bin/kcastd" --listen tcp://0.0.0.0:0 --state s2
LINES_MAX=4 expect 12 'state' "$bin/kcastd" --listen tcp://127.0.0.1:0 --state state

kill $daemon
wait $daemon
status=$?
daemon=
[ $status -eq 0 ] || { echo "kcastd ended with $status on SIGTERM"; bad=1; }
exit $bad
