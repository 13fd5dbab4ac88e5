# ---- load_inline and load without PyTorch's headers; the fifth part of the script ----
#
# Nearly all that they take is parsing PyTorch's headers, twice by nvcc and once by g++. So a
# candidate's sources are first compiled against headers of ours (executor/recorder/inline), which have
# the same names and ask this process for whatever is more than reading what a tensor is like. What does
# not compile so is PyTorch's to compile, and the log says which of the two it was.

NONE, BOOL, INT, FLOAT, TEXT, TENSOR, LIST, INTS, TENSORS, DTYPE, DEVICE, FORMAT = range(12)
DTYPES = {0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64", 8: "complex32",
          9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2", 24: "float8_e4m3fn", 27: "uint16",
          28: "uint32", 29: "uint64"}
DEVICES = ("cpu", "cuda")
FORMATS = ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d")

# The headers of PyTorch's that ours stand in for.
STAND_INS = {
    "tensor": ("torch/extension.h torch/torch.h torch/types.h torch/all.h ATen/ATen.h ATen/Tensor.h ATen/core/Tensor.h ATen/Dispatch.h "
               "ATen/Functions.h ATen/AccumulateType.h ATen/OpMathType.h ATen/core/TensorAccessor.h c10/core/ScalarType.h "
               "c10/core/Device.h c10/core/TensorOptions.h c10/core/Scalar.h c10/util/Exception.h c10/util/ArrayRef.h c10/util/Half.h "
               "c10/util/BFloat16.h c10/util/Optional.h c10/macros/Macros.h torch/python.h pybind11/pybind11.h pybind11/stl.h").split(),
    "cuda": ("ATen/cuda/CUDAContext.h ATen/cuda/CUDAContextLight.h ATen/cuda/Exceptions.h ATen/cuda/CUDAUtils.h ATen/cuda/DeviceUtils.cuh "
             "ATen/cuda/CUDADevice.h ATen/cuda/EmptyTensor.h ATen/ceil_div.h c10/cuda/CUDAStream.h c10/cuda/CUDAGuard.h c10/cuda/CUDAException.h "
             "c10/cuda/CUDAFunctions.h c10/cuda/CUDAMacros.h torch/cuda.h").split()}

# What PyTorch gives nvcc, and the arguments of load_inline that change nothing here.
NVCC_FLAGS = ["-D__CUDA_NO_HALF_OPERATORS__", "-D__CUDA_NO_HALF_CONVERSIONS__", "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
              "-D__CUDA_NO_HALF2_OPERATORS__", "--expt-relaxed-constexpr"]
# Headers that take long, and are parsed where the sources say so.
NAMED = {"HALVES": r"half|bfloat16", "CUBLAS": r"CUDABlas|cublas", "PYBIND": r"PYBIND11_MODULE|pybind11|\bpy::"}
NEUTRAL = {"verbose", "with_cuda", "with_pytorch_error_handling", "keep_intermediates", "use_pch", "is_python_module", "build_directory"}


class Bits(ctypes.Union):
    _fields_ = [("i", ctypes.c_int64), ("f", ctypes.c_double), ("p", ctypes.c_void_p)]


class Value(ctypes.Structure):  # of executor/recorder/inline/value.hpp, like the next two
    _anonymous_ = ("bits",)
    _fields_ = [("kind", ctypes.c_int32), ("is_tuple", ctypes.c_int32), ("count", ctypes.c_int64), ("bits", Bits), ("keyword", ctypes.c_char_p)]


class Described(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int64), ("references", ctypes.c_int64), ("data", ctypes.c_void_p), ("dim", ctypes.c_int64),
                ("sizes", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("dtype", ctypes.c_int32),
                ("device", ctypes.c_int32), ("index", ctypes.c_int32), ("element", ctypes.c_int32)]


class Host(ctypes.Structure):
    CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(Value), ctypes.c_int64, ctypes.POINTER(Value))
    RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_int64)
    GIVE = ctypes.CFUNCTYPE(None, ctypes.POINTER(Value))
    FAIL = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p)
    _fields_ = [("call", CALL), ("release", RELEASE), ("give", GIVE), ("fail", FAIL)]


class Bridge:
    """PyTorch as compiled code finds it, and compiled functions as Python does."""

    def __init__(self, torch):
        self.torch, self.tensors, self.count, self.thread = torch, {}, 0, threading.local()
        self.dtypes = {getattr(torch, name): code for code, name in DTYPES.items() if hasattr(torch, name)}
        self.codes = {code: dtype for dtype, code in self.dtypes.items()}
        self.host = Host(Host.CALL(self.on_call), Host.RELEASE(self.on_release), Host.GIVE(self.on_give), Host.FAIL(self.on_fail))

    # -- values --

    def describe(self, tensor):
        """What compiled code may read of a tensor; both stay until it has no object for it any more."""
        device, shape, strides = tensor.device, tuple(tensor.shape), tuple(tensor.stride())
        if device.type not in DEVICES or tensor.dtype not in self.dtypes:
            raise TypeError(f"a tensor of {tensor.dtype} on {device} cannot be given to functions in C++")
        self.count += 1
        array = ctypes.c_int64 * max(1, len(shape))
        described = Described(self.count, 0, tensor.data_ptr(), len(shape), array(*shape), array(*strides), self.dtypes[tensor.dtype],
                              DEVICES.index(device.type), -1 if device.index is None else device.index, tensor.element_size())
        self.tensors[self.count] = (tensor, described)
        return described

    def fill(self, value, thing, keep):
        """Makes a value of an object of Python's. keep: a list that must live as long as the value."""
        if thing is None:
            value.kind = NONE
        elif isinstance(thing, bool):
            value.kind, value.i = BOOL, thing
        elif isinstance(thing, int):
            if not -(1 << 63) <= thing < 1 << 63:
                raise TypeError(f"{thing} is too large for an integer of C++")
            value.kind, value.i = INT, thing
        elif isinstance(thing, float):
            value.kind, value.f = FLOAT, thing
        elif isinstance(thing, self.torch.Tensor):
            described = self.describe(thing)
            keep.append(described)
            value.kind, value.p = TENSOR, ctypes.addressof(described)
        elif isinstance(thing, str):
            text = thing.encode("utf-8", "surrogateescape")
            data = ctypes.create_string_buffer(text)
            keep.append(data)
            value.kind, value.count, value.p = TEXT, len(text), ctypes.addressof(data)
        elif isinstance(thing, (list, tuple)):
            parts = (Value * max(1, len(thing)))()
            keep.append(parts)
            for part, each in zip(parts, thing):
                self.fill(part, each, keep)
            value.kind, value.count, value.p = LIST, len(thing), ctypes.addressof(parts)
        elif isinstance(thing, self.torch.dtype):
            if thing not in self.dtypes:
                raise TypeError(f"{thing} cannot be given to functions in C++")
            value.kind, value.i = DTYPE, self.dtypes[thing]
        elif isinstance(thing, self.torch.device):
            value.kind, value.count, value.i = DEVICE, DEVICES.index(thing.type), -1 if thing.index is None else thing.index
        elif hasattr(type(thing), "__index__"):
            self.fill(value, thing.__index__(), keep)
        elif hasattr(type(thing), "__float__"):
            self.fill(value, float(thing), keep)
        else:
            raise TypeError(f"an object of type {type(thing).__name__} cannot be given to functions in C++")

    def thing(self, value):
        """The object of Python's that a value stands for."""
        kind = value.kind
        if kind in (BOOL, INT, FLOAT):
            return value.f if kind == FLOAT else bool(value.i) if kind == BOOL else value.i
        if kind == TEXT:
            return ctypes.string_at(value.p, value.count).decode("utf-8", "surrogateescape")
        if kind == TENSOR:
            return self.tensors[Described.from_address(value.p).id][0]
        if kind == LIST:
            parts = (Value * value.count).from_address(value.p) if value.count else ()
            return (tuple if value.is_tuple else list)(self.thing(each) for each in parts)
        if kind == INTS:
            return list((ctypes.c_int64 * value.count).from_address(value.p)) if value.count else []
        if kind == TENSORS:
            return [self.tensors[Described.from_address(at).id][0] for at in (ctypes.c_int64 * value.count).from_address(value.p)] if value.count else []
        if kind == DTYPE:
            return self.codes[value.i]
        if kind == DEVICE:
            name = DEVICES[value.count]
            return self.torch.device(name) if value.i < 0 else self.torch.device(name, value.i)
        return getattr(self.torch, FORMATS[value.i]) if kind == FORMAT else None

    # -- what compiled code calls --

    def operation(self, name, arguments):
        if name == "stream":
            device = arguments.pop()
            return lambda: self.torch.cuda.current_stream(*([device] if device >= 0 else [])).cuda_stream
        if name.startswith("."):
            found = getattr(arguments.pop(0), name[1:])
            return found if callable(found) else lambda: found
        found = self.torch
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def drop(self, kept):
        """Forgets tensors that no object of C++ has been made for, or none is there any more."""
        for each in kept:
            if isinstance(each, Described) and each.references == 0:
                self.tensors.pop(each.id, None)

    def on_call(self, name, values, count, ret):
        self.drop(self.thread.__dict__.get("keep", []))
        keep = self.thread.keep = []
        try:
            arguments = [self.thing(values[i]) for i in range(count) if not values[i].keyword]
            named = {values[i].keyword.decode(): self.thing(values[i]) for i in range(count) if values[i].keyword}
            self.fill(ret[0], self.operation(name.decode(), arguments)(*arguments, **named), keep)
            return 0
        except BaseException as error:  # compiled code is in between; call() raises it again
            self.thread.raised = error
            self.fill(ret[0], f"{type(error).__name__}: {error}", keep)
            return 1

    def on_release(self, number):
        self.tensors.pop(number, None)

    def on_give(self, value):
        self.thread.given = self.thing(value[0])

    def on_fail(self, kind, text):
        kinds = {"IndexError": IndexError, "ValueError": ValueError, "TypeError": TypeError, "NotImplementedError": NotImplementedError}
        self.thread.raised = kinds.get(kind.decode(), RuntimeError)(text.decode("utf-8", "replace"))

    # -- what Python calls --

    def function(self, entry, name, doc, takes_names):
        def call(*arguments, **named):
            if named and not takes_names:
                raise TypeError(f"{name}() takes no argument by its name")
            keep, values = [], (Value * max(1, len(arguments) + len(named)))()
            try:
                for value, argument in zip(values, [*arguments, *named.values()]):
                    self.fill(value, argument, keep)
                for value, keyword in zip(values[len(arguments):], named):
                    keep.append(keyword.encode())
                    value.keyword = keep[-1]
                if entry(values, len(arguments) + len(named)) != 0:
                    raise self.thread.__dict__.pop("raised")
                return self.thread.__dict__.pop("given")
            finally:
                self.drop(keep + self.thread.__dict__.pop("keep", []))

        call.__name__ = call.__qualname__ = name
        call.__doc__ = doc
        return call

    def module(self, path, name, functions):
        """functions: names, and what they are for; none: the library says which."""
        library = ctypes.CDLL(path)
        library.kcast_open(ctypes.byref(self.host))
        made = types.ModuleType(name)
        made.__file__ = path
        for number, (function, doc) in enumerate(functions.items()):
            entry = getattr(library, f"kcast_function_{number}")
            entry.argtypes, entry.restype = [ctypes.POINTER(Value), ctypes.c_int64], ctypes.c_int
            setattr(made, function, self.function(entry, function, doc, False))
        if not functions:
            self.bound(library, made)
        return made

    def bound(self, library, made):
        """Adds what PYBIND11_MODULE defines."""
        count, called, doc, entry = (getattr(library, f"kcast_bound_{what}") for what in ("count", "name", "doc", "call"))
        count.restype, called.restype, doc.restype, entry.restype = ctypes.c_int64, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int
        called.argtypes = doc.argtypes = [ctypes.c_int64]
        entry.argtypes = [ctypes.c_int64, ctypes.POINTER(Value), ctypes.c_int64]
        library.kcast_bind()
        for number in range(count()):
            function = called(number).decode()
            setattr(made, function, self.function(functools.partial(entry, number), function, doc(number).decode("utf-8", "replace"), True))


class Unfit(Exception):
    """Our headers do not do for these sources."""


def as_list(given):
    return [] if given is None else [given] if isinstance(given, str) else list(given)


def first_error(text):
    """The line of a compiler's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if re.search(r"\berror\b|undefined (symbol|reference)", line) and not line.startswith(("FAILED", "ninja:"))]
    return found[0] if found else ([""] + [line for line in lines if line])[-1] or "no reason is known"


def calls(functions):
    """The lines that make functions callable, behind their declarations."""
    return ['#include "kcast/tensor.hpp"', '#include "kcast/bind.hpp"', "KCAST_OPEN"] + [f"KCAST_FUNCTION({number}, {name})" for number, name in enumerate(functions)]


def architectures(target):
    """The flags for what TORCH_CUDA_ARCH_LIST names for a target, as for PyTorch; for the target itself where it names nothing."""
    listed = os.environ.get("TORCH_CUDA_ARCH_LIST", "").replace(";", " ").split()
    found = [re.fullmatch(r"(\d+)\.(\d)([af]?)(\+PTX)?", each) for each in listed]
    if not listed or listed == ["native"]:
        return [f"-arch={target}"]
    if None in found:
        raise Unfit(f"TORCH_CUDA_ARCH_LIST names {listed[found.index(None)]}")
    flags = []
    fitting = [each for each in found if f"sm_{each[1]}{each[2]}" == target]  # what is for other devices would never run
    for each in fitting or found:
        number = "".join(each.group(1, 2, 3))
        flags += [f"-gencode=arch=compute_{number},code={kind}_{number}" for kind in (("sm", "compute") if each[4] else ("sm",))]
    return flags


def unconditional(text):
    """The lines that no #if decides about, without comments."""
    depth, kept = 0, []
    for line in re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S).splitlines():
        word = re.match(r"\s*#\s*(if|endif)", line)
        depth += 0 if word is None else 1 if word[1] == "if" else -1
        kept += [line] if depth == 0 else []
    return "\n".join(kept)


def sure_error(name, cpp_sources, cuda_sources, functions, options):
    """Why load_inline cannot compile sources, whatever the headers are; None where only a compiler can say.

    load_inline binds what functions= names behind the sources in C++, by a PYBIND11_MODULE of its own. Headers of the
    candidate's own, and flags that bring names, may declare what those sources do not.
    """
    module = rf"\bPYBIND11_MODULE\s*\(\s*(TORCH_EXTENSION_NAME|{re.escape(name)})\s*,"
    if functions and any(re.search(module, unconditional(source)) for source in cpp_sources + cuda_sources):
        return "functions= has them bound, and PYBIND11_MODULE in the sources binds them again"
    cpp = "\n".join(cpp_sources)
    undeclared = [each for each in functions if each.isidentifier() and not re.search(rf"\b{each}\b", cpp)]
    elsewhere = options.get("extra_include_paths") or re.search(r"-[IDi]", " ".join(as_list(options.get("extra_cflags"))))
    if undeclared and not elsewhere and not re.search(r'##|#\s*include\s*"', cpp):
        return f"functions= names {undeclared[0]}, which none of cpp_sources declares"
    return None


class Inline:
    """load_inline and load for candidates. notes: how each of them was compiled, and why."""

    def __init__(self, torch, target):
        self.torch, self.target, self.notes, self.made, self.bridge = torch, target, [], {}, Bridge(torch)
        self.folder, self.number, self.real = os.path.join(os.getcwd(), "load_inline"), itertools.count(), {}

    def install(self):
        from torch.utils import cpp_extension

        for ours in (self.load_inline, self.load):
            self.real[ours.__name__] = getattr(cpp_extension, ours.__name__)
            setattr(cpp_extension, ours.__name__, ours)

    def note(self, what, begin, words):
        self.notes.append(f"{what}: {words}, {time.monotonic() - begin:.1f} s")

    def load_inline(self, name, cpp_sources, cuda_sources=None, functions=None, *rest, **options):
        cpp, cuda = as_list(cpp_sources), as_list(cuda_sources)
        wrong = sure_error(name, cpp, cuda, as_list(functions), options)
        if wrong:
            self.note(f"load_inline of {name}", time.monotonic(), f"does not compile, with PyTorch's own headers or without them: {wrong}")
            raise RuntimeError(f"Error building extension '{name}': {wrong}")
        return self.either("load_inline", name, lambda: self.compile_texts(name, cpp, cuda, functions, rest, options),
                           lambda real: real(name, cpp_sources, cuda_sources, functions, *rest, **options))

    def load(self, name, sources, *rest, **options):
        return self.either("load", name, lambda: self.compile_files(name, as_list(sources), rest, options), lambda real: real(name, sources, *rest, **options))

    def either(self, function, name, ours, theirs):
        """Does it our way, or PyTorch's where ours does not do."""
        what, begin = f"{function} of {name}", time.monotonic()
        try:
            made = ours()
            self.note(what, begin, "compiled without PyTorch's headers")
            return made
        except (Unfit, OSError, TypeError, ValueError) as error:
            reason = " ".join(str(error).split())[:600]
        self.note(what, begin, f"PyTorch's own headers are needed, because without them: {reason}")
        begin = time.monotonic()
        try:
            made = theirs(self.real[function])
        except Exception as error:
            self.note(what, begin, f"does not compile with PyTorch's own headers\n{error}\n")
            if isinstance(error, RuntimeError) and len(str(error)) > 400:  # of ninja: commands, and among them what is wrong
                raise RuntimeError(f"{str(error).split(':')[0]}: {first_error(str(error))}") from error
            raise
        self.note(what, begin, "compiled with PyTorch's own headers")
        return made

    # -- compiling --

    def compile_texts(self, name, cpp_sources, cuda_sources, functions, rest, options):
        """Compiles what load_inline is given: two files, of which the one in C++ ends with what makes functions callable."""
        functions = {each: "" for each in as_list(functions)} if not isinstance(functions, dict) else dict(functions)
        options = dict(options)
        implicit = [["#include <torch/extension.h>"], ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"]]
        if options.pop("no_implicit_headers", False):
            implicit = [[], []]
        files = {"main.cpp": "\n".join(implicit[0] + cpp_sources + calls(functions)) + "\n"}
        if cuda_sources:
            files["cuda.cu"] = "\n".join(implicit[1] + cuda_sources) + "\n"
        return self.compile(name, files, [], functions, rest, options)

    def compile_files(self, name, sources, rest, options):
        """Compiles what load is given: files, each by itself, of which one names its functions by PYBIND11_MODULE."""
        return self.compile(name, {"main.cpp": "\n".join(calls({})) + "\n"}, [os.path.abspath(each) for each in sources], {}, rest, options)

    def compile(self, name, files, paths, functions, rest, options):
        """Compiles files, their texts by their names, together with those that are at paths."""
        texts = list(files.values())
        for path in paths:
            with open(path, encoding="utf-8") as file:
                texts.append(file.read())
        text = "\n".join(texts)
        unknown = {key for key, value in options.items() if value} - NEUTRAL - {
            "extra_cflags", "extra_cuda_cflags", "extra_ldflags", "extra_include_paths"}
        if not os.path.isdir(options.get("build_directory") or "."):
            unknown.add("build_directory")
        if rest or unknown or not options.get("is_python_module", True):
            raise Unfit(f"it is given {', '.join(sorted(unknown)) or ('more arguments without a name' if rest else 'is_python_module=False')}")
        if bool(functions) == ("PYBIND11_MODULE" in text) or "TORCH_LIBRARY" in text:
            raise Unfit("the sources bind their functions themselves, and not by PYBIND11_MODULE alone")
        key = repr((name, texts, paths, functions, sorted(options.items(), key=str), os.environ.get("TORCH_CUDA_ARCH_LIST")))
        if key not in self.made:
            try:
                folder = self.write(files)
                library = self.build(name, folder, [*files, *paths], text, options)
                self.made[key] = self.bridge.module(library, name, functions)
            except (Unfit, OSError) as error:  # a candidate that compiles at each call waits for it once
                self.made[key] = error
        if isinstance(self.made[key], Exception):
            raise self.made[key]
        return self.made[key]

    def write(self, files):
        """Writes the headers, and the files into a new folder, which it returns."""
        folder = os.path.join(self.folder, str(next(self.number)))
        for name, text in HEADERS.items():
            self.put("include/kcast/" + name, text)
        for name, paths in STAND_INS.items():
            for path in paths:
                self.put("include/" + path, f'#include "kcast/{name}.hpp"\n')
        for name, text in files.items():
            self.put(os.path.join(folder, name), text)
        return folder

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def build(self, name, folder, sources, text, options):
        """Compiles the sources side by side, and links them. Returns the library's path."""
        nvcc = shutil.which("nvcc")
        if nvcc is None:
            raise Unfit("this host has no nvcc")
        home = os.path.dirname(os.path.dirname(os.path.realpath(nvcc)))

        def flags(of):  # which load_inline gives to a shell
            return shlex.split(" ".join(as_list(options.get(of))))

        def standard(given):
            return [] if any(each.startswith(("-std", "--std")) for each in given) else ["-std=c++17"]

        common = [f"-I{self.folder}/include", *[f"-I{os.path.abspath(each)}" for each in as_list(options.get("extra_include_paths")) if each],
                  f"-DTORCH_EXTENSION_NAME={name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
        common += [f"-DKCAST_{what}" for what, words in NAMED.items() if re.search(words, text)]
        own = {".cpp": flags("extra_cflags"), ".cu": flags("extra_cuda_cflags")}
        has_cuda, is_given = any(each.endswith(".cu") for each in sources), any("arch" in each for each in own[".cu"])
        arch = architectures(self.target) if has_cuda and not is_given else []
        compiler = {".cpp": ["g++", *common, f"-I{home}/include", "-fPIC", "-fvisibility=hidden"],
                    ".cu": [nvcc, *common, *NVCC_FLAGS, "-O3", *arch, "-Xcompiler", "-fPIC,-fvisibility=hidden"]}
        commands, objects = [], []
        for number, source in enumerate(sources):
            suffix = os.path.splitext(source)[1]
            suffix = ".cpp" if suffix in (".cc", ".cxx") else suffix
            if suffix not in compiler:
                raise Unfit(f"{source} is neither C++ nor CUDA")
            objects.append(f"{number}.o")
            commands.append([*compiler[suffix], *standard(own[suffix]), *own[suffix], "-c", source, "-o", objects[-1]])
        self.start(folder, commands)
        libraries = [f"{home}/lib64", f"{home}/lib"]
        self.start(folder, [["g++", "-shared", *objects, "-o", "made.so", *[f"-L{each}" for each in libraries],
                             *[f"-Wl,-rpath,{each}" for each in libraries], *flags("extra_ldflags"), "-lcudart"]])
        return os.path.join(folder, "made.so")

    @staticmethod
    def start(folder, commands):
        """Runs commands side by side, and ends all when one fails."""
        running, failed = {}, None
        for number, command in enumerate(commands):
            path = os.path.join(folder, f"{number}.log")
            with open(path, "wb") as log:
                running[subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)] = path
        while running and failed is None:
            time.sleep(0.01)
            for process in [each for each in running if each.poll() is not None]:
                path = running.pop(process)
                if process.returncode != 0:
                    with open(path, encoding="utf-8", errors="replace") as log:
                        output = log.read()
                    failed = first_error(output) if output.strip() else f"the compiler has ended with {process.returncode}"
        for process in running:
            os.killpg(process.pid, signal.SIGKILL)  # with what it has started
            process.wait()
        if failed is not None:
            raise Unfit(failed)
