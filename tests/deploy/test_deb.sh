#!/usr/bin/env bash
# The Debian package: made of the release build, without a complaint of lintian, and what is in it runs from where it is put.
set -u
. "$(dirname "$0")/../support/until.sh"
root=${KCAST_ROOT:?}
cd "$root"
command -v dpkg-shlibdeps >/dev/null || { echo 'skipped because there is no dpkg-dev'; exit 77; }
[ -x build/release/bin/kcastd ] && [ -x build/release/bin/kcast ] && make -q VARIANT=release all 2>/dev/null ||
    { echo 'skipped because there is no release build of this tree; `make deb` makes one'; exit 77; }
work=$(mktemp -d) daemon=
finish() { [ -z "$daemon" ] || { kill "$daemon" 2>/dev/null; wait "$daemon" 2>/dev/null; }; rm -rf "$work"; }
trap finish EXIT
scripts/deb.sh "$work" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
package=$(ls "$work"/*.deb)
if command -v lintian >/dev/null; then
    lintian --allow-root "$package" >"$work/lintian" 2>&1 || { cat "$work/lintian"; exit 1; }
    ! grep -E '^[EW]: ' "$work/lintian" || exit 1
fi
dpkg-deb -x "$package" "$work/root"
dpkg-deb -e "$package" "$work/control"
for script in postinst prerm postrm; do sh -n "$work/control/$script" || exit 1; done
(cd "$work/root" && md5sum --quiet -c "$work/control/md5sums") || exit 1
# The units and options say what the programs know.
"$work/root/usr/bin/kcastd" --config="$work/root/etc/kernelcast/kcastd.ini" --listen=tcp://127.0.0.1:0 --http=127.0.0.1:0 \
    --devices=cpu:1 --state="$work/state" 2>"$work/kcastd.log" &
daemon=$!
ready_or_ended() {
    pool=$(sed -n 's/.* ready url=\([^ ]*\) .*/\1/p' "$work/kcastd.log")
    [ -n "$pool" ] || ! kill -0 $daemon 2>/dev/null
}
within 60 ready_or_ended
"$work/root/usr/bin/kcast" --no-worker --pool "${pool:?$(cat "$work/kcastd.log")}" status | grep -q 'cpu0 *ready' || exit 1
"$work/root/usr/bin/kcast" --no-worker --pool "$pool" problem list | grep -q sgemm || exit 1
"$work/root/usr/bin/kcast-worker" --config="$work/root/etc/kernelcast/worker.ini" --version >/dev/null || exit 1
if command -v systemd-sysusers >/dev/null; then
    mkdir -p "$work/fresh/etc"
    systemd-sysusers --root="$work/fresh" "$work/root/usr/lib/sysusers.d/kernelcast.conf" >/dev/null && grep -q '^kernelcast:' "$work/fresh/etc/passwd" || exit 1
fi
