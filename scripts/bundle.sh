#!/usr/bin/env bash
# Makes a relocatable tarball of a release build: programs, the libraries they need besides the C library
# (found by $ORIGIN), problems, documentation.
#   scripts/bundle.sh BUILD-FOLDER OUTPUT.tar.xz [FURTHER-PROGRAM…]
set -eu
cd "$(dirname "$0")/.."
build=$1 output=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/kernelcast
mkdir -p "$root/bin" "$root/lib" "$root/share/kernelcast" "$root/share/doc/kernelcast"
for program in kcastd kcast-exec kcast-worker kcast-replay kcast "$@"; do
    cp "$build/bin/$program" "$root/bin/"
    strip --strip-debug "$root/bin/$program"
done
# Everything that the loader finds, but what belongs to the C library: that is the host's.
for program in "$root"/bin/*; do
    ldd "$program" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p'
done | sort -u | while read -r library; do
    case $(basename "$library") in
    libc.so.* | libm.so.* | libpthread.so.* | libdl.so.* | librt.so.* | libresolv.so.* | ld-linux*) continue ;;
    esac
    cp -L "$library" "$root/lib/"
done
chmod u+w "$root"/lib/*
cp -R problems "$root/share/kernelcast/"
# What the battery measures is composed here, so that the host needs nothing for it.
case " $* " in *" battery "*) tests/cheats/cuda/compose.sh "$root/share/kernelcast/cheats" ;; esac
cp -R README.md NEWS.md LICENSE docs/*.md docs/design docs/decisions "$root/share/doc/kernelcast/"
mkdir -p "$(dirname "$output")"
tar -C "$work" --owner=0 --group=0 --sort=name -cJf "$output" kernelcast
echo "$output: $(du -h "$output" | cut -f1)"
