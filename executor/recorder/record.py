

# ---- recording a candidate; the last but one part of the script ----

def take_turn(turn):
    """Waits until nobody else makes a context, and not for ever: one that cannot be made must not keep others from theirs."""
    for _ in range(TURN_TRIES):
        try:
            fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(TURN_PAUSE)


class Recorder:
    def __init__(self, request, began, turn=-1, shared=-1):
        """began is called before the first code of the candidate's runs. turn is locked while a context is made, and closed then.
        shared: the executor's memory for the tensors; a candidate that has it has the GPU too, so that it waits for no turn."""
        import torch

        self.torch, self.request, self.driver, self.began = torch, request, Driver(), began
        self.used, self.contents, self.cases, self.inline, self.recording = {}, {}, [], None, False
        self.base, self.file = request["base"], request["file"]
        if turn >= 0:
            take_turn(turn)
        self.driver.enter_context()
        self.open_memory(shared)
        self.let_graphs_be_captured()
        self.stream = torch.cuda.Stream()
        if turn >= 0:
            os.close(turn)

    def open_memory(self, shared):
        if shared >= 0:
            begin, end = self.request["shared"]
        else:
            places = [(at, at + size) for of in self.request["cases"] for at, size in zip(of["addresses"], of["bytes"])]
            step = 2 << 20
            begin = min(at for at, _ in places) // step * step
            end = -(-max(end for _, end in places) // step) * step
        torch = self.torch
        result = self.driver.ours.kr_open(self.base, self.request["memory"], begin, end - begin, shared)
        if result != 0:
            raise Failure(f"the addresses of the recording cannot be had: CUDA error {result}")
        allocator = torch.cuda.memory.CUDAPluggableAllocator(self.request["library"], "kr_malloc", "kr_free")
        torch.cuda.memory.change_current_allocator(allocator)

    def let_graphs_be_captured(self):
        """Has a graph that is replayed while another is captured put in its place there. Neither PyTorch nor the driver would launch it."""
        made, torch, driver = self.torch.cuda.CUDAGraph, self.torch, self.driver
        init, replay = made.__init__, made.replay

        def init_and_keep(graph, keep_graph=False):
            init(graph, True)

        def replay_or_add(graph):
            if not self.recording and not torch.cuda.is_current_stream_capturing():
                replay(graph)
                return
            driver.add_to_capture(graph.raw_cuda_graph(), torch.cuda.current_stream().cuda_stream or self.stream.cuda_stream)

        made.__init__, made.replay = init_and_keep, replay_or_add

    def load(self):
        if self.request["form"] == "launcher":
            return Launcher(self.request, self.began)
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(self.request["source"])
        spec = importlib.util.spec_from_file_location("candidate", self.file)
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        if "cpp_extension" in self.request["source"]:
            self.inline = Inline(self.torch, self.request["target"])
            self.inline.install()
        if self.request["role"] == "reference":
            self.torch.set_default_dtype(self.torch.float64)  # so that what it makes itself is in double precision, too
        self.began()
        spec.loader.exec_module(module)
        return module

    def tensors_of(self, of):
        torch, made = self.torch, []
        for described, shape, address in zip(self.request["tensors"], of["shapes"], of["addresses"]):
            dtype = torch_dtype(torch, described["dtype"])
            tensor = make_tensor(torch, self.driver, dtype, shape, address)
            made.append(tensor)
        for tensor, described in zip(made, self.request["tensors"]):
            if described["direction"] == "out":
                tensor.zero_()
            else:
                fill_tensor(torch, tensor, described["values"])
        torch.cuda.synchronize()
        self.updated = {i: self.driver.read(made[i].data_ptr(), self.size(made[i]))
                        for i, of in enumerate(self.request["tensors"]) if of["direction"] == "inout"}
        return made

    @staticmethod
    def size(tensor):
        return tensor.numel() * tensor.element_size()

    def record_case(self, candidate, of):
        torch = self.torch
        tensors, numbers = self.tensors_of(of), of["values"]
        with torch.no_grad(), self.as_default_stream():
            with torch.cuda.stream(self.stream):
                candidate.prepare()
                for _ in range(WARM_UPS):
                    candidate.results(candidate.call(tensors, numbers), tensors)
                self.stream.synchronize()
            graph = torch.cuda.CUDAGraph(keep_graph=True)
            self.driver.ours.kr_record(1)
            self.recording = True
            try:
                with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
                    values, scales = candidate.results(candidate.call(tensors, numbers), tensors)
            except Exception as error:
                raise explain(error, self.file, True) from error
            finally:
                self.recording = False
                self.driver.ours.kr_record(0)
        torch.cuda.synchronize()
        images = self.driver.images()
        nodes = Graph(self.driver, graph.raw_cuda_graph(), images).read(self.used)
        if not nodes:
            raise Refusal(REJECTED, "it launches nothing")
        end, begin, at = self.driver.state()[:3]
        persistent = self.keep(graph, tensors, self.results(tensors, values, scales), end)
        blocks = [{1: self.base + 16384, 2: end - 16384, 3: True, 4: persistent}] if end > 16384 else []
        if at > begin:
            blocks.append({1: self.base + begin, 2: at - begin})
        self.cases.append({1: [numbers[p["name"]] for p in self.request["params"] if p["type"] == "int"], 2: nodes, 3: blocks,
                           4: of["addresses"], 5: self.addresses(tensors, values),
                           6: self.addresses(tensors, scales) if scales else None,
                           7: [struct.unpack("<Q", struct.pack("<d", numbers[p["name"]]))[0] for p in self.request["params"] if p["type"] == "f64"]})

    @staticmethod
    def addresses(tensors, given):
        return [0 if given.get(i) is None else given[i].data_ptr() for i in range(len(tensors))]

    def results(self, tensors, values, scales):
        """The tensors in which results are after a run."""
        outputs = [i for i, of in enumerate(self.request["tensors"]) if of["direction"] != "in"]
        return [tensors[i] if values.get(i) is None else values[i] for i in outputs] + list(scales.values())

    @contextlib.contextmanager
    def as_default_stream(self):
        """What is launched without a stream goes to the one that is recorded."""
        self.driver.ours.kr_stream(self.stream.cuda_stream)
        try:
            yield
        finally:
            self.driver.ours.kr_stream(None)

    def outcome(self, graph, tensors, results):
        """Runs the graph and returns its results as bytes."""
        for i, tensor in enumerate(tensors):
            if self.request["tensors"][i]["direction"] == "out":
                self.driver.clear(tensor.data_ptr(), self.size(tensor))
            elif i in self.updated:
                self.driver.write(tensor.data_ptr(), self.updated[i])
        graph.replay()
        self.torch.cuda.synchronize()
        return [self.driver.read(result.data_ptr(), self.size(result)) for result in results]

    def keep(self, graph, tensors, results, end):
        """Pieces of the memory that was there before which the result depends on.

        Each piece of memory that was allocated is cleared in turn. What changes nothing by that is not
        kept; what does is."""
        ranges = self.driver.ranges()
        saved = {begin: self.driver.read(self.base + begin, count) for begin, count in ranges}
        filled = [(begin, count) for begin, count in ranges if saved[begin].count(0) < count]
        if not filled:
            return []
        usual = self.outcome(graph, tensors, results)
        steady = usual == self.outcome(graph, tensors, results)

        def matters(some):
            for begin, _ in ranges:
                self.driver.write(self.base + begin, saved[begin])
            for begin, count in some:
                self.driver.clear(self.base + begin, count)
            return self.outcome(graph, tensors, results) != usual

        kept = filled
        if steady and not matters(filled):
            kept = []
        elif steady and len(filled) <= 256:
            kept = [each for each in filled if matters([each])]
        for begin, _ in ranges:
            self.driver.write(self.base + begin, saved[begin])
        return [piece for begin, _ in kept for piece in self.pieces(begin, saved[begin])]

    def pieces(self, begin, data):
        zero, found, at = bytes(PIECE), [], 0
        while at < len(data):
            if data[at:at + PIECE] == zero[:len(data) - at]:
                at += PIECE
                continue
            start = at
            while at < len(data) and data[at:at + PIECE] != zero[:len(data) - at]:
                at += PIECE
            content = data[start:min(at, len(data))]
            number = self.contents.setdefault(content, len(self.contents))
            found.append({1: begin - 16384 + start, 2: number})
        return found

    def message(self):
        images = self.driver.images()
        used = sorted(self.used, key=self.used.get)
        return {1: self.base, 2: [{1: ctypes.string_at(images[i].data, images[i].bytes)} for i in used],
                3: [{1: each} for each in self.contents], 4: self.cases}

    def run(self):
        try:
            kind = Reference if self.request["role"] == "reference" else Candidate
            candidate = kind(self.torch, self.request, self.load())
            for of in self.request["cases"]:
                self.record_case(candidate, of)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the candidate's, too
            if self.driver.state()[4]:
                raise Refusal(CRASH, TOO_MUCH, self.notes()) from error
            raise self.with_notes(explain(error, self.file, False)) from error
        return {3: self.message(), 5: self.notes() or None}

    def with_notes(self, error):
        if isinstance(error, Refusal):
            error.log = "\n".join(filter(None, [error.log, self.notes()]))[:60000]
        return error

    def notes(self):
        """What there is to say of how it was compiled."""
        return "\n".join(self.inline.notes if self.inline else [])[:60000]
