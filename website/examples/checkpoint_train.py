"""A training in miniature that goes on where it was: it needs nothing but Python.

It saves every few steps, and when it is told to stop (SIGUSR1 or SIGTERM), or
that its time will be over (SIGUSR2). Each
checkpoint is registered by one line in the task's inbox; the next attempt finds
the newest in NOMADLIKE_CHECKPOINT.
"""

import json
import os
import signal
import sys
import time

directory, last = sys.argv[1], int(sys.argv[2])
os.makedirs(directory, exist_ok=True)

state = {"step": 0, "weight": 1.0}
if os.environ.get("NOMADLIKE_CHECKPOINT"):
    with open(os.environ["NOMADLIKE_CHECKPOINT"]) as file:
        state = json.load(file)
print("begin at step", state["step"], flush=True)


def save():
    path = os.path.join(directory, "step-%d.json" % state["step"])
    with open(path + ".tmp", "w") as file:
        json.dump(state, file)
    os.rename(path + ".tmp", path)
    inbox = os.environ.get("NOMADLIKE_CHECKPOINT_INBOX")
    if inbox:
        with open(os.path.join(inbox, "step-%d" % state["step"]), "w") as file:
            file.write("%s\nstep %d\n" % (path, state["step"]))


def leave(*_):
    save()
    sys.exit(1)


signal.signal(signal.SIGUSR1, leave)
signal.signal(signal.SIGTERM, leave)
signal.signal(signal.SIGUSR2, lambda *_: save())
while state["step"] < last:
    state["weight"] -= 0.01 * state["weight"]
    state["step"] += 1
    time.sleep(0.01)
    if state["step"] % 20 == 0:
        print("step %d loss %.6f" % (state["step"], state["weight"]), flush=True)
        save()
    if state["step"] == last // 2 and os.environ["NOMADLIKE_ATTEMPT"] == "1":
        sys.exit("an accident at step %d" % state["step"])
print("done at step %d, loss %.6f" % (state["step"], state["weight"]), flush=True)
