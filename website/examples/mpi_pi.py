#!/usr/bin/env python3
"""Compute pi with all ranks of an MPI world, and say which nodes took part."""
import socket

from mpi4py import MPI

STEPS = 3_000_000

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
share = sum(4.0 / (1.0 + ((i + 0.5) / STEPS) ** 2) for i in range(rank, STEPS, size)) / STEPS
pi = world.reduce(share, op=MPI.SUM, root=0)
hosts = world.gather(socket.gethostname(), root=0)
if rank == 0:
    print(f"pi is {pi:.12f} by {size} ranks on {len(set(hosts))} hosts: {', '.join(sorted(set(hosts)))}", flush=True)
