"""What a client of nng's may do with one connection, against a kcastd whose only device is drained: pynng with contexts.
   nng_contexts.py URL PROBLEM CANDIDATE"""
import hashlib
import pathlib
import sys
import time

import msgpack
import pynng

url, problem, candidate = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])


def send(context, op, body):
    context.send(msgpack.packb({1: 1, 2: op, 4: 60000, 6: msgpack.packb(body)}))


def receive(context):
    reply = msgpack.unpackb(context.recv(), strict_map_key=False)
    if 3 in reply:
        sys.exit(f'{reply[3]}: {reply[4]}')
    return msgpack.unpackb(reply[7], strict_map_key=False) if 7 in reply else {}


def call(context, op, body):
    send(context, op, body)
    return receive(context)


# It sends its requests again: pynng looks once a second for those that are 100 ms old.
with pynng.Req0(dial=url, resend_time=100, recv_timeout=60000) as socket:
    blobs = []
    for path in (problem / 'problem.json', problem / 'reference.c', problem / 'baseline.c', candidate):
        data = path.read_bytes()
        blobs.append(hashlib.sha256(data).digest())
        call(socket, 2, {1: blobs[-1], 2: data})
    job = call(socket, 4, {1: 'contexts', 2: 'k', 3: {1: 2} | dict(enumerate(blobs, start=2))})[1]
    waiting, asking = socket.new_context(), socket.new_context()
    before = call(asking, 6, {})[10]  # requests
    start = time.monotonic()
    send(waiting, 5, {1: [job], 2: 20000})
    asked = 0
    while time.monotonic() - start < 3.5:  # the WAIT is open and was sent several times; others are answered before it
        status = call(asking, 6, {})
        asked += 1
    parked, requests = status.get(9, 0), status[10] - before
    assert parked == 1, f'{parked} WAITs were parked'
    assert requests <= asked + 1, f'{requests} requests were counted for {asked} and one WAIT'
    call(asking, 7, {1: [job]})  # CANCEL ends the job, and so the WAIT
    ended = receive(waiting)[1]
    assert ended[0][1] == job, f'the WAIT answered {ended}'
    print(f'{asked} requests were answered before the one that waited, which counted once')
