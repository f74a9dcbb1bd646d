#!/usr/bin/env python3
"""Stand in for a training program: find the other ranks the way the framework
of the job's mode would, meet them over TCP, and say who came.

It reads what JAX, TensorFlow, MindSpore, DeepSpeed and torch.distributed
document, and nothing else, so it shows whether a cluster hands out the right
names before the first gigabyte of an image is pulled.
"""
import json
import os
import socket
import sys
import time

PATIENCE = 60  # seconds until all ranks must have come


def jax():
    host, port = os.environ["JAX_COORDINATOR_ADDRESS"].rsplit(":", 1)
    return "jax", int(os.environ["JAX_PROCESS_ID"]), int(os.environ["JAX_NUM_PROCESSES"]), host, int(port)


def tensorflow():
    config = json.loads(os.environ["TF_CONFIG"])
    members = [(kind, i) for kind in ("chief", "worker") for i in range(len(config["cluster"].get(kind, [])))]
    first = members[0]
    host, port = config["cluster"][first[0]][first[1]].rsplit(":", 1)
    mine = (config["task"]["type"], int(config["task"]["index"]))
    return "tensorflow", members.index(mine), len(members), host, int(port)


def mindspore():
    table = os.environ.get("RANK_TABLE_FILE")
    if table:
        with open(table, encoding="utf-8") as file:
            if json.load(file)["status"] != "completed":
                sys.exit("the rank table is not completed")
    local = int(os.environ.get("MS_LOCAL_WORKER", "1"))
    return ("mindspore", int(os.environ["MS_NODE_RANK"]) * local, int(os.environ["MS_WORKER_NUM"]),
            os.environ["MS_SCHED_HOST"], int(os.environ["MS_SCHED_PORT"]))


def torch():
    return "torch", int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])


def place():
    for name, read in (("JAX_COORDINATOR_ADDRESS", jax), ("TF_CONFIG", tensorflow), ("MS_SCHED_HOST", mindspore), ("MASTER_ADDR", torch)):
        if name in os.environ:
            return read()
    sys.exit("no framework's environment was found")


def lead(kind, world, port):
    """Rank 0 waits until every other rank has said its number and host."""
    came = {0: socket.gethostname()}
    with socket.create_server(("", port)) as server:
        server.settimeout(PATIENCE)
        guests = []
        while len(came) < world:
            guest, _ = server.accept()
            rank, host = guest.makefile().readline().split()
            if int(rank) in came:
                sys.exit(f"rank {rank} came twice")
            came[int(rank)] = host
            guests.append(guest)
        for guest in guests:
            guest.sendall(b"all here\n")
    print(f"{kind}: {world} ranks met on {', '.join(came[rank] for rank in sorted(came))}", flush=True)


def follow(kind, rank, host, port):
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            leader = socket.create_connection((host, port), timeout=PATIENCE)
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    with leader:
        leader.sendall(f"{rank} {socket.gethostname()}\n".encode())
        if leader.makefile().readline() != "all here\n":
            sys.exit("rank 0 went away")
    print(f"{kind}: rank {rank} met rank 0 at {host}:{port}", flush=True)


def main():
    kind, rank, world, host, port = place()
    if rank == 0:
        lead(kind, world, port)
    else:
        follow(kind, rank, host, port)


if __name__ == "__main__":
    main()
