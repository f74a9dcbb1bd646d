"""Writes a small dataset: points on two spirals, one class each, as lines x,y,class."""

import math
import random

random.seed(0)
for n in range(2000):
    turn, label = random.random(), n % 2
    angle = 3 * math.pi * turn + math.pi * label
    x = turn * math.cos(angle) + random.gauss(0, 0.01)
    y = turn * math.sin(angle) + random.gauss(0, 0.01)
    print("%.4f,%.4f,%d" % (x, y, label))
