#!/usr/bin/env bash
# Another model behind the same address and name: a first search comes to trust a model that knows what candidates are worth; before the
# second one, with the same worker and its state, the endpoint begins to say the opposite. The second search loses nothing by it.
set -eu
. "$(dirname "$0")/endpoint.sh"

start_made_up_daemon
start endpoint "$build/tests/support/fake_endpoint" KNOWING
endpoint=$started
start worker "$bin/kcast-worker" --state "$dir/worker" --listen tcp://127.0.0.1:0 --engine llm --endpoint "$url" --model tester
worker=$started worker_url=$url

# candidates NAME SEED : seven of ten are slow, the others up to 2^5 times as fast as the baseline.
candidates() {
    awk -v name="$1" -v x="$2" 'BEGIN {
        for (i = 0; i < 128; i++) {
            x = (x * 1103515245 + 12345) % 2147483648; u = x / 2147483648
            x = (x * 1103515245 + 12345) % 2147483648; v = x / 2147483648
            printf "{\"name\":\"%s %d\",\"source\":\"//! log2 %.4f\\n// %s %d\\n\"}\n", name, i, u < 0.7 ? -3 + 2 * v : 5 * v * v, name, i
        }
    }' >"$dir/$1.jsonl"
}
# The log2 speedup of the best of all.
best() { sed -n 's/.*log2 \([-0-9.]*\).*/\1/p' "$dir/$1.jsonl" | sort -g | tail -n 1; }
search() { # NAME
    local name=$1
    timeout 250 "$bin/kcast" --pool "$pool" --worker "$worker_url" --json search "$hill" -g "pool:$dir/$name.jsonl" --run "$dir/$name.run" \
        --policy threshold --candidates 128 --batch 8 --seed 3 >"$dir/$name.json" 2>"$dir/$name.err" || die "search $name: $(cat "$dir/$name.err")"
}
# found NAME : what the search has found is as good as the best of all.
found() {
    awk "BEGIN {exit !($(field speedup "$1") >= 0.95 * 2 ^ $(best "$1"))}" || die "the best of $1, 2^$(best "$1"), was not found: $(tail -n 1 "$dir/$1.json")"
}

candidates first 11
candidates second 12
search first
[ "$(field trusted first)" -ge 32 ] || die "a model that knows is not trusted: $(tail -n 1 "$dir/first.json")"
found first
kill -USR1 $endpoint
swapped() { grep -q 'another model' "$dir/endpoint.log"; }
within 60 swapped || die "the endpoint has no other model"
search second
[ "$(field considered second)" -eq 128 ] && [ "$(field forecast second)" -eq 128 ] || die "not all were forecast: $(tail -n 1 "$dir/second.json")"
[ "$(field trusted second)" -eq 0 ] || die "trust was carried over: $(tail -n 1 "$dir/second.json")"
found second
# It is the same forecaster to both searches, and each of them says what it has shown in it.
forecaster() { sed -n 's/.*"trust":\[{"forecaster":"\([^"]*\)".*/\1/p' "$dir/$1.json"; }
[ -n "$(forecaster first)" ] && [ "$(forecaster first)" = "$(forecaster second)" ] || die "forecasters \"$(forecaster first)\" and \"$(forecaster second)\""
grep -q "are trusted: of" "$dir/first.err" || die "nobody was told of the trust: $(cat "$dir/first.err")"
grep -q '"cut":null,.*are not trusted: of its' "$dir/second.json" || die "the summary does not say that it is not trusted: $(tail -n 1 "$dir/second.json")"
end_process worker
kill $daemon $endpoint
wait $daemon $endpoint 2>/dev/null || :
daemon= endpoint=
key_is_nowhere
echo "ok"
