#!/usr/bin/env bash
# Endpoints of language models and whole programs: sections of the configuration, --try, kcast forecast, an address where nothing
# listens, and a limit on tokens over a worker that is killed.
set -eu
. "$(dirname "$0")/endpoint.sh"

answers() { grep -c '^answered' "$dir/endpoint.log" || :; }

start_daemon
start endpoint "$build/tests/support/fake_endpoint" GOOD
endpoint=$started endpoint_url=$url

# ---- two endpoints of one worker, each with its own key; --try says how each is asked ----
printf '%s\n' "$KCAST_LLM_KEY" >"$dir/key"
chmod 600 "$dir/key"
cat >"$dir/worker.ini" <<INI
[worker]
engine = llm
[endpoint near]
url = $endpoint_url
model = tester
key-file = $dir/key
price-input = 2
price-output = 8
[endpoint keyless]
url = $endpoint_url
model = tester
INI
status=0
"$bin/kcast-worker" --config "$dir/worker.ini" --state "$dir/try" --try >"$dir/try.txt" 2>"$dir/try.err" || status=$?
[ $status -ne 0 ] || die "--try says nothing of an endpoint without an answer"
grep -q "^endpoint near: tester, chat, $endpoint_url" "$dir/try.txt" || die "--try: $(cat "$dir/try.txt")"
grep -q "asked     json_schema; 1 requests" "$dir/try.txt" || die "--try: $(cat "$dir/try.txt")"
grep -q "tokens    1200 in, of which it had kept 0; 40 out" "$dir/try.txt" || die "--try: $(cat "$dir/try.txt")"
grep -q "price     0.00272" "$dir/try.txt" || die "--try: $(cat "$dir/try.txt")"
# $KCAST_LLM_KEY is that of --endpoint, and a section without a key file gets none.
grep -A 5 "^endpoint keyless" "$dir/try.txt" | grep -q "its key is missing or not accepted (status 401)" || die "keyless: $(cat "$dir/try.txt")"
grep -q "1 of 2 endpoints gave no forecast" "$dir/try.err" || die "--try: $(cat "$dir/try.err")"

# ---- kcast forecast: any endpoint, then each of them ----
start worker "$bin/kcast-worker" --config "$dir/worker.ini" --state "$dir/try" --listen tcp://127.0.0.1:0
worker=$started worker_url=$url
"$bin/kcast" --pool "$pool" --worker "$worker_url" forecast "$hill" "$hill/baseline.c" >"$dir/forecast.txt" 2>"$dir/forecast.err" ||
    die "forecast: $(cat "$dir/forecast.err")"
grep -q "asked near as json_schema: 1 requests, .* 1200 tokens in" "$dir/forecast.txt" || die "forecast: $(cat "$dir/forecast.txt")"
"$bin/kcast" --json --pool "$pool" --worker "$worker_url" forecast --endpoints "$hill" "$hill/baseline.c" >"$dir/forecast.txt" 2>"$dir/forecast.err" ||
    die "forecast --endpoints: $(cat "$dir/forecast.err")"
[ "$(wc -l <"$dir/forecast.txt")" -eq 2 ] || die "forecast --endpoints: $(cat "$dir/forecast.txt")"
head -1 "$dir/forecast.txt" | grep -q '"endpoint":"near".*"requests":1,"input_tokens":1200' || die "forecast --endpoints: $(cat "$dir/forecast.txt")"
tail -1 "$dir/forecast.txt" | grep -q 'keyless' || die "forecast --endpoints: $(cat "$dir/forecast.txt")"
"$bin/kcast" --pool "$pool" --worker "$worker_url" status >"$dir/status.txt"
grep -q "near, $endpoint_url model tester, rung json_schema, 2 requests" "$dir/status.txt" || die "status: $(cat "$dir/status.txt")"
grep "keyless" "$dir/status.txt" | grep -q "left alone for now: its key is missing or not accepted (status 401)" || die "status: $(cat "$dir/status.txt")"
"$bin/kcast" --json --pool "$pool" --worker "$worker_url" status | grep -q '"name":"near","api":"chat","trouble":null' || die "status --json"
end_process worker
"$bin/kcast" --local --sandbox=$sandbox forecast --endpoints "$hill" "$hill/baseline.c" >/dev/null 2>"$dir/forecast.err" && die "static has no endpoints"
grep -q "engine static asks no endpoints" "$dir/forecast.err" || die "static: $(cat "$dir/forecast.err")"

# ---- nothing listens: the search does not wait for forecasts, whatever its measurements take ----
start worker "$bin/kcast-worker" --state "$dir/nobody" --listen tcp://127.0.0.1:0 --engine llm --endpoint http://127.0.0.1:1/v1 --model none
worker=$started worker_url=$url
timeout 280 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" --run "$dir/nobody.run" --candidates 24 --batch 8 --seed 5 \
    >"$dir/nobody.json" 2>"$dir/nobody.err" || die "search: $(cat "$dir/nobody.err")"
[ "$(field considered nobody)" -eq 24 ] && [ "$(field trusted nobody)" -eq 0 ] && [ "$(field not_reached nobody)" -eq 0 ] ||
    die "not all were measured: $(tail -n 1 "$dir/nobody.json")"
waited=$(field forecasting nobody) # seconds of the wall time; one deadline of a question is 120
echo "nothing listening: $waited s of waiting for forecasts"
[ "${waited%%.*}" -lt 60 ] || die "$waited s of waiting for forecasts that nobody can give: $(tail -n 1 "$dir/nobody.json")"
end_process worker

# ---- a limit holds over workers that are killed: one answer of 1,240 tokens may go beyond it ----
limit=20000
limited() {
    start worker "$bin/kcast-worker" --state "$dir/limited" --listen tcp://127.0.0.1:0 --engine llm --endpoint "$endpoint_url" --model tester \
        --max-tokens 100 --worker-tokens $limit
    worker=$started worker_url=$url
}
before=$(answers)
some() { [ "$(answers)" -ge $((before + $1)) ]; }
for round in 1 2 3; do
    limited
    timeout 280 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" --run "$dir/limited$round.run" --candidates 24 --batch 8 --seed $round \
        >"$dir/limited$round.json" 2>"$dir/limited$round.err" &
    searching=$!
    if [ $round -lt 3 ]; then
        within 60 some $((3 * round)) || die "no answers: $(cat "$dir/worker.log")"
        kill -9 $worker
        wait $worker 2>/dev/null || :
    fi
    wait $searching || die "search $round: $(cat "$dir/limited$round.err")"
    [ $round -lt 3 ] || end_process worker
done
spent=$((($(answers) - before) * 1240))
echo "answered $(($(answers) - before)) times: $spent of $limit tokens"
[ $spent -le $((limit + 1240)) ] || die "$spent tokens instead of $limit"
limited
"$bin/kcast-worker" --state "$dir/limited" --try >/dev/null 2>"$dir/busy.err" && die "--try with the state of a worker that runs"
grep -q "another kcast-worker uses" "$dir/busy.err" || die "busy: $(cat "$dir/busy.err")"
kill $worker $daemon $endpoint; wait $worker $daemon $endpoint 2>/dev/null || :
worker= daemon= endpoint=
rm "$dir/key"
key_is_nowhere
echo "ok"
