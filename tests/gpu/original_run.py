"""A candidate of tests/gpu/originals as its author would run it, in a process of its own: nothing is recorded here.

    original_run.py SOURCE SPEC FOLDER L2-BYTES      SPEC: JSON of tests/gpu/originals.py: tensors, numbers, target

Imports PyTorch and prints "ready" and versions. Then it reads lines and answers each with a line of JSON. "run": makes the tensors, with the inputs of
FOLDER/NAME.in; calls the candidate as the recorder does (three times first, without gradients, on a stream of its own); calls it again
and again from the same inputs, eagerly and as a CUDA graph; and says how much its own outputs differ. "compare": how much those of
FOLDER/NAME.replayed differ from them. "time N": times of N launches of the graph in nanoseconds, each after tensors were put back and
the L2 cache was overwritten three times over, between two CUDA events.
"""
import ctypes
import importlib.util
import inspect
import json
import os
import subprocess
import sys

WARM_UPS = 3
EAGER_RUNS = 4
GRAPH_RUNS = 3
SPIN_CYCLES = 300000  # 0.15 ms, while this process queues what is timed; the replay pauses as long (tests/gpu/original_replay.c)


def dtype_of(torch, name):
    return {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16, "i32": torch.int32,
            "i64": torch.int64, "i8": torch.int8, "u8": torch.uint8}[name]


def load_python(path):
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    return module


def load_launcher(path, folder, target):
    library = os.path.join(folder, "original.so")
    command = ["nvcc", "-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", f"-arch={target}", "-o", library, path]
    subprocess.run(command, check=True, stdout=sys.stderr)
    function = ctypes.CDLL(library).original
    function.restype = None
    return function


class Original:
    def __init__(self, torch, source, spec, folder, l2_bytes):
        self.torch, self.spec, self.folder = torch, spec, folder
        self.tensors = {t["name"]: self.make(t) for t in spec["tensors"]}
        self.pristine = {t["name"]: self.tensors[t["name"]].clone() for t in spec["tensors"] if t["direction"] == "inout"}
        self.outputs = [t["name"] for t in spec["tensors"] if t["direction"] != "in"]
        self.flush = torch.empty(3 * l2_bytes, dtype=torch.uint8, device="cuda")
        self.stream = torch.cuda.Stream()
        self.eager = None
        self.call = self.launcher(source) if source.endswith(".cu") else self.python(load_python(source))

    def path(self, name, ending):
        return os.path.join(self.folder, f"{name}.{ending}")

    def read(self, name, ending, like):
        with open(self.path(name, ending), "rb") as file:
            data = bytearray(file.read())
        made = self.torch.frombuffer(data, dtype=like.dtype).reshape(like.shape)
        return made.to(like.device)

    def make(self, of):
        made = self.torch.empty(of["shape"], dtype=dtype_of(self.torch, of["dtype"]), device="cuda")
        if of["direction"] != "out":
            made.copy_(self.read(of["name"], "in", made))
        return made

    # How it is called, by docs/problems.md.

    def launcher(self, path):
        function = load_launcher(path, self.folder, self.spec["target"])
        addresses = [ctypes.c_void_p(self.tensors[t["name"]].data_ptr()) for t in self.spec["tensors"]]
        numbers = [ctypes.c_int64(value) for value in self.spec["numbers"].values()]
        return lambda: function(*addresses, *numbers, ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream))

    def python(self, module):
        given = list(self.tensors.values())
        if hasattr(module, "custom_kernel"):
            return lambda: module.custom_kernel(tuple(given))
        if hasattr(module, "ModelNew"):
            model = module.ModelNew().cuda().eval()
            inputs = [self.tensors[t["name"]] for t in self.spec["tensors"] if t["direction"] != "out"]
            return lambda: model(*inputs)
        known = dict(self.spec["numbers"], **self.tensors)
        arguments = {name: known[name] for name in inspect.signature(module.original).parameters}
        return lambda: module.original(**arguments)

    def results(self, returned):
        """The outputs by name. What returns nothing has written them itself."""
        if returned is None:
            return {name: self.tensors[name] for name in self.outputs}
        given = list(returned) if isinstance(returned, (tuple, list)) else [returned]
        assert len(given) == len(self.outputs), f"it returns {len(given)} values for {len(self.outputs)} outputs"
        return {name: value.contiguous() for name, value in zip(self.outputs, given)}

    # Running it.

    def put_back(self):
        for name, pristine in self.pristine.items():
            self.tensors[name].copy_(pristine)

    def clear(self):
        for name in self.outputs:
            if name not in self.pristine:
                self.tensors[name].view(self.torch.uint8).fill_(255)

    def run(self):
        torch = self.torch
        torch.cuda.synchronize()  # the tensors were made on another stream
        with torch.no_grad(), torch.cuda.stream(self.stream):
            for _ in range(WARM_UPS):
                self.put_back()
                self.results(self.call())
            self.stream.synchronize()
            self.eager, own = self.repeat(self.call, EAGER_RUNS, {})
            self.graph = torch.cuda.CUDAGraph()
            self.put_back()
            self.stream.synchronize()
            with torch.cuda.graph(self.graph, stream=self.stream, capture_error_mode="thread_local"):
                captured = self.results(self.call())
            self.replayed, own = self.repeat(lambda: self.graph.replay() or tuple(captured.values()), GRAPH_RUNS, own)
        return own

    def repeat(self, call, count, own):
        """Outputs of the first of `count` runs, and how much the others, and eager runs before them, differ from the first of all."""
        first = None
        for _ in range(count):
            self.put_back()
            self.clear()
            found = self.results(call())
            if first is None:
                first = {name: value.clone() for name, value in found.items()}
            usual = self.eager or first
            for name, value in found.items():
                differ, most = difference(self.torch, usual[name], value)
                before = own.get(name, {"differ": 0, "most": 0.0})
                own[name] = {"differ": max(before["differ"], differ), "most": max(before["most"], most)}
        self.stream.synchronize()
        return first, own

    def compare(self):
        """With an eager run and with one of the graph: the smaller difference of the two, where they are not the same themselves."""
        found = {}
        for name in self.outputs:
            replayed = self.read(name, "replayed", self.eager[name])
            pairs = [difference(self.torch, run[name], replayed) for run in (self.eager, self.replayed)]
            differ, most = min(pairs)
            found[name] = {"elements": replayed.numel(), "differ": differ, "most": most}
        return found

    def time(self, count):
        torch = self.torch
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        times = []
        with torch.no_grad(), torch.cuda.stream(self.stream):
            for _ in range(count):
                self.put_back()
                self.clear()
                torch.cuda._sleep(SPIN_CYCLES)
                self.flush.zero_()
                begin.record()
                self.graph.replay()
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) * 1e6)
        return times


def difference(torch, a, b):
    """How many elements of two tensors differ in a bit, and by how much at most. Not finite: by infinity."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    differ = a.contiguous().view(whole) != b.contiguous().view(whole)
    count = int(differ.sum())
    if count == 0:
        return 0, 0.0
    apart = (a[differ].double() - b[differ].double()).abs()
    most = float(apart.max())
    return count, most if most == most else float("inf")


def main():
    source, spec, folder, l2_bytes = sys.argv[1:5]
    with open(spec, encoding="utf-8") as file:
        spec = json.load(file)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a candidate prints is no answer
    import torch

    try:
        import triton

        version = triton.__version__
    except ImportError:
        version = "none"
    print(f"ready torch {torch.__version__}, triton {version}", file=answers, flush=True)
    original = None
    for line in sys.stdin:
        command, _, number = line.strip().partition(" ")
        if command == "run":
            original = Original(torch, source, spec, folder, int(l2_bytes))
            answer = original.run()
        elif command == "compare":
            answer = original.compare()
        elif command == "time":
            answer = original.time(int(number))
        else:
            sys.exit(f"original_run.py: there is no command {command}")
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
