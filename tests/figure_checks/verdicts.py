"""Prints what was measured and what it was held against, and counts what fails."""

import numpy as np


class Verdicts:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, figure, statement, holds, measured, against):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        print(f"{'ok     ' if holds else 'FAILS  '} {figure}: {statement}: {measured}; held against {against}", flush=True)

    def control(self, figure, statement, holds, measured):
        """Wrong data, which the same check must reject."""
        self.passed, self.failed = self.passed + (not holds), self.failed + bool(holds)
        print(f"{'FAILS  ' if holds else 'control'} {figure}: {statement}: {measured}; "
              f"{'accepted, but must be rejected' if holds else 'rejected, as it must be'}", flush=True)

    def finding(self, figure, text):
        print(f"finding {figure}: {text}", flush=True)


def quantile(draw, level):
    """The value that a law exceeds with probability level; draw(generator, n) gives n numbers of it.

    A million draws with a fixed seed: at a level of 10^-4 it is known to ten per cent in the level.
    """
    return float(np.quantile(draw(np.random.default_rng(1), 10**6), 1 - level))


def f_quantile(above, below, level):
    return quantile(lambda generator, n: generator.f(above, below, n), level)


def t_quantile(freedom, level):
    """Of |t|: two-sided."""
    return quantile(lambda generator, n: np.abs(generator.standard_t(freedom, n)), level)


def numbers(values, form=".3g"):
    return " ".join(format(float(x), form) for x in np.ravel(values))
