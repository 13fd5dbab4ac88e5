#!/usr/bin/env bash
# Installs programs, problems, documents, manual pages, completion, units and sample configuration; what `make install` runs.
#   DESTDIR= PREFIX=/usr/local SYSCONFDIR=/etc install.sh BIN
# Configuration that is there already stays as it is.
set -eu
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
prefix=${PREFIX:-/usr/local} sysconfdir=${SYSCONFDIR:-/etc}
to=${DESTDIR:-}$prefix
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

install -d "$to"/share/kernelcast "$to"/share/doc/kernelcast/examples
install -D -m 755 -t "$to/bin" "$bin"/kcastd "$bin"/kcast "$bin"/kcast-worker
install -D -m 755 -t "$to/libexec/kernelcast" "$bin"/kcast-exec "$bin"/kcast-replay
cp -R problems "$to/share/kernelcast/"
install -m 644 README.md NEWS.md LICENSE docs/*.md "$to/share/doc/kernelcast"
cp -R docs/design docs/decisions "$to/share/doc/kernelcast/"

scripts/man-pages.sh "$bin" "$work/man"
gzip -9n "$work"/man/*.1
install -D -m 644 -t "$to/share/man/man1" "$work"/man/*.1.gz
for shell in bash zsh fish; do scripts/completion.sh $shell "$bin" >"$work/$shell"; done
install -D -m 644 "$work/bash" "$to/share/bash-completion/completions/kcast"
for program in kcastd kcast-worker kcast-exec; do ln -sf kcast "$to/share/bash-completion/completions/$program"; done
zsh=site-functions # where zsh looks below /usr/local; Debian's packages have a folder of their own
[ "$prefix" != /usr ] || zsh=vendor-completions
install -D -m 644 "$work/zsh" "$to/share/zsh/$zsh/_kcast"
install -D -m 644 "$work/fish" "$to/share/fish/vendor_completions.d/kcast.fish"

# The units name the programs and their configuration where they are.
for unit in kcastd kcast-worker; do
    sed -e "s|=/usr/bin/|=$prefix/bin/|" -e "s|=/etc/|=$sysconfdir/|" -e "s|file:///usr/|file://$prefix/|" "deploy/systemd/$unit.service" >"$work/$unit.service"
    install -D -m 644 -t "$to/lib/systemd/system" "$work/$unit.service"
done
install -D -m 644 deploy/systemd/sysusers.conf "$to/lib/sysusers.d/kernelcast.conf"
install -D -m 644 deploy/systemd/tmpfiles.conf "$to/lib/tmpfiles.d/kernelcast.conf"
for file in kcastd.ini worker.ini; do
    [ -e "${DESTDIR:-}$sysconfdir/kernelcast/$file" ] || install -D -m 644 "deploy/etc/$file" "${DESTDIR:-}$sysconfdir/kernelcast/$file"
done
install -m 644 deploy/etc/kcastd.ini deploy/etc/worker.ini deploy/etc/config examples/nng_measure.c "$to/share/doc/kernelcast/examples"
install -m 755 docs/examples/propose.py examples/pynng_measure.py "$to/share/doc/kernelcast/examples"
