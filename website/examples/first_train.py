"""A first training: a small network learns to tell two spirals apart.

It uses a GPU, an NPU or the processor, whichever it finds. Data, output and
checkpoints lie where nomadlike shows them to every task. It saves every 20 epochs
and when it is told to leave (SIGUSR1 or SIGTERM), and goes on from the newest
checkpoint.
"""

import argparse
import os
import signal
import subprocess
import sys

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=200)
epochs = parser.parse_args().epochs

workspace = os.environ.get("NOMADLIKE_WORKSPACE", "/workspace")
data = os.path.join(workspace, "dataset/private/spiral/train.csv")
outputs = os.path.join(workspace, "outputs")

device = "cuda" if torch.cuda.is_available() else "cpu"
try:
    import torch_npu  # noqa: F401  (makes the device "npu")

    device = "npu" if torch.npu.is_available() else device
except ImportError:
    pass

with open(data) as file:
    table = torch.tensor([[float(word) for word in line.split(",")] for line in file])
points, labels = table[:, :2].to(device), table[:, 2].long().to(device)

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

first = 0
newest = os.environ.get("NOMADLIKE_CHECKPOINT")
if newest:
    saved = torch.load(newest, map_location=device)
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = saved["epoch"]
print("training on %s from epoch %d to %d" % (device, first, epochs), flush=True)


def save(epoch):
    path = os.path.join(outputs, "epoch-%d.pt" % epoch)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path + ".tmp")
    os.replace(path + ".tmp", path)  # a crash leaves no half a checkpoint
    subprocess.run(["nomadlike", "checkpoint", "-step", str(epoch), path], check=False)


leaving = False


def leave(*_):
    global leaving
    leaving = True


signal.signal(signal.SIGUSR1, leave)
signal.signal(signal.SIGTERM, leave)

for epoch in range(first + 1, epochs + 1):
    optimizer.zero_grad()
    guess = model(points)
    loss = nn.functional.cross_entropy(guess, labels)
    loss.backward()
    optimizer.step()
    if epoch % 5 == 0:
        accuracy = (guess.argmax(dim=1) == labels).float().mean().item()
        print("step %d loss %.4f accuracy %.4f" % (epoch, loss.item(), accuracy), flush=True)
    if epoch % 20 == 0 or leaving:
        save(epoch)
    if leaving:
        sys.exit(1)
