#!/usr/bin/env bash
# Builds the programs, with warnings as errors, by each compiler that docs/development.md promises and this machine has, and says which
# it has not. What one has built is removed before the next one begins.
#   scripts/compilers.sh [COMPILER…]     default: gcc 12 to 14 and clang 14 to 19
# Exit code 1 when a build fails, or when none of the compilers is there. Environment: JOBS, default the processors.
set -u
cd "$(dirname "$0")/.."
jobs=${JOBS:-$(nproc)}
[ $# -gt 0 ] || set -- gcc-12 gcc-13 gcc-14 clang-14 clang-15 clang-16 clang-17 clang-18 clang-19
built=() absent=() failed=()
for compiler in "$@"; do
    if ! command -v "$compiler" >/dev/null; then
        absent+=("$compiler")
        continue
    fi
    folder=build/compilers/$compiler begin=$SECONDS
    rm -rf "$folder"
    mkdir -p build/compilers
    if make -s -j"$jobs" CC="$compiler" B="$folder" all >"$folder.log" 2>&1; then
        built+=("$compiler")
        echo "$compiler ($("$compiler" -dumpfullversion 2>/dev/null || "$compiler" -dumpversion)): built in $((SECONDS - begin)) s"
    else
        failed+=("$compiler")
        echo "$compiler: does not build, see $folder.log:"
        grep -m5 -E 'error|Error' "$folder.log"
    fi
    rm -rf "$folder"
done
echo "built by ${#built[@]}: ${built[*]:-none}; failed: ${failed[*]:-none}; not here: ${absent[*]:-none}"
[ ${#failed[@]} -eq 0 ] && [ ${#built[@]} -gt 0 ]
