#!/usr/bin/env bash
# From nothing to a page: a new problem is admitted, a spoilt one is not, a search of it gives a report and an export that agree.
set -u
bin=${KCAST_BIN:?}
kcast=$bin/kcast
work=$(mktemp -d)
bad=0
trap 'rm -rf "$work"' EXIT
cd "$work"

complain() {
    echo "$*"
    bad=1
}
# run CODE command… : exit code as expected; stdout in out, stderr in err
run() {
    local code=$1 status=0
    shift
    "$@" >out 2>err </dev/null || status=$?
    [ $status -eq "$code" ] || { complain "$*: exit code $status where $code was expected"; tail -n 20 out err; }
}
says() { # FILE 'text'
    grep -qF -- "$2" "$1" || { complain "$1 does not say \"$2\""; tail -n 20 "$1"; }
}
silent_about() {
    ! grep -qF -- "$2" "$1" || complain "$1 says \"$2\""
}

# ---- problems ----
run 0 "$kcast" problem new tiny
run 3 "$kcast" problem new tiny
says err 'exists already'
run 0 "$kcast" --local problem check ./tiny
says out 'admitted'
silent_about out 'BAD'
cp -R tiny loose
sed -i 's/"name": "tiny"/"name": "loose"/; s/"tolerance": 4/"tolerance": 1e9/' loose/problem.json
run 1 "$kcast" --local problem check ./loose
says out 'GOT THROUGH'
says out 'The mutant "zeros", which writes zeros, was taken for correct'
says out 'not admitted'

# ---- a search, its page, its numbers, its candidates ----
run 0 "$kcast" --local search ./tiny --run a.run --seed 7 --candidates 12
run 0 "$kcast" report a.run
says err 'a.html'
for text in '<!doctype html>' 'Best speedup against device time' 'Forecast against outcome' 'How this number was obtained' \
    'Scaled sum of two vectors' "default-src 'none'" '</html>'; do
    says a.html "$text"
done
for text in '<script' 'http:' 'https:' 'url('; do
    silent_about a.html "$text"
done
run 0 "$kcast" --json report a.run
says out '"candidates":12'
says out '"steps":[{"device_seconds":0.0,"wall_seconds":0.0,"candidate":0,' # the baseline; then those that were faster, with their times
grep -qE '"device_seconds":[0-9.e-]+,"wall_seconds":(null|-)' out && complain 'a step has no wall time'
measured=$(sed 's/.*"measured":\([0-9]*\),"replicated".*/\1/' out)
run 0 "$kcast" export a.run --format jsonl
[ "$(wc -l <out)" -eq 12 ] || complain "$(wc -l <out) lines of 12 candidates"
[ "$(grep -c '"result":{' out)" -eq "$measured" ] || complain "the export has other measurements than the report ($measured)"
[ "$(grep -c '"source":"#define' out)" -eq 12 ] || complain 'a candidate has no source'
run 0 "$kcast" export a.run --events
says out '"kind":"started"'
says out '"kind":"finished"'

# ---- what would be lost ----
cp a.run own.run
ln -s own.run link.run
run 2 "$kcast" report own.run -o own.run
says err 'own.run is the file that is read; write to another one'
run 2 "$kcast" export own.run --format space -o link.run
run 2 "$kcast" eval own.run -o own.run
cmp -s a.run own.run || complain 'the run has changed'
cp a.run own.space # where a space goes that nobody has named
run 2 "$kcast" export own.space --format space
cmp -s a.run own.space || complain 'the run has changed'
echo '{}' >cache.json
run 2 "$kcast" import kernel-tuner cache.json -o cache.json
mkfifo pipe
cat pipe >page &
run 0 "$kcast" report a.run -o pipe
wait $!
says page '</html>'
[ -p pipe ] || complain 'the fifo is none any more'

# ---- what is no run ----
echo nothing >b.run
run 3 "$kcast" report b.run
[ ! -e b.html ] || complain 'a page of nothing'
run 3 "$kcast" export missing.run
says err 'missing.run'
exit $bad
