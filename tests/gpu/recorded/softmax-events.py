# Expected: faster|equivalent|slower|inconclusive
# Three streams that begin at an event and are waited for by events.
import torch

streams = [torch.cuda.Stream() for _ in range(3)]


def softmax(x, y):
    here = torch.cuda.current_stream()
    began = torch.cuda.Event()
    began.record(here)
    for stream, part, out in zip(streams, x.chunk(3), y.chunk(3)):
        stream.wait_event(began)
        with torch.cuda.stream(stream):
            out.copy_(torch.softmax(part, 1))
            done = torch.cuda.Event()
            done.record(stream)
        here.wait_event(done)
