

# ---- a candidate that runs with its host code; the last but one part of the script ----

# What it is told, and that it has done it: executor/gpu/unsealed/wire.h has the same.
COMMAND, ANSWER = struct.Struct("=IIQ"), struct.Struct("=Q")
EMPTY, BEGIN, CASE, RUN = 1, 2, 3, 4
LOG_CHARACTERS = 4000


class Unsealed(Recorder):
    """Runs a candidate on tensors in memory that the executor shares.

    The executor has put the inputs there before it says RUN, and takes the outputs when it has the answer. All that is
    here runs beside the candidate's code, so nothing rests on it: what the clock shows and what is compared is the
    executor's own."""

    def __init__(self, request, shared):
        super().__init__(request, lambda: None, shared=shared)
        os.close(shared)
        self.candidate, self.made, self.tensors, self.numbers = None, {}, None, None

    def obey(self, what, number):
        if what == EMPTY:
            self.torch.empty(1, dtype=self.torch.float32, device="cuda").zero_()
            self.torch.cuda.synchronize()
        elif what == BEGIN:
            self.candidate = Candidate(self.torch, self.request, self.load())
        elif what == CASE:
            self.enter(number)
        else:
            self.once()

    def enter(self, number):
        """Goes to another case. Before its first run the candidate may compile and choose."""
        of = self.request["cases"][number]
        new = number not in self.made
        if new:
            self.made[number] = self.tensors_of(of)
            self.candidate.prepare()
        self.tensors, self.numbers = self.made[number], of["values"]
        for _ in range(WARM_UPS if new else 0):
            self.once()

    def once(self):
        results, _ = self.candidate.results(self.candidate.call(self.tensors, self.numbers), self.tensors)
        for i, result in results.items():
            if result is not None:
                self.tensors[i].view(-1).copy_(result.view(-1))
        self.torch.cuda.synchronize()

    def refusal(self, error):
        if self.driver.state()[4]:
            error = Refusal(CRASH, MEMORY)
        return explain(error, self.file, False)


def run_unsealed(request, session, shared):
    """Does what it is told until nobody is there any more, or something fails."""
    runner, message = None, None
    while message is None:
        data = session.recv(COMMAND.size)
        if len(data) < COMMAND.size:
            return
        what, number, nonce = COMMAND.unpack(data)
        try:
            runner = runner or Unsealed(request, shared)
            with runner.torch.no_grad():
                runner.obey(what, number)
        except BaseException as error:  # SystemExit and KeyboardInterrupt are the candidate's, too
            message = message_of(runner.refusal(error) if runner else error)
        out = [ANSWER.pack(nonce)]
        if message is not None:
            message[5] = message[5][-LOG_CHARACTERS:] if message.get(5) else None
            pack(message, out)
        session.send(b"".join(out))
