#!/bin/sh
# Fetches the Debian packages that kernelcast is built with for another architecture into a folder, and installs nothing: this
# machine's own packages stay as they are, several of which cannot be installed for two architectures.
#   cross-root.sh arm64 FOLDER      for: make CC="aarch64-linux-gnu-gcc --sysroot=FOLDER" B=build/aarch64 all
# Takes the mirror and the release of this machine's apt. Needs dpkg-deb, and 250 MB.
set -eu
[ $# -eq 2 ] || { sed -n 2,5p "$0" >&2; exit 2; }
architecture=$1 root=$2
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(SITE) $(RELEASE)' | sed -n "s/ $suite\$//p" | head -1)
[ -n "$mirror" ] || { echo "cross-root.sh: apt names no mirror of $suite; run apt-get update" >&2; exit 9; }
packages='libc6-dev libuv1-dev libjansson-dev libsqlite3-dev libinih-dev uthash-dev libmbedtls-dev libseccomp-dev libxgboost-dev
    libcurl4-openssl-dev zlib1g-dev libzstd-dev liblz4-dev libncurses-dev libcmocka-dev libmsgpack-dev libgcc-s1 libstdc++6'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/empty"
: >"$work/status"
echo "deb [arch=$architecture signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
get() {
    apt-get -q -y -o APT::Architecture="$architecture" -o APT::Architectures="$architecture" -o Dir::State::status="$work/status" \
        -o Dir::State::lists="$work/lists" -o Dir::Cache="$work/cache" -o Dir::Etc::sourcelist="$work/sources.list" \
        -o Dir::Etc::sourceparts="$work/empty" -o APT::Install-Recommends=0 -o APT::Sandbox::User=root "$@" >"$work/log" 2>&1 ||
        { tail -5 "$work/log" >&2; echo "cross-root.sh: apt-get does not give the packages of $architecture" >&2; exit 9; }
}
get update
# shellcheck disable=SC2086
get --download-only install $packages
mkdir -p "$root"
for package in "$work"/cache/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --keep-directory-symlink --exclude './usr/share/doc' --exclude './usr/share/man'
done
# Folders that are one on a machine with /usr merged, and links that lead out of the folder.
for folder in lib bin sbin lib64; do
    if [ -d "$root/$folder" ] && [ ! -L "$root/$folder" ]; then
        mkdir -p "$root/usr/$folder"
        cp -a "$root/$folder/." "$root/usr/$folder/"
        rm -r "${root:?}/$folder"
        ln -s "usr/$folder" "$root/$folder"
    fi
done
find "$root/usr/lib" -type l -lname '/*' | while read -r link; do
    ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$root$(readlink "$link")")" "$link"
done
