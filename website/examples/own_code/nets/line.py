"""A line that learns."""


class Line:
    """y = slope * x + offset"""

    def __init__(self):
        self.slope = self.offset = 0.0

    def step(self, points, rate):
        """Goes one step down the slope of the squared error, and returns that error."""
        errors = [self.slope * x + self.offset - y for x, y in points]
        self.slope -= rate * sum(2 * e * x for e, (x, _) in zip(errors, points)) / len(points)
        self.offset -= rate * sum(2 * e for e in errors) / len(points)
        return sum(e * e for e in errors) / len(points)
