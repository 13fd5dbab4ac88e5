# Read by shell tests that wait for what tells nobody; nothing else in them may sleep.

# within SECONDS COMMAND… : again and again until the command succeeds; fails when it does not in time.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}
