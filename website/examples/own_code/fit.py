"""Fits a line, with a model and a configuration that came with it."""

import json
import sys

from nets.line import Line

with open(sys.argv[1]) as file:
    conf = json.load(file)

line = Line()
points = [(x / 10, 3 * x / 10 + 1) for x in range(10)]
for step in range(1, conf["steps"] + 1):
    loss = line.step(points, conf["rate"])
    if step % (conf["steps"] // 5) == 0:
        print(f"step={step} loss={loss:.6f}", flush=True)
print(f"y = {line.slope:.2f} x + {line.offset:.2f}")
