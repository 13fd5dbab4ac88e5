#!/usr/bin/env bash
# The step `originals` (tests/gpu/originals.py), with a GPU that is not there: candidates are recorded by a stand-in for PyTorch, replayed
# on the fake driver, and held against an "original" that computes what it is told and says which times it had. What is equal passes; other
# bits, other times, an original that ends, and a candidate that cannot be recorded fail with what there is to say, and hold up no other.
# Every candidate of tests/gpu/originals can be read, with its problem. Skipped where there is no CUDA compiler.
set -u
bin=${KCAST_BIN:?} build=${KCAST_BUILD:?} root=${KCAST_ROOT:?}
work=$(mktemp -d) bad=0
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
say() { echo "$*"; bad=1; }

# Of the real ones, what needs no GPU.
python3 - "$root" "$bin/originals" "$work" <<'P' || say "a candidate of tests/gpu/originals is not as it should be"
import json, os, subprocess, sys
sys.dont_write_bytecode = True
root, program, work = sys.argv[1:4]
sys.path.insert(0, os.path.join(root, "tests/gpu"))
import originals
folder, seen, bad = os.path.join(root, "tests/gpu/originals"), 0, 0
compile(open(os.path.join(root, "tests/gpu/original_run.py")).read(), "original_run.py", "exec")
for name in sorted(os.listdir(folder)):
    candidate = originals.Candidate(os.path.join(folder, name))
    if name.endswith(".py"):
        compile(open(candidate.path).read(), name, "exec")
    for which in ("large", "small"):
        problem = os.path.join(work, "problem.json")
        json.dump(candidate.problem(which), open(problem, "w"))
        done = subprocess.run([program, "check", problem, candidate.path], capture_output=True, text=True)
        if done.returncode != 0:
            print(name, done.stderr)
            bad += 1
    seen += 1
print(f"{seen} candidates")
unknown = set(originals.KEPT) - {os.path.splitext(name)[0] for name in os.listdir(folder)}
sys.exit(1 if bad or seen < 30 or unknown else 0)
P

found=
for home in "${KCAST_CUDA_HOME:-}" "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-*; do
    [ -n "$home" ] && ls "$home"/lib*/libnvrtc.so.1[2-9] >/dev/null 2>&1 && found=$home
done
if [ -z "$found" ]; then
    [ $bad -eq 0 ] || exit 1
    echo "skipped because there is no CUDA compiler (scripts/install-toolkit.sh fetches one)"
    exit 77
fi

# An interpreter with the stand-in, as for tests of the recorder.
cd "$root" || exit 1
umask 022
tests/support/recorder_environment.sh "$work" "$build/tests/fake" || exit 1

mkdir "$work/candidates"
candidate() { # NAME, then its lines
    printf '# Size: n=20000 small=300\n# Tensor: x in f32 n\n# Tensor: y out f32 n\nimport torch\ndef original(x, y):\n' >"$work/candidates/$1.py"
    printf '    %s\n' "${@:2}" >>"$work/candidates/$1.py"
}
scale="torch.launch('fk_scale', x, y, x.numel(), 2.5)"
for name in good slow other loose wild dies anew; do candidate $name "$scale"; done
candidate elsewhere "z = torch.empty(x.numel())" "torch.launch('fk_scale', x, z, x.numel(), 2.5)" "return z"
candidate copies "y.zero_()" "y.copy_(x)"
candidate refused "y.zero_()" "x.item()"

# y = 2.5 x in f32, or a copy; by its name something is wrong with it.
cat >"$work/original" <<'P'
import json, os, struct, sys
source, spec, folder, _ = sys.argv[1:5]
name = os.path.basename(source)[:-3]
assert json.load(open(spec))["numbers"] == {"n": 20000}
def values(ending, tensor):
    data = open(os.path.join(folder, tensor + "." + ending), "rb").read()
    return struct.unpack(f"<{len(data) // 4}f", data)
def rounded(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]
print("ready torch by hand", flush=True)
for line in sys.stdin:
    word, _, count = line.strip().partition(" ")
    if word == "run":
        if name == "dies":
            print("it ends here", file=sys.stderr)
            sys.exit(3)
        factor = {"copies": 1, "other": 3, "loose": 2.5001, "wild": 3}.get(name, 2.5)
        if name == "anew":  # compiled in another way, unless it finds the third cache that it is given
            factor = 2.5 if os.path.basename(os.path.dirname(os.environ["TRITON_CACHE_DIR"])) == "caches2" else 2.5001
        x = values("in", "x")
        assert len(x) == 20000 and len(set(x)) > 10000
        y = [rounded(factor * each) for each in x]
        answer = {"y": {"differ": 9, "most": 0.01} if name in ("loose", "wild") else {"differ": 0, "most": 0.0}}
    elif word == "compare":
        apart = [abs(a - b) for a, b in zip(y, values("replayed", "y"), strict=True) if a != b]
        answer = {"y": {"elements": len(y), "differ": len(apart), "most": max(apart, default=0.0)}}
    else:
        answer = [1e9, 1e9] + [{"slow": 50000, "copies": 3300}.get(name, 41300)] * (int(count) - 2)
    print(json.dumps(answer), flush=True)
P

export LD_LIBRARY_PATH=$build/tests/fake KCAST_FAKE_GPU='noise=0' KCAST_ORIGINAL_PYTHON=$work/env/bin/python3 KCAST_ORIGINAL_RUN=$work/original
mkdir "$work/out"
KCAST_KEEP_RECORDINGS=1 timeout 600 python3 -B tests/gpu/originals.py "$bin/originals" "$work/run" "$work/out" "$work/candidates" >"$work/log" 2>&1 && say "all pass"
for word in good elsewhere; do
    grep -qE "^ok     $word: bit-equal; original 41.3 us, replay 41.2 us, ratio 0.99[0-9]*, of turns 0.99[0-9]* to 0.99[0-9]*$" "$work/log" || say "what is equal does not pass: $word"
done
grep -qE '^ok     loose: y differs in [0-9]+ of 20000 elements, by at most [0-9.]+; the original itself from run to run in 9, by at most 0.01; ' "$work/log" || say "what is not repeatable does not pass"
grep -qE '^ok     anew: bit-equal, to the original started anew 2 times; the first one differs: y in [0-9]+ elements, by at most [0-9.]+; ' "$work/log" ||
    say "what is compiled otherwise from time to time does not pass"
grep -qE '^FAILED wild: y differs in .*; the original itself ' "$work/log" || say "what differs much more than from run to run passes"
grep -qE '^FAILED slow: bit-equal; original 50.0 us, replay 41.2 us, ratio 0.82[0-9]*, .*timed again$' "$work/log" || say "another time passes"
grep -qE '^FAILED other: y differs in [0-9]+ of 20000 elements, by at most [0-9.]+, to the original started anew 3 times; .*; original' "$work/log" || say "other bits pass"
grep -qE '^FAILED dies: the process of the original has ended with 3$' "$work/log" && grep -q '^it ends here$' "$work/log" || say "it does not say that an original has ended"
grep -qE '^FAILED refused: it is not recorded: refused: rejected: baseline.py:.*it reads a result on the host' "$work/log" || say "it does not say what cannot be recorded"
grep -qE '^copies +0 +1 +1 +0  bit-equal ' "$work/log" || say "copies are not in the table"
tail -1 "$work/log" | grep -q '^5 passed, 5 failed$' || say "the last line is not that of five that pass"
tar -xJOf "$work/out/recordings.tar.xz" MADE | grep -q "^NVIDIA H200, torch by hand, 20" || say "it does not say how recordings were made"
[ "$(tar -tJf "$work/out/recordings.tar.xz" | sort | tr '\n' ' ')" = "MADE copies.json copies.recording " ] || say "recordings are not kept"
[ $bad -eq 0 ] || cat "$work/log"
exit $bad
