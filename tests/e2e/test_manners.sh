#!/usr/bin/env bash
# How kcast behaves on a terminal and in pipes, and where it takes its options from, besides what the tests of single commands hold.
set -u
bin=${KCAST_BIN:?} root=${KCAST_ROOT:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() { echo "$*"; bad=1; }
unset COLUMNS KCAST_POOL KCAST_WORKER XDG_CONFIG_HOME || :
export HOME=$work/home KCAST_PROBLEMS=$root/problems
mkdir -p "$HOME/.config/kernelcast"
cd "$work"

# says 'text' COMMAND… : stdout or stderr has it
says() {
    local text=$1
    shift
    "$@" >out 2>&1 </dev/null
    grep -qF -- "$text" out || { complain "$* does not say \"$text\":"; head -5 out; }
}

# ---- help ----
for command in '' search 'token add' replay top; do
    # shellcheck disable=SC2086
    "$bin/kcast" help $command >a 2>err || complain "kcast help $command: $(cat err)"
    # shellcheck disable=SC2086
    "$bin/kcast" $command --help >b 2>err
    cmp -s a b || complain "\`kcast help $command\` is not what --help says"
done
"$bin/kcast" help search >out
grep -q -- --strategy out && ! grep -q -- --token-file out || complain "a command's help has not its own options alone"
says 'followed by one of "add", "revoke", "list"' "$bin/kcast" help token
says 'did you mean "measure"?' "$bin/kcast" help mesure

for program in kcast kcastd kcast-worker kcast-exec; do # each with all exit codes
    COLUMNS=100000 "$bin/$program" --help | sed '1,/^exit codes:$/d' >out
    sed -n 's/^    X([A-Z_]*, \([0-9]*\), "\(.*\)").*/\1  \2/p' "$root/common/exit.h" | while read -r row; do
        grep -qE "^ +${row%%  *}  " out && grep -qF -- "${row#*  }" out || echo "$program --help does not list exit code $row"
    done | grep . && bad=1
done

# On a terminal of any width no line is longer than it, and no word is cut. script(1) makes the terminal.
plain() { tr -s ' \n' '\n\n' | grep -v '^$'; } # words only
for program in 'kcast help' 'kcast help search' kcastd kcast-worker kcast-exec 'kcast replay'; do
    COLUMNS=100000 sh -c "\"$bin\"/$program --help" | tr -d '\r' | plain >whole
    for width in 40 60 80 132; do
        script -qec "stty cols $width; exec '$bin'/$program --help" /dev/null </dev/null | tr -d '\r' >shown
        awk -v width=$width '{ gsub(/[\200-\277]/, "") } length > width && $0 !~ /^ *[^ ]+$/ { print FILENAME ": " $0; bad = 1 } END { exit bad }' shown ||
            complain "$program --help is wider than $width columns"
        cmp -s whole <(plain <shown) || complain "$program --help loses words at $width columns"
    done
done
# Somewhere a line is as long as it may be: it was wrapped at the width, and not at another.
script -qec "stty cols 132; exec '$bin/kcast' help search" /dev/null </dev/null | tr -d '\r' | awk 'length > 100 { wide = 1 } END { exit !wide }' ||
    complain "help does not use the width of a wide terminal"

# ---- pipes: whoever stops reading ends kcast, silently ----
for command in 'help' 'help search' 'problem list' '--json problem list'; do
    # shellcheck disable=SC2086
    "$bin/kcast" $command 2>err | true
    status=${PIPESTATUS[0]}
    [ ! -s err ] || complain "kcast $command into a closed pipe says: $(cat err)"
    case $status in 0 | 141) ;; *) complain "kcast $command into a closed pipe ends with $status" ;; esac
done

# ---- who closes stdin, stdout and stderr gets no program that ends by itself ----
for program in kcast kcastd kcast-worker kcast-exec kcast-replay; do
    "$bin/$program" --nonsense <&- >&- 2>&-
    status=$?
    [ $status -eq 2 ] || complain "$program without stdin, stdout and stderr ended with $status"
done
"$bin/kcast" problem list <&- >out 2>&- || complain "kcast without stdin and stderr ended with $?"
[ "$(wc -l <out)" -ge 8 ] || complain "kcast without stdin and stderr prints $(wc -l <out) lines"

# ---- where addresses come from: default, file, environment, command line; each wins over those before ----
nobody() { printf 'tcp://127.0.0.1:%d' "$1"; } # ports below 1024 where nobody listens
says 'tcp://127.0.0.1:1' env KCAST_POOL="$(nobody 1)" "$bin/kcast" status
printf '[kcast]\npool = %s\n' "$(nobody 2)" >"$HOME/.config/kernelcast/config"
says 'tcp://127.0.0.1:2' "$bin/kcast" status
says 'tcp://127.0.0.1:1' env KCAST_POOL="$(nobody 1)" "$bin/kcast" status
says 'tcp://127.0.0.1:3' env KCAST_POOL="$(nobody 1)" "$bin/kcast" --pool "$(nobody 3)" status
says 'tcp://127.0.0.1:2' env KCAST_POOL= "$bin/kcast" status
mkdir -p other/kernelcast
printf '[kcast]\nworker = %s\n' "$(nobody 4)" >other/kernelcast/config
says 'tcp://127.0.0.1:4' env XDG_CONFIG_HOME="$work/other" "$bin/kcast" forecast "$root/problems/cpu/scan" "$root/problems/cpu/scan/baseline.c"
says 'tcp://127.0.0.1:5' env KCAST_WORKER="$(nobody 5)" XDG_CONFIG_HOME="$work/other" "$bin/kcast" forecast "$root/problems/cpu/scan" "$root/problems/cpu/scan/baseline.c"
printf '[kcast]\npoool = x\n' >"$HOME/.config/kernelcast/config"
says ".config/kernelcast/config:2: unknown key 'poool'; did you mean 'pool'?" "$bin/kcast" status
"$bin/kcast" --help >out 2>&1 || complain "a wrong configuration file hinders --help"
rm "$HOME/.config/kernelcast/config"

# ---- JSON: a number of the schema in each object, errors as objects ----
"$bin/kcast" --json problem list | python3 -c '
import json, sys
objects = [json.loads(line) for line in sys.stdin]
assert len(objects) >= 8 and all(o["schema"] == 1 for o in objects), objects' || complain "problem list has no schema"
space=$root/docs/h200/spaces/rope.space
for call in "export $space" "--json replay --seeds 2 --policy all --strategy greedy $space"; do
    # shellcheck disable=SC2086
    "$bin/kcast" $call | python3 -c '
import json, sys
lines = sys.stdin.readlines()
assert len(lines) >= 2 and all(line.startswith("{\"schema\":1,") and json.loads(line)["schema"] == 1 for line in lines), lines[0]' || complain "kcast $call has no schema"
done
for call in 'replay nowhere.space|not-found|3' 'replay|usage|2' 'status --pool tcp://127.0.0.1:1|unreachable|6' 'nonsense|usage|2' 'measure nowhere x.c|not-found|3' 'status --bad|usage|2'; do
    IFS='|' read -r arguments name code <<<"$call"
    # shellcheck disable=SC2086
    "$bin/kcast" --json $arguments >out 2>err
    status=$?
    [ $status -eq "$code" ] || complain "kcast --json $arguments ended with $status"
    python3 -c '
import json, sys
o = json.loads(open("out").read())
e = o["error"]
assert o["schema"] == 1 and e["name"] == sys.argv[1] and e["exit_code"] == int(sys.argv[2]) and e["text"] in open("err").read(), o' "$name" "$code" ||
        complain "kcast --json $arguments does not say the error: $(cat out err)"
done

# ---- exit codes: an address that something else holds is no missing peer ----
"$bin/kcastd" --listen tcp://127.0.0.1:0 --http 127.0.0.1:0 --devices cpu:1 --sandbox off --state first --parent-death 2>log &
daemon=$!
. "$root/tests/support/until.sh"
listens() { url=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' log); http=$(sed -n 's/.*http url=http:\/\/\([^ ]*\).*/\1/p' log); [ -n "$url" ] || ! kill -0 $daemon 2>/dev/null; }
within 60 listens
[ -n "$url" ] || { complain "kcastd does not start: $(cat log)"; exit 1; }
held() { # COMMAND… ends with 12 and says so
    local status=0
    "$@" >out 2>&1 </dev/null || status=$?
    [ $status -eq 12 ] && grep -q 'in use' out || complain "$* ended with $status: $(tail -1 out)"
}
held "$bin/kcastd" --listen "$url" --devices cpu:1 --sandbox off --state second
held "$bin/kcast-worker" --listen "$url" --state third
[ -z "$http" ] || held "$bin/kcast-worker" --listen tcp://127.0.0.1:0 --http "$http" --state third
kill $daemon
wait $daemon 2>/dev/null
exit $bad
