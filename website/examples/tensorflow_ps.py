#!/usr/bin/env python3
"""Stand in for TensorFlow's parameter server training, with nothing but TF_CONFIG.

Every parameter server holds some of the weights of a linear model. A worker
asks all servers for the weights, computes the gradient on its own examples and
sends each server its part, whenever it gets there: workers do not wait for
each other. Servers serve until they are stopped. The chief, or worker 0, tells
how good the model is when it is done.
"""
import json
import os
import random
import socket
import socketserver
import sys
import time

WEIGHTS = [3.0, -2.0, 0.5, 4.0, -1.0, 2.5]  # what training has to find
PATIENCE = 60  # seconds until a server must be there


class Serve(socketserver.StreamRequestHandler):
    """One worker's connection: a line "pull", or "push" and a gradient."""

    def handle(self):
        shard = self.server.shard
        for line in self.rfile:
            request = json.loads(line)
            if "push" in request:
                for i, step in enumerate(request["push"]):
                    shard[i] -= step
            self.wfile.write(json.dumps(shard).encode() + b"\n")


def serve(cluster, index):
    port = int(cluster["ps"][index].rsplit(":", 1)[1])
    with socketserver.ThreadingTCPServer(("", port), Serve, bind_and_activate=False) as server:
        server.allow_reuse_address, server.daemon_threads = True, True
        server.shard = [0.0] * len(WEIGHTS[index::len(cluster["ps"])])
        server.server_bind()
        server.server_activate()
        print(f"ps {index} on {socket.gethostname()} holds {len(server.shard)} weights", flush=True)
        server.serve_forever()


def connect(address):
    host, port = address.rsplit(":", 1)
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((host, int(port)), timeout=PATIENCE).makefile("rw")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def ask(server, request):
    server.write(json.dumps(request) + "\n")
    server.flush()
    answer = server.readline()
    if not answer:
        sys.exit("a parameter server went away")
    return json.loads(answer)


def whole(shards):
    weights = [0.0] * len(WEIGHTS)
    for i, shard in enumerate(shards):
        weights[i::len(shards)] = shard
    return weights


def work(cluster, number, workers, steps, pause):
    servers = [connect(address) for address in cluster["ps"]]
    chance = random.Random(number)
    rate = 0.2 / workers
    for _ in range(steps):
        weights = whole([ask(server, {"pull": True}) for server in servers])
        x = [chance.uniform(-1, 1) for _ in WEIGHTS]
        error = sum((w - t) * v for w, t, v in zip(weights, WEIGHTS, x))
        step = [rate * 2 * error * v for v in x]
        for i, server in enumerate(servers):
            ask(server, {"push": step[i::len(servers)]})
        time.sleep(pause)
    weights = whole([ask(server, {"pull": True}) for server in servers])
    distance = max(abs(w - t) for w, t in zip(weights, WEIGHTS))
    print(f"worker {number} of {workers} is done with {len(servers)} servers, error {distance:.3f}", flush=True)


def main():
    config = json.loads(os.environ["TF_CONFIG"])
    cluster, kind, index = config["cluster"], config["task"]["type"], int(config["task"]["index"])
    if kind == "ps":
        serve(cluster, index)
        return
    workers = [("chief", i) for i in range(len(cluster.get("chief", [])))] + [("worker", i) for i in range(len(cluster.get("worker", [])))]
    number = workers.index((kind, index))
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    # Some are slower than others, as machines are: servers must wait for the last.
    work(cluster, number, len(workers), steps, 0.002 * number)


if __name__ == "__main__":
    main()
