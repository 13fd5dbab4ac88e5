#!/usr/bin/env bash
# What a compiler does not see: banned functions, guards, logging where nothing may log, left-over marks, very long files.
set -eu
cd "$(dirname "$0")/.."
bad=0
complain() { echo "$1"; bad=1; }
sources=$(ls {common,proto,contract,net,daemon,exec,cuda,worker,client}/*.[ch])

while read -r hit; do complain "$hit: banned function"; done < <(grep -nE '(^|[^a-zA-Z0-9_>.])(atoi|atol|atof|strcpy|strcat|sprintf|vsprintf|strtok|gets|system|popen|alloca)\(' $sources || :)
while read -r hit; do complain "$hit: unfinished work"; done < <(grep -nE '\b(TODO|FIXME|XXX|HACK)\b' $sources Makefile scripts/* tests/*.sh | grep -v 'tests/check-style.sh' || :)
while read -r hit; do complain "$hit: common/, proto/, contract/ and net/ do not log"; done < <(grep -nE '\blog_event\(' {common,proto,contract,net}/*.c | grep -v '^common/log.c' || :)
while read -r hit; do complain "$hit: tab or trailing blank"; done < <(grep -nP '\t|[ ]+$' $sources || :)
for header in $(ls {common,proto,contract,net,daemon,exec,cuda,worker,client}/*.h); do
    guard=$(echo "$header" | tr 'a-z/.-' 'A-Z___')
    grep -q "^#ifndef $guard\$" "$header" || complain "$header: its guard is not $guard"
done
for f in $sources; do
    lines=$(wc -l <"$f")
    [ "$lines" -le 900 ] || complain "$f has $lines lines; split it"
done
for tool in scripts/*.sh tests/*.sh .ci/run; do bash -n "$tool" || bad=1; done
exit $bad
