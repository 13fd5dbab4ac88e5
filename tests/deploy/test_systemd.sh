#!/usr/bin/env bash
# kcastd's unit under a real systemd: a private one, the first process of namespaces of its own, without any right on the host. While jobs
# run and wait, `systemctl daemon-reload` and `systemctl reload` change nothing for them, and a stop ends everything.
set -u
bin=${KCAST_BIN:?} build=${KCAST_BUILD:?} root=${KCAST_ROOT:?}
for program in /lib/systemd/systemd systemctl unshare nsenter; do
    command -v $program >/dev/null || { echo "skipped because there is no $program"; exit 77; }
done
work=$(mktemp -d)
manager=
finish() {
    [ -z "$manager" ] || { kill -9 "$manager"; wait "$manager"; } 2>/dev/null # its namespace goes with it
    rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*"; tail -n 20 "$work/out" "$work/log/kcastd.log" 2>/dev/null; exit 1; }

# The unit as it is, but for its user (there is one only in there), its program, and what it waits for. The executor is a fake one: a
# sandbox needs users of its own.
mkdir -p "$work/units/kcastd.service.d" "$work/log"
cp "$root/deploy/systemd/kcastd.service" "$work/units"
cat >"$work/units/test.target" <<'UNIT'
[Unit]
DefaultDependencies=no
Wants=kcastd.service
UNIT
cat >"$work/units/kcastd.service.d/test.conf" <<UNIT
[Unit]
DefaultDependencies=no
[Service]
User=
Group=
Environment=KCAST_FAKE_LOG=/mnt/log/fake.log
ExecStart=
ExecStart=/mnt/bin/kcastd --listen=tcp://127.0.0.1:0 --devices=cpu:1 --state=/var/lib/kernelcast/kcastd --exec=/mnt/support/fake_exec
StandardError=append:/mnt/log/kcastd.log
UNIT
cat >"$work/inside.sh" <<'INSIDE'
set -e
mount -t tmpfs none /mnt
mkdir /mnt/bin /mnt/support /mnt/log /mnt/units
mount --bind "$1" /mnt/bin
mount --bind "$2/tests/support" /mnt/support
mount --bind "$3/log" /mnt/log
mount --bind "$3/units" /mnt/units
mount -t tmpfs none /run
mount -t tmpfs none /var/lib
mount -t cgroup2 none /sys/fs/cgroup
export container=test SYSTEMD_UNIT_PATH=/mnt/units
exec /lib/systemd/systemd --system --unit=test.target --log-target=console --show-status=no
INSIDE
unshare --user --map-root-user --pid --mount --cgroup --uts --ipc --fork --kill-child=KILL --mount-proc \
    bash "$work/inside.sh" "$bin" "$build" "$work" >"$work/out" 2>&1 </dev/null &
manager=$!
log=$work/log/kcastd.log
# wait_for WHAT command…: until the command succeeds
wait_for() {
    local what=$1 end=$((SECONDS + 60))
    shift
    until "$@" >/dev/null 2>&1; do
        kill -0 "$manager" 2>/dev/null || { finished=1; return 1; }
        [ $SECONDS -lt $end ] || return 1
        sleep 0.1
    done
}
finished=
wait_for ready grep -q ' ready url=' "$log" || {
    grep -q 'ystemd' "$work/out" && [ -z "$finished" ] && [ -s "$log" ] && fail "kcastd is not ready"
    echo "skipped because systemd does not run in namespaces here: $(tail -1 "$work/out")"
    exit 77
}
url=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' "$log" | head -1)
inside=$(pgrep -P "$manager" | head -1)
ctl() { nsenter --user --preserve-credentials --pid --mount --cgroup --ipc --target "$inside" systemctl "$@"; }
pid=$(ctl show -p MainPID --value kcastd) || fail "systemctl show: $pid"
[ "$pid" -gt 1 ] || fail "the unit has no main process: $pid"
[ "$(ctl show -p DevicePolicy --value kcastd)" = auto ] && [ -z "$(ctl show -p DeviceAllow --value kcastd)" ] ||
    fail "device nodes are restricted: $(ctl show -p DevicePolicy -p DeviceAllow kcastd)"

# ---- a search that keeps it busy, and systemd's reloads meanwhile ----
"$bin/kcast" --pool="$url" --no-worker -q search "$root/tests/data/client/hill" --policy all --candidates 60 --seed 1 --run "$work/a.run" \
    >"$work/search" 2>&1 &
search=$!
reloads=0
while kill -0 $search 2>/dev/null; do
    ctl daemon-reload || fail "daemon-reload"
    ctl reload kcastd || fail "reload"
    reloads=$((reloads + 1))
done
wait $search || fail "the search ended with $?: $(cat "$work/search")"
[ "$(ctl show -p MainPID --value kcastd)" = "$pid" ] || fail "the main process is another one"
[ "$(ctl is-active kcastd)" = active ] || fail "the unit is $(ctl is-active kcastd)"
[ "$(grep -c ' ready url=' "$log")" -eq 1 ] && ! grep -q 'job-lost\|job-buried\|stopping' "$log" || fail "jobs were lost, or it began anew"
[ "$(grep -c ' reloaded ' "$log")" -ge 1 ] || fail "no reload reached it"
measured=$("$bin/kcast" export "$work/a.run" --events | grep -c '"measured"')
[ "$measured" -ge 10 ] && [ $reloads -ge 1 ] || fail "$measured measurements, $reloads reloads"
echo "$measured measurements, $reloads times daemon-reload and reload"
ctl stop kcastd || fail "stop"
grep -q ' stopping' "$log" || fail "it was not asked to stop"
[ "$(ctl show -p Result --value kcastd)" = success ] || fail "its end is $(ctl show -p Result --value kcastd)"
