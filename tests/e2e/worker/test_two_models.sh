#!/usr/bin/env bash
# Two endpoints of one worker, of the same model by name: one knows what candidates are worth, the other says the opposite. Each is a
# forecaster of its own, so that the search comes to trust the first one and never the second, and finds the best.
set -eu
. "$(dirname "$0")/endpoint.sh"

start_made_up_daemon
start good "$build/tests/support/fake_endpoint" KNOWING
endpoint=$started good_url=$url
start bad "$build/tests/support/fake_endpoint" KNOWING
own=$started bad_url=$url
kill -USR1 $own
turned() { grep -q 'another model' "$dir/bad.log"; }
within 60 turned || die "the second endpoint does not say the opposite"
printf '%s\n' "$KCAST_LLM_KEY" >"$dir/key"
chmod 600 "$dir/key"
for name in bad good; do
    url=${name}_url
    printf '[endpoint %s]\nurl = %s\nmodel = tester\nkey-file = %s\n' $name "${!url}" "$dir/key"
done >"$dir/worker.ini"
start worker "$bin/kcast-worker" --config "$dir/worker.ini" --state "$dir/worker" --listen tcp://127.0.0.1:0 --engine llm
worker=$started worker_url=$url

# A program writes eight candidates for each batch: six that are slow, and two that are faster than all before, up to 2^5 times as fast as
# the baseline. So there are improvers to the end, whichever endpoint answers for them.
cat >"$dir/write" <<'SH'
#!/bin/sh
IFS= read -r request
draw=$(printf '%s' "$request" | grep -o '"draw":[0-9]*' | head -n 1 | cut -d : -f 2)
awk -v draw="$draw" 'BEGIN {
    batch = int(draw / (1000 * 16))
    for (k = 0; k < 8; k++) {
        y = k % 4 == 0 ? 0.075 * batch + 0.01 * k : -2 - 0.1 * k
        words = "" # in another order for each, so that none is a small variation of another one
        x = batch * 8 + k + 1
        for (w = 0; w < 40; w++) {
            x = (x * 1103515245 + 12345) % 2147483648
            words = words substr("+-*/;,<>(){}", 1 + int(x / 65536) % 12, 1) " "
        }
        printf "{\"name\":\"%d.%d\",\"source\":\"//! log2 %.4f\\n%s\\n\"}\n", batch, k, y, words
    }
}'
SH
chmod +x "$dir/write"
timeout 280 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" -g "exec:$dir/write" --exec-jobs 1 --run "$dir/both.run" \
    --policy threshold --candidates 512 --batch 8 --wide 8 --seed 3 >"$dir/both.json" 2>"$dir/both.err" || die "search: $(cat "$dir/both.err")"
"$bin/kcast" --json --pool "$pool" --worker "$worker_url" status >"$dir/status.json"
forecaster() { grep -o "\"name\":\"$1\",\"api\":\"chat\",\"trouble\":null,\"forecaster\":\"[^\"]*\"" "$dir/status.json" | sed 's/.*"forecaster":"//; s/"$//'; }
good=$(forecaster good) bad=$(forecaster bad)
[ -n "$good" ] && [ -n "$bad" ] && [ "$good" != "$bad" ] || die "forecasters \"$good\" and \"$bad\": $(cat "$dir/status.json")"
# What each has shown, by the run's events.
"$bin/kcast" export --events "$dir/both.run" >"$dir/events.jsonl"
forecasts() { grep '"raw"' "$dir/events.jsonl" | grep -c "\"model\":\"llm $1\"" || :; }
events_of() { grep '"kind":"trusted"' "$dir/events.jsonl" | grep "\"forecaster\":\"llm $1\"" || :; }
echo "$(forecasts "$good") forecasts of the good one, $(forecasts "$bad") of the bad one"
for name in good bad; do
    [ "$(forecasts "${!name}")" -ge 64 ] || die "$name has hardly been asked: $(tail -n 1 "$dir/both.json")"
done
events_of "$good" | grep -q '"cut":[0-9]' || die "the good one is not trusted: $(events_of "$good" | tail -n 2)"
[ -n "$(events_of "$bad")" ] || die "nothing is said of the bad one"
events_of "$bad" | grep '"cut":[0-9]' && die "the bad one is trusted"
[ "$(field trusted both)" -ge 8 ] || die "nothing came of the trust: $(tail -n 1 "$dir/both.json")"
awk "BEGIN {exit !($(field speedup both) >= 0.95 * 2 ^ 4.84)}" || die "the best was not found: $(tail -n 1 "$dir/both.json")"
end_process worker
kill $daemon $endpoint $own
wait $daemon $endpoint $own 2>/dev/null || :
daemon= endpoint= own=
rm "$dir/key"
key_is_nowhere
echo "ok"
