#!/usr/bin/env python3
"""Shows that the replay of a recording is the original: the same bits, and the same time.

    originals.py PROGRAM WORK OUT [FOLDER]     PROGRAM: `originals` of the bundle; candidates of FOLDER, default tests/gpu/originals

Each candidate says in its first comments which tensors it has. It is recorded as kcast-exec does it, in the recorder's jail, with inputs of
the recorder's. The recording is replayed by the executor's code in one process (tests/gpu/originals.c), on inputs that are drawn there; the
candidate runs in another, an ordinary Python process with PyTorch's own allocator (tests/gpu/original_run.py), on the same inputs. Then

- the outputs are compared bit by bit. Where they differ, so must the original's from one run of itself to the next; or, as some compilers
  choose among several programs by how long they take, an original that is started and compiled anew must be equal (up to ANEW times);
- both are timed in turns on the same GPU, while nothing else runs there: the replay as the executor launches it, the original as a CUDA
  graph, each launch between two events, after a pause, putting tensors back and overwriting the L2 cache with zeros three times over.
  Of each turn the first launches do not count. The medians of all may differ by 2 %; where they do not agree they are timed again, once.

KCAST_ORIGINALS: patterns of names. KCAST_KEEP_RECORDINGS=1: recordings of small candidates and shapes to OUT/recordings.tar.xz, for
tests/data/recordings. KCAST_ORIGINAL_PYTHON: the interpreter that has PyTorch, default this one. KCAST_ORIGINAL_RUN: what runs an original
instead of original_run.py. Last line: "N passed, N failed".
"""
import concurrent.futures
import datetime
import fnmatch
import io
import json
import os
import re
import select
import signal
import statistics
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = os.environ.get("KCAST_ORIGINAL_PYTHON", sys.executable)
RUN = os.environ.get("KCAST_ORIGINAL_RUN", os.path.join(HERE, "original_run.py"))
TOLERANCE = 0.02  # of the times
ANEW = 3  # times that an original whose outputs differ is started anew
SPREAD = 4.0  # how many times more than between two runs of the original an output that is not repeatable may differ
RECORDERS, AT_ONCE = 6, 8
TURNS, LAUNCHES, FIRST = 8, 20, 2  # of each side; launches of a turn, of which the first do not count
SECONDS = {"processor": 60, "record": 240, "start": 120, "run": 180, "replay": 120, "time": 60, "all": 480}
SEED = 20251127
KEPT = ("triton_softmax", "compile_chain", "softmax", "copies", "streams", "launcher_cooperative", "launcher_dependent")
KEPT_BYTES = 200 << 10


class Failed(Exception):
    pass


class Candidate:
    def __init__(self, path):
        self.path, (self.name, self.ending) = path, os.path.splitext(os.path.basename(path))
        with open(path, encoding="utf-8") as file:
            text = file.read()
        size = re.search(r"^(?:#|//) Size: n=(\d+) small=(\d+)$", text, re.M)
        lines = re.findall(r"^(?:#|//) Tensor: (\w+) (in|out|inout) (\w+) (\S+)(?: (\w+) (\S+) (\S+))?$", text, re.M)
        if not size or not lines:
            sys.exit(f"{path} does not say its sizes and tensors in comments: Size: n=… small=…, Tensor: NAME in|out|inout DTYPE EXTENT,…")
        self.sizes = {"large": int(size[1]), "small": int(size[2])}
        self.lines = lines
        self.failure = self.own = self.found = self.times = None
        self.launches = (0, 0, 0, 0)
        self.again = False
        self.before = []  # what was found of originals, as long as they were compiled otherwise

    def problem(self, which):
        """problem.json; its one case has the candidate's large or small shapes."""
        tensors = []
        for name, direction, dtype, shape, distribution, low, high in self.lines:
            one = {"name": name, "direction": direction, "dtype": dtype, "shape": shape.split(",")}
            if direction != "out":
                one["values"] = {"distribution": distribution, "low": float(low), "high": float(high)} if distribution else \
                    {"distribution": "normal", "mean": 0, "stddev": 1}
                if distribution == "integers":
                    one["values"].update(low=int(low), high=int(high))
            if direction != "in":
                one["tolerance"] = 1
            tensors.append(one)
        case = {"n": self.sizes[which]}
        return {"name": "original", "title": self.name, "license": "MIT", "language": "cuda", "params": [{"name": "n", "type": "int"}],
                "tensors": tensors, "cases": {"check": [case], "bench": [{"params": case, "weight": 1}]}, "cache": "cold",
                "work": {"flops": "1", "bytes": "1"}}

    def spec(self, target):
        """What original_run.py is told."""
        n = self.sizes["large"]
        shapes = [[n if extent == "n" else int(extent) for extent in shape.split(",")] for _, _, _, shape, _, _, _ in self.lines]
        return {"tensors": [{"name": line[0], "direction": line[1], "dtype": line[2], "shape": shape} for line, shape in zip(self.lines, shapes)],
                "numbers": {"n": n}, "target": target}


class Process:
    """A program that answers lines with lines, each within a time. What it says on stderr is in the file `log`."""

    def __init__(self, name, command, log, environment=None):
        self.name, self.log, self.rest = name, log, b""
        with open(log, "wb") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, start_new_session=True,
                                            env=dict(os.environ, **(environment or {})))

    def words(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read().strip()

    def end(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.close()
                self.process.wait(10)
            except (subprocess.TimeoutExpired, OSError):
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)  # with what it may have started
        except (ProcessLookupError, PermissionError):
            pass
        self.process.wait()

    def fail(self, what):
        self.end()
        raise Failed(f"the process of the {self.name} {what}\n{self.words()}".strip())

    def send(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.fail("has ended")

    def line(self, seconds):
        until = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.fail(f"does not answer within {seconds} s")
            data = os.read(self.process.stdout.fileno(), 1 << 16)
            if not data:
                self.process.wait()
                self.fail(f"has ended with {self.process.returncode}")
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode("utf-8", "replace")

    def ask(self, line, seconds):
        self.send(line)
        return self.line(seconds)


class Session:
    def __init__(self, program, work, folder):
        self.program, self.work, self.begin = program, work, time.monotonic()
        patterns = os.environ.get("KCAST_ORIGINALS", "*").split()
        names = sorted(name for name in os.listdir(folder) if name.endswith((".py", ".cu")))
        self.candidates = [Candidate(os.path.join(folder, name)) for name in names
                           if any(fnmatch.fnmatch(os.path.splitext(name)[0], pattern) for pattern in patterns)]
        said = subprocess.run([program, "gpu"], capture_output=True, text=True, timeout=120)
        if said.returncode != 0:
            sys.exit(said.stderr.strip())
        self.uuid, self.target, self.l2, self.multiprocessors, self.gpu = said.stdout.strip().split(" ", 4)
        self.versions = "versions not known"

    def at(self, candidate, name):
        return os.path.join(self.work, candidate.name, name)

    def left(self):
        return SECONDS["all"] - (time.monotonic() - self.begin)

    # ---- recording ----

    def write_problems(self):
        for candidate in self.candidates:
            os.makedirs(os.path.join(self.work, candidate.name), exist_ok=True)
            for which in ("large", "small"):
                with open(self.at(candidate, which + ".json"), "w", encoding="utf-8") as file:
                    json.dump(candidate.problem(which), file)
            with open(self.at(candidate, "spec.json"), "w", encoding="utf-8") as file:
                json.dump(candidate.spec(self.target), file)
            done = subprocess.run([self.program, "check", self.at(candidate, "large.json"), candidate.path], capture_output=True, text=True, timeout=60)
            if done.returncode != 0:
                candidate.failure = done.stderr.strip()

    def record_some(self, number, wanted):
        """By one recorder. What fails does not hold up the others, unless the recorder itself does not answer."""
        recorder = None
        for candidate, which in wanted:
            began = time.monotonic()
            try:
                if not recorder:
                    recorder = Process("recorder", [self.program, "record", self.uuid, self.target, self.l2, self.multiprocessors, PYTHON,
                                        str(SECONDS["processor"])], os.path.join(self.work, f"recorder{number}.log"))
                said = recorder.ask("\t".join([self.at(candidate, which + ".json"), candidate.path, self.at(candidate, which + ".recording")]),
                                    max(1, min(SECONDS["record"], self.left())))
                if not said.startswith("recorded "):
                    log = self.at(candidate, which + ".recording.log")
                    more = open(log, encoding="utf-8", errors="replace").read() if os.path.exists(log) else ""
                    word, _, why = said.split(" ", 2)
                    raise Failed(f"{word}: {why}\n{more}".strip())
                print(f"recorded {candidate.name}, {which}: {int(said.split()[2]) >> 10} kB, {time.monotonic() - began:.1f} s", flush=True)
            except Exception as error:
                if recorder and recorder.process.poll() is not None:
                    recorder = None
                if which == "large":
                    candidate.failure = f"it is not recorded: {error}"
                else:
                    print(f"the small {candidate.name} is not recorded: {error}", flush=True)
        if recorder:
            if recorder.words():
                print(recorder.words(), flush=True)
            recorder.end()

    def record(self, keep):
        wanted = [(candidate, "large") for candidate in self.candidates if not candidate.failure]
        wanted += [(candidate, "small") for candidate, _ in wanted if keep and candidate.name in KEPT]
        with concurrent.futures.ThreadPoolExecutor(RECORDERS) as pool:
            for job in [pool.submit(self.record_some, i, wanted[i::RECORDERS]) for i in range(RECORDERS)]:
                job.result()

    # ---- running ----

    def start_original(self, candidate):
        """In caches of its own, so that it is compiled anew."""
        folder, caches = os.path.join(self.work, candidate.name), self.at(candidate, f"caches{len(candidate.before)}")
        environment = {"TRITON_CACHE_DIR": caches + "/triton", "TORCHINDUCTOR_CACHE_DIR": caches + "/inductor",
                       "TORCHINDUCTOR_COMPILE_THREADS": "1", "CUDA_VISIBLE_DEVICES": self.uuid}
        return Process("original", [PYTHON, "-B", RUN, candidate.path, self.at(candidate, "spec.json"), folder, self.l2],
                       folder + "/original.log", environment)

    def compare(self, candidate, original):
        self.versions = original.line(SECONDS["start"]).partition(" ")[2]
        candidate.own = json.loads(original.ask("run", SECONDS["run"]))
        candidate.found = json.loads(original.ask("compare", SECONDS["run"]))

    def prepare(self, candidate):
        """Both processes, after they have run and the outputs are compared."""
        if self.left() < 60:
            raise Failed(f"there is no time left for it: {SECONDS['all']} s are over")
        folder = os.path.join(self.work, candidate.name)
        original, replay = self.start_original(candidate), None
        try:
            replay = Process("replay", [self.program, "replay", self.uuid, self.at(candidate, "large.json"), self.at(candidate, "large.recording"), folder,
                              str(SEED)], folder + "/replay.log")
            candidate.launches = tuple(int(word) for word in replay.line(SECONDS["replay"]).split()[1:])
            replay.ask("run", SECONDS["replay"])
            self.compare(candidate, original)
            while not equality(candidate.own, candidate.found)[0] and len(candidate.before) < ANEW and self.left() > SECONDS["start"]:
                candidate.before.append(candidate.found)
                original.end()
                original = self.start_original(candidate)
                self.compare(candidate, original)
        except BaseException:
            original.end()
            if replay:
                replay.end()
            raise
        finally:
            for name in os.listdir(folder):
                if name.endswith((".in", ".replayed")):
                    os.unlink(os.path.join(folder, name))
        return original, replay

    @staticmethod
    def turns(original, replay, count):
        """Times of both sides, turn by turn."""
        times = {"original": [], "replay": []}
        for turn in range(count):
            for side in ("original", "replay") if turn % 2 == 0 else ("replay", "original"):
                process = original if side == "original" else replay
                said = process.ask(f"time {FIRST + LAUNCHES}", SECONDS["time"])
                values = json.loads(said) if side == "original" else [float(word) for word in said.split()[1:]]
                times[side].append(values[FIRST:])
        return times

    def time(self, candidate, original, replay):
        candidate.times = self.turns(original, replay, TURNS)
        if abs(ratio(candidate.times) - 1) > TOLERANCE:
            candidate.again = True
            candidate.times = self.turns(original, replay, 2 * TURNS)

    def batch(self, candidates):
        """Some candidates: all run at once, and are timed one after the other."""
        ready = {}

        def guarded(candidate, what, *arguments):
            try:
                return what(candidate, *arguments)
            except Exception as error:
                candidate.failure = str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
                return None

        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for candidate, both in zip(candidates, pool.map(lambda each: guarded(each, self.prepare), candidates)):
                if both:
                    ready[candidate] = both
        for candidate, both in ready.items():
            guarded(candidate, self.time, *both)
            for process in both:
                process.end()
        for candidate in candidates:
            print(sentence(candidate), flush=True)

    def run(self):
        waiting = [candidate for candidate in self.candidates if not candidate.failure]
        for candidate in self.candidates:
            if candidate.failure:
                print(sentence(candidate), flush=True)
        for at in range(0, len(waiting), AT_ONCE):
            self.batch(waiting[at:at + AT_ONCE])

    # ---- keeping recordings ----

    def keep(self, out):
        """For tests/data/recordings: NAME.recording and NAME.json, and how they were made."""
        made = f"{self.gpu}, {self.versions}, {datetime.date.today()}"
        with tarfile.open(os.path.join(out, "recordings.tar.xz"), "w:xz") as tar:
            for candidate in self.candidates:
                path = self.at(candidate, "small.recording")
                if candidate.name not in KEPT or not os.path.exists(path):
                    continue
                if os.path.getsize(path) > KEPT_BYTES:
                    print(f"{candidate.name} is not kept: its recording has {os.path.getsize(path) >> 10} kB", flush=True)
                    continue
                tar.add(path, candidate.name + ".recording")
                tar.add(self.at(candidate, "small.json"), candidate.name + ".json")
                print(f"kept {candidate.name}: {os.path.getsize(path)} bytes", flush=True)
            info = tarfile.TarInfo("MADE")
            info.size = len(made.encode()) + 1
            tar.addfile(info, io.BytesIO(made.encode() + b"\n"))


# ---- what is made of it; pure ----

def ratio(times):
    """Of the replay's median to the original's."""
    return statistics.median(sum(times["replay"], [])) / statistics.median(sum(times["original"], []))


def equality(own, found):
    """Whether the outputs are the original's, and a clause that says so."""
    clauses, right = [], True
    for name, of in found.items():
        if of["differ"] == 0:
            continue
        usual = own[name]
        text = f"{name} differs in {of['differ']} of {of['elements']} elements, by at most {of['most']:.3g}"
        if usual["differ"] > 0:
            text += f"; the original itself from run to run in {usual['differ']}, by at most {usual['most']:.3g}"
        if usual["differ"] == 0 or not of["most"] <= SPREAD * usual["most"]:
            right = False
        clauses.append(text)
    return right, "; ".join(clauses) or "bit-equal"


def verdict(candidate):
    """Whether it has passed; and in words its equality, its times."""
    if candidate.failure:
        return False, candidate.failure, ""
    right, same = equality(candidate.own, candidate.found)
    if candidate.before:
        first = ", ".join(f"{name} in {of['differ']} elements, by at most {of['most']:.3g}" for name, of in candidate.before[0].items() if of["differ"])
        same += f", to the original started anew {len(candidate.before)} times; the first one differs: {first}"
    times = candidate.times
    original, replay = (statistics.median(sum(times[side], [])) / 1000 for side in ("original", "replay"))
    each = [ratio({side: [times[side][i]] for side in times}) for i in range(len(times["replay"]))]
    words = f"original {original:.1f} us, replay {replay:.1f} us, ratio {replay / original:.4f}, of turns {min(each):.4f} to {max(each):.4f}"
    if candidate.again:
        words += ", timed again"
    return right and abs(replay / original - 1) <= TOLERANCE, same, words


def sentence(candidate):
    passed, same, words = verdict(candidate)
    return f"{'ok    ' if passed else 'FAILED'} {candidate.name}: {same}{'; ' if words else ''}{words}"


def table(candidates):
    rows = [f"{'candidate':22} {'kernels':>7} {'fills':>5} {'copies':>6} {'images kB':>9}  {'outputs':15} {'original us':>11} {'replay us':>9}  ratio"]
    for candidate in candidates:
        if candidate.failure:
            rows.append(f"{candidate.name:22} FAILED, as said above")
            continue
        right, same = equality(candidate.own, candidate.found)
        kernels, fills, copies, image = candidate.launches
        words = same if same == "bit-equal" else "not repeatable" if right else "DIFFERENT"
        original, replay = (statistics.median(sum(candidate.times[side], [])) / 1000 for side in ("original", "replay"))
        mark = "" if abs(replay / original - 1) <= TOLERANCE else "  DIFFERENT"
        rows.append(f"{candidate.name:22} {kernels:7} {fills:5} {copies:6} {image >> 10:9}  {words:15} {original:11.1f} {replay:9.1f}  {replay / original:.4f}{mark}")
    return rows


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit("usage: originals.py PROGRAM WORK OUT [FOLDER]")
    program, work, out = (os.path.abspath(path) for path in sys.argv[1:4])
    folder = sys.argv[4] if len(sys.argv) > 4 else os.path.join(HERE, "originals")
    keep = os.environ.get("KCAST_KEEP_RECORDINGS") == "1"
    os.makedirs(work, exist_ok=True)
    session = Session(program, work, folder)
    if not session.candidates:
        sys.exit("originals.py: no candidate has such a name")
    print(f"{session.gpu}, {session.uuid}: {len(session.candidates)} candidates", flush=True)
    session.write_problems()
    session.record(keep)
    print(f"recorded after {time.monotonic() - session.begin:.0f} s", flush=True)
    session.run()
    try:
        if keep:
            session.keep(out)
    except (tarfile.TarError, ImportError, OSError) as error:
        print(f"recordings are not kept: {error}")
    passed = sum(verdict(candidate)[0] for candidate in session.candidates)
    timed = [candidate for candidate in session.candidates if not candidate.failure]
    print(f"-- {session.gpu}, {session.versions}, {time.monotonic() - session.begin:.0f} s; {TURNS} turns of {LAUNCHES} launches of each side, "
          "L2 cache overwritten with zeros before each; original: CUDA graph; replay: as the executor launches it")
    print("\n".join(table(session.candidates)))
    if timed:
        apart = sorted(abs(ratio(candidate.times) - 1) for candidate in timed)
        print(f"times differ by {100 * statistics.median(apart):.2f} % in the median, {100 * apart[-1]:.2f} % at most; bit-equal: "
              f"{sum(equality(c.own, c.found)[1] == 'bit-equal' for c in timed)} of {len(timed)}")
    print(f"{passed} passed, {len(session.candidates) - passed} failed")
    return 0 if passed == len(session.candidates) else 1


if __name__ == "__main__":
    sys.exit(main())
