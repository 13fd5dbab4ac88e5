#!/bin/sh
# Looks whether the compiler and the libraries of this machine are there and new enough, and how they are linked. `make` runs it
# before it compiles anything and keeps what it prints until one of the files that it looks at changes.
#   configure.sh [--key] [--tests] COMPILER…    the compiler with the options that matter to it: 'ccache gcc' -I/opt/include
#   --key     prints a number that is another one when something has changed that the answer depends on
#   --tests   what the tests need, besides
# It prints how msgpack-c is linked here, which is called by two names. What is missing or too old is named on stderr, in a sentence each; then it ends with 9.
set -u
mode=look tests=0
while :; do
    case ${1:-} in
    --key) mode=key ;;
    --tests) tests=1 ;;
    *) break ;;
    esac
    shift
done
[ $# -gt 0 ] || { echo 'configure.sh: name the compiler' >&2; exit 2; }
compiler=$*

# NAME; PACKAGE; how it is linked; HEADERS; CONDITION of the preprocessor, empty: any version will do; VERSION as the preprocessor prints it; what is needed
libraries='
the C library;libc6-dev;;features.h;__GLIBC_PREREQ(2, 34);__GLIBC__.__GLIBC_MINOR__;2.34 or later
libuv;libuv1-dev;-luv;uv.h;UV_VERSION_HEX >= 0x012c00;UV_VERSION_MAJOR.UV_VERSION_MINOR.UV_VERSION_PATCH;1.44 or later
msgpack-c;libmsgpack-dev;;msgpack.h;MSGPACK_VERSION_MAJOR >= 4;MSGPACK_VERSION_MAJOR.MSGPACK_VERSION_MINOR;4.0 or later
mbedTLS;libmbedtls-dev;-lmbedtls -lmbedx509 -lmbedcrypto;mbedtls/version.h mbedtls/ssl.h;(MBEDTLS_VERSION_NUMBER >= 0x021c0000 && MBEDTLS_VERSION_NUMBER < 0x02ff0000) || (MBEDTLS_VERSION_NUMBER >= 0x03060100 && MBEDTLS_VERSION_NUMBER < 0x04000000);MBEDTLS_VERSION_MAJOR.MBEDTLS_VERSION_MINOR.MBEDTLS_VERSION_PATCH;2.28, or 3.6.1 or a later 3
jansson;libjansson-dev;-ljansson;jansson.h;JANSSON_VERSION_HEX >= 0x020d00;JANSSON_MAJOR_VERSION.JANSSON_MINOR_VERSION;2.13 or later
SQLite;libsqlite3-dev;-lsqlite3;sqlite3.h;SQLITE_VERSION_NUMBER >= 3037000;SQLITE_VERSION;3.37 or later
inih;libinih-dev;-linih;ini.h;;;
uthash;uthash-dev;;uthash.h utlist.h;;;
libseccomp;libseccomp-dev;-lseccomp;seccomp.h;SCMP_VER_MAJOR > 2 || (SCMP_VER_MAJOR == 2 && SCMP_VER_MINOR >= 5);SCMP_VER_MAJOR.SCMP_VER_MINOR;2.5 or later
XGBoost;libxgboost-dev;-lxgboost;xgboost/c_api.h xgboost/version_config.h;XGBOOST_VER_MAJOR > 1 || (XGBOOST_VER_MAJOR == 1 && XGBOOST_VER_MINOR >= 7);XGBOOST_VER_MAJOR.XGBOOST_VER_MINOR;1.7 or later
libcurl;libcurl4-openssl-dev;-lcurl;curl/curl.h;LIBCURL_VERSION_NUM >= 0x075500;LIBCURL_VERSION;7.85 or later
zlib;zlib1g-dev;-lz;zlib.h;;;
Zstandard;libzstd-dev;-lzstd;zstd.h;ZSTD_VERSION_NUMBER >= 10400;ZSTD_VERSION_MAJOR.ZSTD_VERSION_MINOR.ZSTD_VERSION_RELEASE;1.4 or later
LZ4;liblz4-dev;-llz4;lz4.h;;;
ncurses;libncurses-dev;-lncurses -ltinfo;curses.h;NCURSES_VERSION_MAJOR >= 6;NCURSES_VERSION;6.0 or later'
[ $tests -eq 0 ] || libraries="$libraries
cmocka;libcmocka-dev;-lcmocka;stdarg.h stddef.h stdint.h setjmp.h cmocka.h;;;"

if [ $mode = key ]; then
    # Installing a package gives its files a new time of change, whatever their own dates are.
    set --
    for header in $(echo "$libraries" | cut -d ';' -f 4); do
        set -- "$@" /usr/include/"$header" /usr/include/*-linux-gnu/"$header" /usr/local/include/"$header"
    done
    {
        echo "$compiler"
        cat "$0"
        for word in $compiler; do
            case $word in -*) ;; *) command -v "$word" ;; esac
        done
        # shellcheck disable=SC2046
        stat -L -c '%n %s %Z' "$@" $(for word in $compiler; do case $word in -*) ;; *) command -v "$word" ;; esac done) 2>/dev/null
    } | cksum | tr ' ' '-'
    exit 0
fi

bad=0
complain() { printf 'configure: %s\n' "$1" >&2; bad=1; }
# A program that is not there prints what the shell says of it; whoever gets no answer is told below.
preprocess() { $compiler -E -P -x c - 2>/dev/null; }

# shellcheck disable=SC2086
set -- $compiler
case $1 in *ccache) [ $# -eq 1 ] || shift ;; esac
command -v "$1" >/dev/null 2>&1 || { complain "there is no $1; install it (scripts/install-deps.sh --run installs gcc), or name another compiler by CC="; exit 9; }
version=$(printf '%s\n' '#if defined __clang__' 'clang __clang_major__' '#elif defined __GNUC__' 'gcc __GNUC__' '#else' 'other 0' '#endif' | preprocess | tail -1)
case $version in
clang\ *) [ "${version#* }" -ge 14 ] || complain "$1 is clang ${version#* } and must be 14 or later; install another one and name it by CC=" ;;
gcc\ *) [ "${version#* }" -ge 12 ] || complain "$1 is gcc ${version#* } and must be 12 or later; install another one and name it by CC=" ;;
*) complain "$1 is neither gcc 12 or later nor clang 14 or later; name one by CC=" ;;
esac
[ $bad -eq 0 ] || exit 9

# One run of the preprocessor answers for all libraries: a line `missing NAME` or `old NAME VERSION` each.
said=$(
    echo "$libraries" | while IFS=';' read -r name package link headers condition version needed; do
        [ -n "$name" ] || continue
        there=
        for header in $headers; do there="${there:+$there && }__has_include(<$header>)"; done
        echo "#if $there"
        for header in $headers; do echo "#include <$header>"; done
        if [ -n "$condition" ]; then
            printf '#if !(%s)\nkcast_old|%s|%s|%s|%s\n#endif\n' "$condition" "$name" "$package" "$needed" "$version"
        fi
        printf '#else\nkcast_missing|%s|%s\n#endif\n' "$name" "$package"
    done | { cat; echo kcast_end; } | preprocess
)
lines=$(echo "$said" | grep -a '^kcast_' || :)
case $lines in *kcast_end*) ;; *) complain "$1 cannot preprocess the headers of the libraries" ;; esac
while IFS='|' read -r kind name package needed version; do
    case $kind in
    kcast_missing) complain "$name is not installed; its package is $package (scripts/install-deps.sh installs what is missing)" ;;
    kcast_old) complain "$name is $(echo "$version" | tr -d ' "') and must be $needed; its package is $package" ;;
    esac
done <<EOF
$lines
EOF
[ $bad -eq 0 ] || exit 9

# Headers are for all machines, libraries for one: each is linked by itself where they cannot be linked together.
links() { echo 'int main(void) { return 0; }' | $compiler -x c - -o /dev/null "$@" >/dev/null 2>&1; }
# shellcheck disable=SC2046,SC2086
if ! links $(echo "$libraries" | cut -d ';' -f 3); then
    while IFS=';' read -r name package link _; do
        links $link || complain "$name has headers and no library that $1 can link; its package is $package, of the architecture that you build for"
    done <<EOF
$libraries
EOF
fi
# This one has two names.
if links -lmsgpack-c; then echo '-lmsgpack-c'
elif links -lmsgpackc; then echo '-lmsgpackc'
else complain "msgpack-c has headers and no library that $1 can link; its package is libmsgpack-dev, of the architecture that you build for"; fi
exit $((bad * 9))
