#!/usr/bin/env bash
# Makes a Debian package of a release build, without debhelper: the tree by `make install`, dependencies by dpkg-shlibdeps.
#   scripts/deb.sh OUTPUT-FOLDER
set -eu
cd "$(dirname "$0")/.."
output=$1
for program in dpkg-deb dpkg-shlibdeps dpkg-gencontrol; do
    command -v $program >/dev/null || { echo "deb.sh: there is no $program; install the package dpkg-dev" >&2; exit 9; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
root=$work/root
version=$(sed -n 's/#define KCAST_VERSION "\(.*\)"/\1/p' common/version.h)
date=$(date -R -d "@$(git log -1 --format=%ct 2>/dev/null || date +%s)")
architecture=$(dpkg --print-architecture)

make -s install PREFIX=/usr SYSCONFDIR=/etc DESTDIR="$root" >/dev/null
rm "$root"/usr/share/doc/kernelcast/LICENSE # it is in `copyright`
for program in "$root"/usr/bin/* "$root"/usr/libexec/kernelcast/*; do
    strip --remove-section=.comment --remove-section=.note --strip-unneeded "$program"
done

place() { install -D -m "$1" "$2" "$root/$3"; }
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: kernelcast\n\n'
    printf 'Files: *\nCopyright: %s\nLicense: Expat\n' "$(sed -n 's/^Copyright (c) //p' LICENSE)"
    sed -e '1,/^Copyright/d' LICENSE | sed '1{/^$/d}' | sed -e 's/^$/./' -e 's/^/ /'
} >"$work/copyright"
place 644 "$work/copyright" usr/share/doc/kernelcast/copyright
printf 'kernelcast (%s) unstable; urgency=medium\n\n  * Built from the source tree.\n\n -- The kernelcast authors <kernelcast@kernelcast.invalid>  %s\n' \
    "$version" "$date" | gzip -9n >"$work/changelog.gz"
place 644 "$work/changelog.gz" usr/share/doc/kernelcast/changelog.gz

# What dpkg's tools want to find: debian/ beside the tree.
mkdir -p "$work/debian" "$root/DEBIAN"
cp deploy/debian/control "$work/debian/control"
gzip -dc "$work/changelog.gz" >"$work/debian/changelog"
(
    cd "$work"
    dpkg-shlibdeps -Tdebian/substvars -e root/usr/bin/kcastd -e root/usr/bin/kcast -e root/usr/bin/kcast-worker \
        -e root/usr/libexec/kernelcast/kcast-exec -e root/usr/libexec/kernelcast/kcast-replay
    dpkg-gencontrol -pkernelcast -Tdebian/substvars -fdebian/files -Proot -Oroot/DEBIAN/control
)
printf '/etc/kernelcast/kcastd.ini\n/etc/kernelcast/worker.ini\n' >"$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do install -m 755 "deploy/debian/$script" "$root/DEBIAN/$script"; done
(cd "$root" && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod 644 "$root/DEBIAN/control" "$root/DEBIAN/conffiles" "$root/DEBIAN/md5sums"
mkdir -p "$output"
package=$output/kernelcast_${version}_$architecture.deb
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package: $(du -h "$package" | cut -f1)"
