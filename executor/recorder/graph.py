

# ---- the CUDA driver, and graphs of launches; the second part of the script ----

class KernelParams(ctypes.Structure):  # CUDA_KERNEL_NODE_PARAMS_v2
    _fields_ = [("func", ctypes.c_void_p), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("smem", ctypes.c_uint), ("params", ctypes.POINTER(ctypes.c_void_p)),
                ("extra", ctypes.POINTER(ctypes.c_void_p)), ("kern", ctypes.c_void_p), ("context", ctypes.c_void_p)]


class FillParams(ctypes.Structure):  # CUDA_MEMSET_NODE_PARAMS
    _fields_ = [("to", ctypes.c_uint64), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint),
                ("element", ctypes.c_uint), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


class Side(ctypes.Structure):
    _fields_ = [("x", ctypes.c_size_t), ("y", ctypes.c_size_t), ("z", ctypes.c_size_t), ("lod", ctypes.c_size_t),
                ("type", ctypes.c_int), ("host", ctypes.c_void_p), ("device", ctypes.c_uint64),
                ("array", ctypes.c_void_p), ("reserved", ctypes.c_void_p), ("pitch", ctypes.c_size_t), ("height", ctypes.c_size_t)]


class CopyParams(ctypes.Structure):  # CUDA_MEMCPY3D
    _fields_ = [("src", Side), ("dst", Side), ("width", ctypes.c_size_t), ("height", ctypes.c_size_t), ("depth", ctypes.c_size_t)]


class Image(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_uint64), ("handle", ctypes.c_void_p), ("is_library", ctypes.c_int)]


class Range(ctypes.Structure):
    _fields_ = [("at", ctypes.c_uint64), ("bytes", ctypes.c_uint64), ("stays", ctypes.c_uint64)]


NODE_KERNEL, NODE_COPY, NODE_FILL, NODE_HOST, NODE_GRAPH, NODE_EMPTY = range(6)
WHAT = {NODE_HOST: "calls a function of the host", 6: "waits for an event of another stream",
        7: "records an event of another stream", 8: "signals a semaphore", 9: "waits for a semaphore", 10: "allocates memory in a graph",
        11: "frees memory in a graph", 12: "writes memory from a stream", 13: "launches depending on a value"}
NODES_MAX, AFTER_MAX = 4096, 64  # of a case, and of what a node comes after, as messages have them
KIND_KERNEL, KIND_FILL, KIND_COPY = 1, 2, 3
FLAG_COOPERATIVE, FLAG_PDL = 1, 2
ATTRIBUTE_COOPERATIVE, ATTRIBUTE_CLUSTER = 2, 4


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.ours = ctypes.CDLL(None)
        self.ours.kr_image.restype = ctypes.POINTER(Image)
        self.ours.kr_image.argtypes = [ctypes.c_size_t]
        self.ours.kr_images.restype = ctypes.c_size_t
        self.ours.kr_ranges.restype = ctypes.c_size_t
        self.ours.kr_open.argtypes = [ctypes.c_uint64] * 4 + [ctypes.c_int]
        self.ours.kr_place.argtypes = [ctypes.c_uint64]
        self.ours.kr_stream.argtypes = [ctypes.c_void_p]

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(result, ctypes.byref(text))
            raise Failure(f"{name}: {(text.value or b'?').decode()}")

    def enter_context(self):
        """Makes the GPU's primary context, which PyTorch uses as well, and enters it."""
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def add_to_capture(self, graph, stream):
        """Makes a graph the next work of what is captured on a stream."""
        status, number, into, node = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p(), ctypes.c_void_p()
        after, count, stream = ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t(), ctypes.c_void_p(stream)
        self.call("cuStreamGetCaptureInfo_v2", stream, ctypes.byref(status), ctypes.byref(number), ctypes.byref(into), ctypes.byref(after),
                  ctypes.byref(count))
        self.call("cuGraphAddChildGraphNode", ctypes.byref(node), into, after, count, ctypes.c_void_p(graph))
        self.call("cuStreamUpdateCaptureDependencies", stream, ctypes.byref(node), ctypes.c_size_t(1), ctypes.c_uint(1))

    def try_call(self, name, *arguments):
        return getattr(self.library, name)(*arguments) == 0

    def read(self, at, count):
        data = ctypes.create_string_buffer(count)
        self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(at), ctypes.c_size_t(count))
        return data.raw

    def clear(self, at, count):
        if count > 0:
            self.call("cuMemsetD8_v2", ctypes.c_uint64(at), ctypes.c_ubyte(0), ctypes.c_size_t(count))

    def write(self, at, data):
        self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(at), data, ctypes.c_size_t(len(data)))

    def images(self):
        return [self.ours.kr_image(i).contents for i in range(self.ours.kr_images())]

    def ranges(self):
        first = ctypes.POINTER(Range)()
        count = self.ours.kr_ranges(ctypes.byref(first))
        return [(first[i].at, first[i].bytes) for i in range(count)]

    def state(self):
        values = (ctypes.c_uint64 * 5)()
        self.ours.kr_state(values)
        return list(values)


class Graph:
    """What was recorded: a graph of the driver's, whose nodes may be graphs themselves."""

    def __init__(self, driver, graph, images):
        self.driver, self.graph, self.images = driver, graph, images
        self.steps = []  # nodes that are work: the node, its type, and what it comes after

    def nodes(self, graph):
        d = self.driver
        count = ctypes.c_size_t(0)
        if not d.try_call("cuGraphGetNodes", graph, None, ctypes.byref(count)) or count.value == 0:
            return []  # a graph without a node is none to PyTorch
        nodes = (ctypes.c_void_p * count.value)()
        d.call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
        return list(nodes)

    def edges(self, graph):
        d = self.driver
        count = ctypes.c_size_t(0)
        d.call("cuGraphGetEdges_v2", graph, None, None, None, ctypes.byref(count))
        if count.value == 0:
            return []
        source, target = ((ctypes.c_void_p * count.value)() for _ in range(2))
        data = (ctypes.c_uint64 * count.value)()
        d.call("cuGraphGetEdges_v2", graph, source, target, data, ctypes.byref(count))
        # The third byte of an edge's data is its type; 1: programmatic.
        return [(source[i], target[i], (data[i] >> 16 & 0xff) == 1) for i in range(count.value)]

    def order(self, graph):
        """Nodes in an order in which they may run, and the edges to each: where from, and whether programmatic."""
        nodes = self.nodes(graph)
        before = {node: [] for node in nodes}
        for source, target, programmatic in self.edges(graph) if nodes else []:
            before[target].append((source, programmatic))
        done, order = set(), []
        while len(order) < len(nodes):
            for node in nodes:
                if node not in done and all(source in done for source, _ in before[node]):
                    done.add(node)
                    order.append(node)
        return order, before

    def expand(self, graph, after):
        """Appends the work of a graph that comes after these steps. Returns what has to be waited for when it has to be.

        What is waited for are numbers of steps, with whether a kernel may begin before they have ended. A graph within
        the graph is put in its place. Nodes without work only pass on what they wait for."""
        order, before = self.order(graph)
        passed, last = {}, set(order)
        for node in order:
            comes_after = {} if before[node] else dict(after)
            for source, programmatic in before[node]:
                last.discard(source)
                for number, early in passed[source].items():
                    comes_after[number] = comes_after.get(number, True) and early and programmatic
            passed[node] = self.add(ctypes.c_void_p(node), comes_after)
        ends = {}
        for node in last:
            ends.update(passed[node])
        return ends if order else after

    def add(self, node, after):
        kind = ctypes.c_int()
        self.driver.call("cuGraphNodeGetType", node, ctypes.byref(kind))
        if kind.value == NODE_EMPTY:
            return dict.fromkeys(after, True)
        if kind.value == NODE_GRAPH:
            child = ctypes.c_void_p()
            self.driver.call("cuGraphChildGraphNodeGetGraph", node, ctypes.byref(child))
            return self.expand(child, dict.fromkeys(after, False))
        if len(self.steps) == NODES_MAX:
            raise Refusal(REJECTED, f"it launches more than {NODES_MAX} kernels, copies and fills")
        self.steps.append((node, kind.value, after))
        return {len(self.steps) - 1: True}

    def needed(self):
        """Of each step: what it comes after without what that implies, and whether it may begin before that has ended."""
        ended, found = [], []  # ended: of each step, those that have ended when it begins, a bit each
        for _, _, after in self.steps:
            implied = 0
            for number in after:
                implied |= ended[number]
            kept = sorted(number for number in after if not implied >> number & 1)
            if len(kept) > AFTER_MAX:
                raise Refusal(REJECTED, f"a launch waits for {len(kept)} others at once; it may wait for {AFTER_MAX}")
            found.append((kept, len(kept) == 1 and after[kept[0]]))
            for number, early in after.items():
                implied |= 0 if early else 1 << number
            ended.append(implied)
        return found

    def name_and_module(self, params):
        d = self.driver
        name, module = ctypes.c_char_p(), ctypes.c_void_p()
        if params.func and d.try_call("cuFuncGetName", ctypes.byref(name), ctypes.c_void_p(params.func)):
            d.try_call("cuFuncGetModule", ctypes.byref(module), ctypes.c_void_p(params.func))
        elif params.kern:
            d.call("cuKernelGetName", ctypes.byref(name), ctypes.c_void_p(params.kern))
        return name.value.decode(), module.value

    def has_kernel(self, image, name):
        d, found = self.driver, ctypes.c_void_p()
        call = "cuLibraryGetKernel" if image.is_library else "cuModuleGetFunction"
        return d.try_call(call, ctypes.byref(found), ctypes.c_void_p(image.handle), name.encode())

    def find_image(self, name, module):
        d = self.driver
        for number in reversed(range(len(self.images))):
            image = self.images[number]
            handle = ctypes.c_void_p(image.handle)
            if image.is_library:
                d.try_call("cuLibraryGetModule", ctypes.byref(handle), ctypes.c_void_p(image.handle))
            if module and handle.value == module:
                return number
        for number in reversed(range(len(self.images))):
            if self.has_kernel(self.images[number], name):
                return number
        raise Refusal(REJECTED, f"it launches {name[:100]}, whose code was given to the driver as PTX or by a way that is not recorded")

    def parameters(self, params):
        d = self.driver
        if params.params:
            packed, at, size, i = bytearray(), ctypes.c_size_t(), ctypes.c_size_t(), 0
            call, handle = ("cuFuncGetParamInfo", params.func) if params.func else ("cuKernelGetParamInfo", params.kern)
            while d.try_call(call, ctypes.c_void_p(handle), ctypes.c_size_t(i), ctypes.byref(at), ctypes.byref(size)):
                packed += bytes(at.value + size.value - len(packed))
                packed[at.value:at.value + size.value] = ctypes.string_at(params.params[i], size.value)
                i += 1
            return bytes(packed)
        pointer = size = None
        i = 0
        while params.extra and params.extra[i]:
            if params.extra[i] == 1:
                pointer = params.extra[i + 1]
            elif params.extra[i] == 2:
                size = ctypes.cast(params.extra[i + 1], ctypes.POINTER(ctypes.c_size_t))[0]
            i += 2
        return ctypes.string_at(pointer, size) if pointer and size else b""

    def attribute(self, node, which):
        value = (ctypes.c_uint * 16)()
        if not self.driver.try_call("cuGraphKernelNodeGetAttribute", node, which, value):
            return [0, 0, 0]
        return list(value)[:3]

    def kernel(self, node, used):
        params = KernelParams()
        self.driver.call("cuGraphKernelNodeGetParams_v2", node, ctypes.byref(params))
        name, module = self.name_and_module(params)
        cluster = self.attribute(node, ATTRIBUTE_CLUSTER)
        flags = FLAG_COOPERATIVE if self.attribute(node, ATTRIBUTE_COOPERATIVE)[0] else 0
        image = self.find_image(name, module)
        number = used.setdefault(image, len(used))
        return {1: KIND_KERNEL, 3: number, 4: name, 5: list(params.grid) + list(params.block) + (cluster if cluster[0] else [0, 0, 0]),
                6: params.smem, 7: flags, 8: self.parameters(params)}

    def fill(self, node):
        params = FillParams()
        self.driver.call("cuGraphMemsetNodeGetParams", node, ctypes.byref(params))
        if params.height > 1 and params.pitch != params.width * params.element:
            raise Refusal(REJECTED, "it fills memory in rows with gaps between them; fill it by a kernel")
        return {1: KIND_FILL, 9: params.to, 11: params.element * params.width * max(1, params.height), 12: params.value, 13: params.element}

    def copy(self, node):
        params = CopyParams()
        self.driver.call("cuGraphMemcpyNodeGetParams", node, ctypes.byref(params))
        rows = max(1, params.height) * max(1, params.depth)
        if params.src.type == 1 or params.dst.type == 1:
            way = "from" if params.src.type == 1 else "to"
            raise Refusal(REJECTED, f"it copies {way} memory of the host while it runs; what is recorded keeps everything on the GPU", unsealable=True)
        if params.src.array or params.dst.array or (rows > 1 and not params.src.pitch == params.dst.pitch == params.width):
            raise Refusal(REJECTED, "it copies memory in rows with gaps between them; copy it by a kernel")
        return {1: KIND_COPY, 9: params.dst.device + params.dst.x, 10: params.src.device + params.src.x, 11: params.width * rows}

    def read(self, used):
        """The work as messages. used: numbers of images in the recording by their own number."""
        self.expand(ctypes.c_void_p(self.graph), {})
        out = []
        for (node, kind, _), (after, early) in zip(self.steps, self.needed()):
            if kind == NODE_KERNEL:
                message = self.kernel(node, used)
                message[7] |= FLAG_PDL if early else 0
            elif kind == NODE_FILL:
                message = self.fill(node)
            elif kind == NODE_COPY:
                message = self.copy(node)
            else:
                raise Refusal(REJECTED, f"it {WHAT.get(kind, 'does something')} while it runs, which cannot be recorded", unsealable=True)
            message[2] = after
            out.append(message)
        return out
