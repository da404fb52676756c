"""The flows of bench/flows.py: problems, one start each by a formula, time spans."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path

REFERENCES = Path(__file__).resolve().parent / "flow_references.json"  # flow_references.py
ERRORS = [1e-3, 1e-5]  # asked for, the larger one first


@dataclass
class Flow:
    name: str
    title: str
    activation: str
    prior: str
    tokens: int
    heads: int
    features: int
    nu: tuple
    time: float
    noise: float  # of m and R = identity at the start, about this large

    def start(self):
        """m and R: numbers that look like noise and that any language can repeat."""
        size = math.sqrt(2) * self.noise
        m = [[size * math.cos(1 + 5 * h * h + 7 * h * f + 11 * f * f)
              for f in range(self.features)] for h in range(self.heads)]
        R = [[(h == k) + size * math.cos(2 + 7 * h * h + 3 * h * k + 5 * k * k)
              for k in range(self.heads)] for h in range(self.heads)]
        return m, R

    def job(self, runs):
        """What a peer reads."""
        m, R = self.start()
        return json.dumps({**asdict(self), "m": m, "R": R, "runs": runs})


FLOWS = [
    Flow("fig02", "fig. 2, H = 4, softmax", "softmax", "flipping", 4, 4, 2, (2.0, 2.0), 100.0, 0.01),
    Flow("fig04", "fig. 4, softmax", "softmax", "gaussian", 5, 8, 3, (20.0, 1.0), 50.0, 0.1),
    Flow("fig04b", "fig. 4, B-softmax", "b-softmax", "gaussian", 5, 8, 3, (20.0, 1.0), 10.0, 0.1),
]


def distance(W, other):
    """Max norm of the difference of two [m R]."""
    return max(abs(x - y) for row, row2 in zip(W, other) for x, y in zip(row, row2))
