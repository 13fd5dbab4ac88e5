#!/usr/bin/env bash
# The systemd units: kcastd's has nothing that restricts device nodes. The nodes of GPUs are made by hand by the driver's programs, so a
# list of devices, which is applied again at every `systemctl daemon-reload`, takes them away from a daemon that has worked until then.
set -u
root=${KCAST_ROOT:?}
unit=$root/deploy/systemd/kcastd.service
fail() { echo "FAILED: $*"; exit 1; }
# ProtectClock implies a DeviceAllow; with ProtectHostname no sandbox gets a name of its own.
for key in DeviceAllow DevicePolicy PrivateDevices ProtectClock ProtectHostname; do
    ! grep -E "^[[:space:]]*$key[[:space:]]*=" "$unit" || fail "$unit has $key="
done
# A reload of the daemon is a signal, which touches no job, and its processes are ended by itself.
grep -qx 'ExecReload=/bin/kill -HUP $MAINPID' "$unit" || fail "$unit: ExecReload is no SIGHUP"
grep -qx 'KillMode=mixed' "$unit" || fail "$unit: KillMode is not mixed"
# A migration of a full ledger and two probes must fit into the time for a start.
start=$(sed -n 's/^TimeoutStartSec=\([0-9]*\)$/\1/p' "$unit")
[ "${start:-0}" -ge 300 ] || fail "$unit: TimeoutStartSec is ${start:-not set}"
if command -v systemd-analyze >/dev/null; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    for name in kcastd kcast-worker; do # as it is, but for programs that are there
        sed 's|^ExecStart=.*|ExecStart=/bin/true|' "$root/deploy/systemd/$name.service" >"$work/$name.service"
        out=$(SYSTEMD_LOG_LEVEL=warning systemd-analyze verify --man=no "$work/$name.service" 2>&1 | grep "$name.service") || :
        [ -z "$out" ] || fail "systemd-analyze verify: $out"
    done
fi
