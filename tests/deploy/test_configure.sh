#!/usr/bin/env bash
# scripts/configure.sh names what is missing or too old, in a sentence each, and looks again when something has changed.
# scripts/install-deps.sh finds what a package is called on this machine.
set -u
root=${KCAST_ROOT:?}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() { echo "$1"; bad=1; }
configure=$root/scripts/configure.sh

# EXIT-CODE SENTENCE COMPILER…: what it says of this compiler; an empty sentence: nothing.
expect() {
    local want=$1 sentence=$2 status=0
    shift 2
    "$configure" "$@" >"$work/out" 2>"$work/err" || status=$?
    [ $status -eq "$want" ] || complain "configure.sh $*: exit $status instead of $want"
    if [ -n "$sentence" ]; then
        grep -qF -- "$sentence" "$work/err" || complain "configure.sh $* says: $(cat "$work/err")"
    else
        [ ! -s "$work/err" ] || complain "configure.sh $* says: $(cat "$work/err")"
    fi
}
# HEADER LINE…: a header that is found first.
header() {
    local file=$work/include/$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >"$file"
}

# ---- the compiler ----
expect 0 '' gcc
grep -qxE -- '-lmsgpackc|-lmsgpack-c' "$work/out" || complain "it prints $(cat "$work/out")"
expect 0 '' --tests gcc
expect 9 'gcc is gcc 11 and must be 12 or later' gcc -U__GNUC__ -D__GNUC__=11
expect 9 'gcc is clang 13 and must be 14 or later' gcc -D__clang__ -D__clang_major__=13
expect 9 'gcc is neither gcc 12 or later nor clang 14 or later' gcc -U__GNUC__
expect 9 'there is no no-such-cc' no-such-cc
expect 9 'there is no no-such-cc' ccache no-such-cc
expect 2 'name the compiler' --tests
[ -z "$(command -v clang)" ] || expect 0 '' clang

# ---- libraries ----
expect 9 'libuv is not installed; its package is libuv1-dev' gcc -nostdinc -I"$work"
[ "$(grep -c '^configure: .* is not installed' "$work/err")" -eq 15 ] || complain "not each library is named: $(cat "$work/err")"
! grep -q cmocka "$work/err" || complain 'programs need no cmocka'
expect 9 'cmocka is not installed; its package is libcmocka-dev' --tests gcc -nostdinc -I"$work"
header mbedtls/ssl.h ''
for version in 2.27.0 3.5.2 3.6.0 4.0.0; do
    IFS=. read -r major minor patch <<<"$version"
    header mbedtls/version.h "#define MBEDTLS_VERSION_MAJOR $major" "#define MBEDTLS_VERSION_MINOR $minor" "#define MBEDTLS_VERSION_PATCH $patch" \
        "$(printf '#define MBEDTLS_VERSION_NUMBER 0x%02x%02x%02x00' $major $minor $patch)"
    expect 9 "mbedTLS is $version and must be 2.28, or 3.6.1 or a later 3" gcc -I"$work/include"
done
for version in 2.28.0 2.28.9 3.6.1 3.7.0; do
    IFS=. read -r major minor patch <<<"$version"
    header mbedtls/version.h "$(printf '#define MBEDTLS_VERSION_NUMBER 0x%02x%02x%02x00' $major $minor $patch)"
    expect 0 '' gcc -I"$work/include"
done
rm -r "$work/include"
header sqlite3.h '#define SQLITE_VERSION_NUMBER 3034001' '#define SQLITE_VERSION "3.34.1"'
header uv.h '#define UV_VERSION_HEX 0x012a00' '#define UV_VERSION_MAJOR 1' '#define UV_VERSION_MINOR 42' '#define UV_VERSION_PATCH 0'
expect 9 'SQLite is 3.34.1 and must be 3.37 or later' gcc -I"$work/include"
grep -q 'libuv is 1.42.0 and must be 1.44 or later' "$work/err" || complain "only one is named: $(cat "$work/err")"
rm -r "$work/include"
mkdir "$work/lib"
echo 'no library' >"$work/lib/libuv.so"
expect 9 'libuv has headers and no library that gcc can link; its package is libuv1-dev' gcc -L"$work/lib"
[ "$(wc -l <"$work/err")" -eq 1 ] || complain "others are named too: $(cat "$work/err")"

# ---- what is kept ----
key() { "$configure" --key --tests "$@"; }
[ "$(key gcc)" = "$(key gcc)" ] || complain 'the key is another one each time'
[ "$(key gcc)" != "$(key gcc -m32)" ] || complain 'the key does not see options'
printf '#!/bin/sh\nexec gcc "$@"\n' >"$work/cc" && chmod +x "$work/cc"
before=$(key "$work/cc")
printf '#!/bin/sh\n\nexec gcc "$@"\n' >"$work/cc"
[ "$before" != "$(key "$work/cc")" ] || complain 'the key does not see another compiler of the same name'

# ---- what packages are called ----
mkdir "$work/bin"
printf '#!/bin/sh\nfor name; do :; done\ncase " $INSTALLED " in *" $name "*) printf installed ;; *) exit 1 ;; esac\n' >"$work/bin/dpkg-query"
printf '#!/bin/sh\ncase " $KNOWN " in *" $2 "*) echo "$2:"; echo "  Candidate: 1:19.0-1" ;; esac\n' >"$work/bin/apt-cache"
printf '#!/bin/sh\n[ "$1" = update ] || echo "$*" >%s/asked\n' "$work" >"$work/bin/apt-get"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/clang"
printf '#!/bin/sh\nshift 0; exec "$@"\n' >"$work/bin/sudo"
chmod +x "$work"/bin/*
# INSTALLED KNOWN ARGUMENT: what it asks apt-get for.
asked() {
    rm -f "$work/asked"
    INSTALLED=$1 KNOWN=$2 PATH=$work/bin:$PATH "$root/scripts/install-deps.sh" $3 2>/dev/null || complain "install-deps.sh $3 fails"
    cat "$work/asked" 2>/dev/null
}
grep -q ' libmsgpack-dev ' <<<"$(asked '' 'libmsgpack-dev libmsgpack-c-dev' --run)" || complain 'of two names not the first'
grep -q ' libmsgpack-c-dev ' <<<"$(asked '' 'libmsgpack-c-dev' --run)" || complain 'not the name that there is'
grep -q ' libmsgpack-dev ' <<<"$(asked '' '' --run)" || complain 'nothing is asked for where no name is known'
! grep -q msgpack <<<"$(asked libmsgpack-c-dev 'libmsgpack-dev libmsgpack-c-dev' --run)" || complain 'what is there by its other name is installed'
grep -q ' libclang-rt-19-dev' <<<"$(asked '' clang --ci)" || complain 'not the sanitizers of this clang'
! grep -q clang-format <<<"$(asked '' clang --ci)" || complain 'what need not be there is asked for'
grep -q clang-format-14 <<<"$(asked '' 'clang clang-format-14' --ci)" || complain 'what may be there is not asked for'
[ -z "$(asked "$(sed -n "/^run=/,/'$/p" "$root/scripts/install-deps.sh" | tr "\n'|=" '    ')" '' --run)" ] || complain 'what is there is installed'
exit $bad
