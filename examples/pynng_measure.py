#!/usr/bin/env python3
"""Measures a candidate by a kcastd, and asks a kcast-worker for a forecast of it first, with nothing of kernelcast's own:
pynng carries the requests, msgpack packs them (`pip install pynng msgpack`). docs/protocol.md has the operations and the keys of
their fields.

  pynng_measure.py tcp://127.0.0.1:7410 PROBLEM CANDIDATE.c [--worker URL]
  pynng_measure.py tls+tcp://HOST:7410 PROBLEM CANDIDATE.c --credentials FOLDER --token FILE --name NAME

PROBLEM is a folder with problem.json, reference.c and baseline.c. FOLDER has ca.pem, cert.pem and key.pem, as `kcast tls init` makes
them, FILE the token that `kcast token add` prints. NAME is what the servers' certificates are for: pynng compares names alone."""
import argparse
import hashlib
import os
import pathlib
import sys
import uuid

import msgpack
import pynng

BLOB_PUT, SUBMIT, WAIT, STATUS, ACK, FORECAST = 2, 4, 5, 6, 8, 32  # operations
COMPILE, MEASURE = 1, 2  # kinds of jobs
WAIT_MS = 20000  # the longest WAIT that kcastd takes
DEADLINE_MS = 30000  # of each request; below the minute after which a REQ socket resends


class Refused(Exception):
    """A reply that says why there is none."""


class Server:
    def __init__(self, url, token=None, tls=None):
        self.token = token
        self.socket = pynng.Req0(recv_timeout=2 * DEADLINE_MS, tls_config=tls)
        self.socket.dial(url, block=True)

    def call(self, op, body):
        """Sends a request, waits for its reply and returns the reply's body."""
        request = {1: 1, 2: op, 4: DEADLINE_MS}
        if self.token:  # nng makes its connection again by itself, so each request has the token
            request[5] = self.token
        request[6] = msgpack.packb(body)  # the body comes last
        self.socket.send(msgpack.packb(request))
        reply = msgpack.unpackb(self.socket.recv(), strict_map_key=False)
        if 3 in reply:
            raise Refused(f'{reply[3]}: {reply.get(4, "")}')
        return msgpack.unpackb(reply[7], strict_map_key=False) if 7 in reply else {}


def put_blob(daemon, path):
    data = path.read_bytes()
    digest = hashlib.sha256(data).digest()
    daemon.call(BLOB_PUT, {1: digest, 2: data})
    return digest


def run_job(daemon, kind, blobs):
    """Asks for a job and waits until it has ended. Returns what is known of it, a job_info."""
    key = uuid.uuid4().hex  # asked again under the same key, this is the same job
    job = daemon.call(SUBMIT, {1: 'pynng-measure', 2: key, 3: {1: kind} | dict(enumerate(blobs, start=2))})[1]
    while True:  # one WAIT ends after WAIT_MS, with no job when it has not ended by then
        ended = daemon.call(WAIT, {1: [job], 2: WAIT_MS}).get(1, [])
        if ended:
            daemon.call(ACK, {1: [job]})  # the result has arrived, and kcastd may forget it
            return ended[0]


def forecast(daemon, worker, blobs):
    device_class = daemon.call(STATUS, {})[1][0][2]
    compiled = run_job(daemon, COMPILE, blobs).get(9, {})
    candidate = {1: 1} | ({3: compiled[5]} if 5 in compiled else {})
    answer = worker.call(FORECAST, {1: 'problem', 3: device_class, 7: [candidate]})[1][0]
    print(f'forecast: correct with probability {answer.get(2, float("nan")):.2f}')


def report(info):
    result = info.get(8, {})
    if 3 in result:
        speedup, low, high = (2 ** result[3].get(key, float('nan')) for key in (1, 2, 3))
        print(f'speedup {speedup:.3f} ({low:.3f} to {high:.3f})')
        return 0
    print(f'no speedup: {result.get(2) or info.get(7, "")}')
    return 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('daemon')
    parser.add_argument('problem', type=pathlib.Path)
    parser.add_argument('candidate', type=pathlib.Path)
    parser.add_argument('--worker')
    parser.add_argument('--credentials', type=pathlib.Path)
    parser.add_argument('--token', type=pathlib.Path)
    parser.add_argument('--name')
    given = parser.parse_args()
    tls = token = None
    if given.credentials:
        ca, cert, key = ((given.credentials / f'{name}.pem').read_text() for name in ('ca', 'cert', 'key'))
        tls = pynng.TLSConfig(pynng.TLSConfig.MODE_CLIENT, server_name=given.name, ca_string=ca, own_cert_string=cert, own_key_string=key,
                              auth_mode=pynng.TLSConfig.AUTH_MODE_REQUIRED)
    if given.token:
        token = given.token.read_text().strip()
    daemon = Server(given.daemon, token, tls)
    files = [given.problem / 'problem.json', given.problem / 'reference.c', given.problem / 'baseline.c', given.candidate]
    blobs = [put_blob(daemon, path) for path in files]
    if given.worker:
        forecast(daemon, Server(given.worker, token, tls), blobs)
    return report(run_job(daemon, MEASURE, blobs))


if __name__ == '__main__':
    try:
        status = main()
    except (Refused, OSError, pynng.NNGException) as error:
        print(f'pynng_measure.py: {error}', file=sys.stderr)
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # a thread of libnng that still works on a refused connection would find its locks gone and abort
