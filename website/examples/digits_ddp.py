#!/usr/bin/env python3
"""Train a small network on handwritten digits, data-parallel over all ranks.

The data are the 1,797 images that scikit-learn ships; 297 of them, always the
same, are held out. Every rank computes gradients on its own share of each batch and
DistributedDataParallel averages them. Rank 0 writes a checkpoint after each
epoch; a new attempt of the job goes on from the newest one.

The rendezvous comes from the environment that mode "pytorch" sets:
MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE.
"""
import argparse
import datetime
import os
import time

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel

HELD_OUT = 297


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=24, help="images in a batch, over all ranks")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--timeout", type=int, default=1800, help="seconds to wait for another rank, which may have vanished")
    parser.add_argument("--checkpoints", required=True, help="directory that every node sees")
    return parser.parse_args()


def load_data():
    digits = load_digits()
    images = torch.tensor(digits.data, dtype=torch.float32) / 16.0
    labels = torch.tensor(digits.target, dtype=torch.long)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    held_out, train = order[:HELD_OUT], order[HELD_OUT:]
    return (images[train], labels[train]), (images[held_out], labels[held_out])


def resume(path, model, optimizer):
    """Load the newest checkpoint, if any, and return the next epoch."""
    if not os.path.exists(path):
        return 0
    saved = torch.load(path, map_location="cpu")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["epoch"] + 1


def save(path, model, optimizer, epoch):
    """Write the checkpoint beside its name first, so a crash leaves the old one whole."""
    partial = f"{path}.{os.getpid()}.partial"
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, partial)
    with open(partial, "rb") as written:
        os.fsync(written.fileno())
    os.replace(partial, path)


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(dim=1) == labels).float().mean().item()


def main():
    args = arguments()
    torch.set_num_threads(1)
    torch.manual_seed(7)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=args.timeout))
    rank, world = dist.get_rank(), dist.get_world_size()
    attempt = os.environ.get("NOMADLIKE_ATTEMPT", "1")

    (images, labels), held_out = load_data()
    model = nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(512, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9, weight_decay=1e-4)
    os.makedirs(args.checkpoints, exist_ok=True)
    path = os.path.join(args.checkpoints, "digits.pt")
    first = resume(path, model, optimizer)
    dist.barrier()  # every rank has read the same checkpoint before rank 0 writes the next
    if rank == 0:
        print(f"attempt {attempt}: {world} ranks, starting at epoch {first} of {args.epochs}", flush=True)
    parallel = DistributedDataParallel(model)
    loss_of = nn.CrossEntropyLoss()

    for epoch in range(first, args.epochs):
        started = time.monotonic()
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(epoch))
        share = order[rank::world]
        share = share[: len(order) // world]  # the same number of steps on every rank
        size = max(1, args.batch // world)
        total = 0.0
        for at in range(0, len(share) - size + 1, size):
            batch = share[at : at + size]
            optimizer.zero_grad()
            loss = loss_of(parallel(images[batch]), labels[batch])
            loss.backward()
            optimizer.step()
            total += loss.item() * size
        if rank == 0:
            save(path, model, optimizer, epoch)
            print(f"epoch {epoch} loss {total / len(share):.4f} "
                  f"accuracy {accuracy(model, *held_out):.4f} seconds {time.monotonic() - started:.2f}", flush=True)
        dist.barrier()

    if rank == 0:
        print(f"held-out accuracy {accuracy(model, *held_out):.4f} after {args.epochs} epochs "
              f"in attempt {attempt}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
