#!/bin/sh
# Composes the battery of sealed candidates from its parts (README.md):
#   tests/cheats/cuda/compose.sh FOLDER
# FOLDER gets NAME-PROBLEM.cu for every line of cheats.list and every problem in it, a copy of the
# whole candidates, the refused ones, and problem/NAME with benchmark shapes of the battery's own, or
# as it is where it has no adapter.
# It needs a shell and awk, no compiler, so it runs on a machine with a GPU too.
set -eu
out=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
mkdir -p "$out/problem"
say() { sed -n "s|^// $2: ||p" "$here/problem/$1.cu"; }

# The problem with the benchmark shapes that the adapter names, and its honest body: the baseline's
# kernels as functions.
for adapter in "$here"/problem/*.cu; do
    name=$(basename "$adapter" .cu)
    from=$root/$(say "$name" from)
    mkdir -p "$out/problem/$name"
    cp "$from/reference.cu" "$from/baseline.cu" "$out/problem/$name/"
    awk -v bench="$(say "$name" bench)" '
        /"bench": \[.*\],?$/ { print "    \"bench\": [" bench "],"; next }
        /"bench": \[/ { print "    \"bench\": [" bench "],"; inside = 1; next }
        inside { if (/^ *\],?$/) inside = 0; next }
        { print }' "$from/problem.json" >"$out/problem/$name/problem.json"
    sed -e '/^\/\/@/d' -e 's/extern "C" __global__ void __launch_bounds__(256)/static __device__ void/' \
        -e 's/extern "C" __global__/static __device__/' "$from/baseline.cu" >"$out/problem/$name/body"
done

# Writes one candidate. The manifest is the adapter's, then the mechanism's.
awk -v here="$here" -v out="$out" '
function fail(text) { print "compose.sh: cheats.list:" NR ": " text >"/dev/stderr"; failed = 1; exit 1 }
function copy(path, to,    line, there) {
    while ((there = (getline line <path)) > 0) print line >to
    if (there < 0) fail(path " cannot be read")
    close(path)
}
# The launch lines of the adapter get what the definitions add to them; scratch "own" its init.
function manifest(line,    text) {
    if (line ~ /^\/\/@ launch/) {
        launches++
        text = line more more_at[launches]
        return text
    }
    return line ~ /^\/\/@ scratch own/ ? line init : line
}
function compose(name, expect, mechanism, problem,    to, path, line, there, defines, i, key, value) {
    to = out "/" name "-" problem ".cu"
    more = init = defines = preface = twin = ""
    launches = 0
    split("", more_at)
    own = "OWN 4096"
    for (i = 5; i <= NF; i++) {
        at = index($i, "=")
        if (at < 2) fail("no definition: " $i)
        key = substr($i, 1, at - 1)
        value = substr($i, at + 1)
        if (key == "launch+") more = more " " value
        else if (key ~ /^launch[0-9]\+$/) more_at[substr(key, 7, 1) + 0] = " " value
        else if (key == "own_init") init = " init=" value
        else if (key == "OWN") own = "OWN " value
        else if (key == "twin") twin = "// twin: " value "-" problem ".cu\n"
        else if (key == "PREFACE") preface = value "\n"
        else defines = defines "#define " key " " value "\n"
    }
    printf "// expect: %s\n// problem: %s\n%s", expect, problem, twin >to
    path = here "/problem/" problem ".cu"
    while ((there = (getline line <path)) > 0) {
        if (line ~ /^\/\/ (from|bench|input|output): /) continue
        if (line == "// MECHANISM") {
            printf "#define %s\n%s", own, defines >to
            copy(here "/shared.cu", to)
            printf "%s", preface >to
            copy(here "/mechanism/" mechanism ".cu", to)
        } else if (line == "// BODY") {
            copy(out "/problem/" problem "/body", to)
        } else {
            print manifest(line) >to
        }
    }
    if (there < 0) fail(path " cannot be read")
    close(path)
    close(to)
}
BEGIN { FS = " [|] " }
/^#/ || /^$/ { next }
NF < 4 { fail("NAME | EXPECT | MECHANISM | PROBLEMS expected") }
{
    count = split($4, problem_of, " ")
    for (p = 1; p <= count; p++) compose($1, $2, $3, problem_of[p])
}
END { exit failed }' "$here/cheats.list"

# Candidates that are one file, and those of tests/gpu/sealed, which are for rowsum.
cp "$here"/whole/*.cu "$root"/tests/gpu/sealed/*.cu "$out/"
for name in $(sed -n 's|^// problem: ||p' "$here"/whole/*.cu | sort -u); do
    [ -d "$out/problem/$name" ] && continue
    mkdir "$out/problem/$name"
    cp "$root/problems/cuda/$name/problem.json" "$root/problems/cuda/$name/reference.cu" "$root/problems/cuda/$name/baseline.cu" "$out/problem/$name/"
done
awk -v out="$out" '
    /^=== / { if (to) close(to); to = out "/refused-" $2 ".cu"; next }
    to { print >to }' "$here/refused.list"
rm -f "$out"/problem/*/body
