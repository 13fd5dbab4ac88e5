#!/usr/bin/env bash
# A search whose worker asks a language-model endpoint (tests/support/fake_endpoint): forecasts, tokens and money come through, a hostile
# endpoint loses nothing, one that has gone only means that everything is measured, and the key is nowhere.
set -eu
. "$(dirname "$0")/endpoint.sh"

start_worker() {
    start worker "$bin/kcast-worker" --state "$dir/worker" --listen tcp://127.0.0.1:0 --engine llm --endpoint "$1" --model tester \
        --llm-deadline 20s --price-input 2 --price-output 8
    worker=$started worker_url=$url
}
search() { timeout 250 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" --run "$dir/$1.run" --candidates 24 --batch 8 --seed 3 >"$dir/$1.json" 2>"$dir/$1.err"; }

start_daemon

# ---- a hostile endpoint: every candidate is forecast or measured, none lost ----
start endpoint "$build/tests/support/fake_endpoint"
endpoint=$started
start_worker "$url"
search hostile || die "search: $(cat "$dir/hostile.err")"
[ "$(field considered hostile)" -ge 20 ] || die "considered $(field considered hostile)"
[ "$(field forecast hostile)" -ge 15 ] || die "forecast $(field forecast hostile)"
[ "$(field input_tokens hostile)" -ge 18000 ] || die "input tokens $(field input_tokens hostile)"
grep -qE '"cost":0\.0[0-9]' "$dir/hostile.json" || die "no cost: $(cat "$dir/hostile.json")"
"$bin/kcast" --pool "$pool" --worker "$worker_url" status | grep -q "model tester, rung" || die "status has no endpoint"
"$bin/kcast" --pool "$pool" --worker "$worker_url" --json status | grep -q '"endpoints":\[{"url":' || die "status --json has no endpoint"
"$bin/kcast" eval "$dir/hostile.run" >"$dir/eval.out" || die "eval: $(cat "$dir/eval.out")"
grep -q "llm" "$dir/eval.out" || die "eval knows no engine llm: $(cat "$dir/eval.out")"
"$bin/kcast" report "$dir/hostile.run" -o "$dir/hostile.html" >/dev/null 2>&1 || die "report"
grep -q "tokens" "$dir/hostile.html" || die "the report says nothing of tokens"

# ---- the model writes the candidates; killed at any point, the search asks for nothing twice ----
start writer "$build/tests/support/fake_endpoint" GOOD
writer=$started writer_url=$url
# propose NAME: a search whose candidates are written, by a worker that knows nothing; prints how many requests it took
propose() {
    local name=$1
    rm -rf "$dir/$name"
    start "$name" "$bin/kcast-worker" --state "$dir/$name" --listen tcp://127.0.0.1:0 --engine llm --endpoint "$writer_url" --model tester
    own=$started worker_url=$url
    shift
    "$@" "$name"
    "$bin/kcast" --pool "$pool" --worker "$worker_url" --json status | sed -n 's/.*"requests":\([0-9]*\),"retries".*/\1/p' >"$dir/$name.requests"
    end_process own
}
written() { timeout 250 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" -g llm --run "$dir/$1.run" --candidates 16 --batch 4 --seed 3 >"$dir/$1.json" 2>"$dir/$1.err"; }
whole() { written "$1" || die "search -g llm: $(cat "$dir/$1.err")"; }
killed() {
    local status=0
    for at in 6 16 30; do
        if [ $at -eq 6 ]; then KCAST_DIE_AT=event:$at written "$1" || status=$?
        else KCAST_DIE_AT=event:$at "$bin/kcast" --pool "$pool" --worker "$worker_url" -q resume "$dir/$1.run" >/dev/null 2>&1 || status=$?; fi
        [ $status -eq 137 ] || die "the search was to be killed at event $at and ended with $status"
    done
    "$bin/kcast" --pool "$pool" --worker "$worker_url" --json resume "$dir/$1.run" >"$dir/$1.json" 2>"$dir/$1.err" || die "resume: $(cat "$dir/$1.err")"
}
restart_writer() { # it counts what it writes
    kill $writer; wait $writer 2>/dev/null || :
    start writer "$build/tests/support/fake_endpoint" GOOD
    writer=$started writer_url=$url
}
propose whole whole
[ "$(field considered whole)" -eq 16 ] || die "considered: $(cat "$dir/whole.json")"
# Of the models, behind the counts of the search, which have proposals too.
of_models() { tail -n 1 "$dir/whole.json" | grep -o "\"llm\":{[^}]*" | grep -o "\"$1\":[0-9]*" | cut -d : -f 2; }
[ "$(of_models proposals)" -gt "$(of_models known)" ] && [ "$(of_models known)" -ge 8 ] || die "known: $(cat "$dir/whole.json")"
[ "$(field compile_failed whole)" -ge 4 ] || die "compile_failed: $(cat "$dir/whole.json")"
"$bin/kcast" export "$dir/whole.run" --events | grep -q '"name":"3 partial sums"' || die "no candidate is named by its comment"
"$bin/kcast" report "$dir/whole.run" -o "$dir/whole.html" >/dev/null 2>&1 || die "report of a written run"
if [ "${KCAST_VARIANT:-debug}" != release ]; then
    restart_writer
    propose killed killed
    [ "$(cat "$dir/killed.requests")" -eq "$(cat "$dir/whole.requests")" ] ||
        die "killed and resumed it took $(cat "$dir/killed.requests") requests instead of $(cat "$dir/whole.requests")"
    names() { "$bin/kcast" export "$dir/$1.run" --events | sed -n 's/.*"kind":"proposed".*"source":"\([0-9a-f]*\)".*/\1/p'; }
    [ "$(names whole)" = "$(names killed)" ] || die "killed and resumed it considered other candidates"
fi
# ---- the model beside the problem's template: what improves more for its cost makes more of the candidates ----
shared() {
    timeout 250 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" -g tunable,llm --policy all --run "$dir/$1.run" --candidates 40 \
        --batch 4 --wide 4 --seed 3 >"$dir/$1.json" 2>"$dir/$1.err" || die "search -g tunable,llm: $(cat "$dir/$1.err")"
}
made() { sed -n "s/.*\"generator\":\"$1\",\"considered\":\([0-9]*\).*/\1/p" "$dir/shared.json"; }
restart_writer
propose shared shared
[ "$(made llm)" -ge 4 ] && [ "$(made tunable)" -gt "$(made llm)" ] || die "tunable made $(made tunable), llm $(made llm): $(cat "$dir/shared.json")"
"$bin/kcast" report "$dir/shared.run" -o "$dir/shared.html" >/dev/null 2>&1 && grep -q "<dt>Generator llm</dt>" "$dir/shared.html" || die "the report does not say what each generator brought"
echo "tunable made $(made tunable), llm $(made llm)"
kill $writer; wait $writer 2>/dev/null || :
writer=
status=0
"$bin/kcast" --local --sandbox=$sandbox search "$hill" -g llm --run "$dir/static.run" >/dev/null 2>"$dir/err" || status=$?
[ $status -ne 0 ] && grep -q "engine static writes no candidates" "$dir/err" || die "-g llm with engine static: status $status, $(cat "$dir/err")"

# ---- one that has gone: everything is measured ----
kill $endpoint; wait $endpoint 2>/dev/null || :
end_process worker
rm -rf "$dir/worker"
start worker "$bin/kcast-worker" --state "$dir/worker" --listen tcp://127.0.0.1:0 --engine llm --endpoint "$(head -1 "$dir/endpoint.out")" --model tester --llm-deadline 500ms
worker=$started worker_url=$url
search gone || die "search: $(cat "$dir/gone.err")"
[ "$(field forecast gone)" -eq 0 ] || die "forecasts from nobody"
[ "$(field trusted gone)" -eq 0 ] || die "trusted what nobody said"
[ "$(field measured gone)" -ge 15 ] || die "measured $(field measured gone)"

# ---- engine both with nobody to ask: the static model goes on alone ----
end_process worker
start worker "$bin/kcast-worker" --state "$dir/both" --listen tcp://127.0.0.1:0 --engine both --endpoint "$(head -1 "$dir/endpoint.out")" --model tester --llm-deadline 500ms
worker=$started worker_url=$url
search both || die "search: $(cat "$dir/both.err")"
[ "$(field considered both)" -ge 20 ] || die "considered $(field considered both)"
[ "$(field forecast both)" -ge 1 ] || die "no forecast without an endpoint"
"$bin/kcast" --pool "$pool" --worker "$worker_url" --json status | grep -q '"engine":"both"' || die "status does not say both"

# ---- wrong settings are one sentence ----
wrong() { # sentence option…
    local words=$1 status=0
    shift
    "$bin/kcast-worker" --state "$dir/other" --listen tcp://127.0.0.1:0 --engine llm "$@" >"$dir/wrong.out" 2>&1 || status=$?
    [ $status -ne 0 ] && grep -q "$words" "$dir/wrong.out" || die "$*: status $status, $(cat "$dir/wrong.out")"
}
wrong "needs --endpoint and --model"
wrong "engine both needs --endpoint" --engine both
wrong "needs --model" --endpoint http://127.0.0.1:1/v1
wrong "not a http" --endpoint ftp://127.0.0.1/v1 --model m
printf 'secret-4711-never-to-be-seen\n' >"$dir/key"
chmod 644 "$dir/key"
wrong "can be read or written by others" --endpoint http://127.0.0.1:1/v1 --model m --key-file "$dir/key"
rm "$dir/key"

kill $worker $daemon; wait $worker $daemon 2>/dev/null || :
worker= daemon=
key_is_nowhere
echo "ok"
