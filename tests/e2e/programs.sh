# Read by end-to-end tests that start programs of their own. They have $bin, $dir, $hill (a problem) and die, and kill what they started.

. "$(dirname "${BASH_SOURCE[0]}")/../support/until.sh"
trap 'die "did not end in time"' TERM # from tests/run.sh; the logs say what it waited for
is_stopped() { [ "$(ps -o stat= -p "$1" | cut -c1)" = T ]; } # PID

through=() # a command that starts programs: nsenter for those that are to be on another host

# Where a service of this test may listen: a loopback address that no other test uses. What is started there once more finds its port free.
own_host=127.$((64 + ($$ >> 16) % 128)).$((($$ >> 8) % 256)).$(($$ % 256))

# start PROGRAM LOG OPTION… : runs it in the background until it says where it listens; sets $started_pid and $started_url.
start() {
    local program=$1 log=$dir/$2.log
    shift 2
    rm -f "$log" && mkfifo "$dir/lines"
    "${through[@]}" "$bin/$program" --parent-death "$@" 2>"$dir/lines" &
    started_pid=$!
    exec {lines}<"$dir/lines"
    rm "$dir/lines"
    started_url=
    while [ -z "$started_url" ]; do
        read -r -t 60 line <&"$lines" || die "$program did not start: $(cat "$log" 2>&1)"
        echo "$line" >>"$log"
        started_url=$(sed -nE 's/.* (ready|listening) url=([a-z]+:\/\/[0-9.]+:[0-9]+).*/\2/p' <<<"$line")
    done
    cat <&"$lines" >>"$log" &
    exec {lines}<&-
}

# Sets $sandbox to off where there can be none.
try_sandbox() {
    sandbox=on
    "$bin/kcast" --local -q measure "$hill" "$hill/baseline.c" >/dev/null 2>"$dir/err" && return
    grep -q -i sandbox "$dir/err" && sandbox=off || die "cannot measure: $(cat "$dir/err")"
}

# expect CODE PATTERN COMMAND… : its exit code, and what a line that it prints matches.
expect() {
    local code=$1 pattern=$2 status=0
    shift 2
    "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
    [ $status -eq "$code" ] || die "$* ended with $status instead of $code"
    [ -z "$pattern" ] || grep -q -- "$pattern" "$dir/out" "$dir/err" || die "$* does not say \"$pattern\""
}
