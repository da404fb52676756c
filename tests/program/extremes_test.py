"""Engines against each other at random extreme points.

Usage: extremes_test.py PATH_TO_HEADFLOW [POINTS [SEED]].

With a number of points it prints a table of what became of each (docs/performance.md has one), and
fails if there is a wrong or a non-finite result. Without, a few points are tried as a test;
HEADFLOW_TEST_EFFORT=full takes 300.

A point: an activation, one to four heads, a prior, and magnitudes that are uniform in the
logarithm: L to 10^6, nu to 10^6, |m| and |b| to 10^3, |R| to 10^2. `factorised` is asked for 1e-6.
Every answer, met or not, and that of `auto`, is compared with qmc or mc: loss and gradient must agree
within its errors, five standard errors and what a sample of N points cannot see, 3/N of the largest
value. What disagrees is looked at again with other samples; a false alarm needs two independent
deviations of five standard errors (of 15 degrees of freedom): below 1e-7 for each number.
"""

import concurrent.futures
import json
import math
import os
import random
import resource
import signal
import subprocess
import sys
import time
import unittest

PROGRAM = sys.argv[1]
with open(PROGRAM, "rb") as program:
    SANITIZED = b"__asan_init" in program.read()
SECONDS = 120 if SANITIZED else 12  # of one core
MEMORY = resource.RLIM_INFINITY if SANITIZED else 4 << 30  # the sanitizer reserves terabytes
SCORES = 4e7  # of all samples of the check: a second or so


def matrix(rows):
    return ";".join(",".join(f"{x:.6g}" for x in row) for row in rows)


def log_uniform(rng, low, high):
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def signed(rng, size):
    return size * rng.uniform(-1, 1)


def random_prior(rng):
    """Flags, number of features, and how large theta may be, roughly."""
    kind = rng.choice(["flipping", "flipping3", "gaussian", "gaussian1", "discrete", "mixture"])
    nu = log_uniform(rng, 1e-2, 1e6)
    root = math.sqrt(nu)
    if kind == "flipping":
        other = rng.choice([0, log_uniform(rng, 1e-2, 1e6)])
        size = math.sqrt(max(nu, other))
        return ["--prior", "flipping", "--nu", f"{nu:.6g},{other:.6g}"], 2, size
    if kind == "flipping3":
        return ["--prior", "flipping", "--nu", f"{nu:.6g}"], 3, root
    if kind == "gaussian":
        other = log_uniform(rng, 1e-2, 1e6)
        return ["--prior", "gaussian", "--nu", f"{nu:.6g},{other:.6g}"], 2, 5 * math.sqrt(max(nu, other))
    if kind == "gaussian1":
        return ["--prior", "gaussian", "--nu", f"{nu:.6g}"], 1, 5 * root
    if kind == "discrete":
        points = [[signed(rng, root) for _ in range(2)] for _ in range(3)]
        return ["--prior", "discrete", "--points", matrix(points)], 2, root
    means = [[signed(rng, root) for _ in range(2)] for _ in range(2)]
    variance = log_uniform(rng, 1e-2, 1e2)
    covariances = [[variance, 0], [0, 1], [0, 0], [0, 0]]
    flags = ["--prior", "mixture", "--means", matrix(means), "--covariances", matrix(covariances)]
    return flags, 2, root + 5 * math.sqrt(max(variance, 1))


def random_point(seed):
    """Flags of `loss`, and what the check of it needs to know."""
    rng = random.Random(seed)
    activation = rng.choice(["softmax", "softmax-1", "b-softmax"])
    prior, features, theta = random_prior(rng)
    heads = rng.randint(1, 4)
    tokens = int(log_uniform(rng, 1, 1e6))
    m_size, r_size = log_uniform(rng, 1e-2, 1e3), rng.choice([0, log_uniform(rng, 1e-3, 1e2)])
    m = [[signed(rng, m_size) for _ in range(features)] for _ in range(heads)]
    R = [[signed(rng, r_size) for _ in range(heads)] for _ in range(heads)]
    common, b_size = signed(rng, log_uniform(rng, 1e-2, 1e3)), log_uniform(rng, 1e-2, 1e3)
    b = [[common + signed(rng, b_size) for _ in range(heads)]]
    v = log_uniform(rng, 0.1, 10) if activation == "softmax-1" else 1.0
    flags = ["--activation", activation, "--tokens", tokens, "--heads", heads, "--features", features]
    flags += [*prior, f"--m={matrix(m)}", f"--R={matrix(R)}", f"--b={matrix(b)}", "--v", f"{v:.6g}"]
    flags = [f if not f.startswith("--means") else f for f in map(str, flags)]
    largest = (1 + v) ** 2 * (6 + theta)  # of a sample's gradient; of its loss it is generous
    return flags, tokens * heads, largest


def run(flags, *more):
    """JSON, or a word for why there is none."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))

    join = []
    for flag in flags:  # --points -1,2 would be read as a flag
        if join and join[-1] in ("--points", "--means", "--covariances"):
            join[-1] += "=" + flag
        else:
            join.append(flag)
    command = [PROGRAM, "loss", *join, *map(str, more), "--threads", "1", "--json", "--quiet"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20 * SECONDS, preexec_fn=limit)
    except subprocess.TimeoutExpired:
        return "no answer"
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "no answer"
    if done.returncode == 2:
        return "refused"
    if done.returncode != 0:
        return "memory" if "bad_alloc" in done.stderr or "memory" in done.stderr else "crash"
    out = json.loads(done.stdout)
    return out if all(math.isfinite(x) for x, _ in numbers(out)) else "not finite"


def numbers(out):
    """(value, error) of the loss and of each entry of the gradient."""
    def flat(x):
        if isinstance(x, list):
            return [z for y in x for z in flat(y)]
        return [math.nan if x is None else x]

    pairs = list(zip(flat(out["loss"]), flat(out["loss_error"])))
    for part in out:
        if part.startswith("grad_") and not part.endswith("_error"):
            pairs += zip(flat(out[part]), flat(out[part + "_error"]))
    return pairs


def agree(answer, sampled, largest):
    """Within the errors that both report; of samples five, and what N of them cannot see."""
    counts = [1 if answer["engine"] == "factorised" else 5, 5]
    unseen = sum(3 * largest / out["engine_samples"] for out in (answer, sampled) if out["engine"] != "factorised")
    return all(
        abs(x - y) <= counts[0] * dx + counts[1] * dy + unseen
        for (x, dx), (y, dy) in zip(numbers(answer), numbers(sampled))
    )


def check(answer, seed, flags, scores, largest):
    """Against independent samples; what disagrees is looked at again with others."""
    samples = max(256, min(65536, int(SCORES / scores)))
    name = "qmc" if scores < 20000 else "mc"
    for attempt in (1, 2):
        sampled = run(flags, "--engine", name, "--samples", samples * attempt**2, "--seed", seed + attempt)
        if isinstance(sampled, str):
            return "no check: " + sampled
        if agree(answer, sampled, largest):
            return "within its errors"
    return "WRONG"


def compare(seed):
    """What became of a point: of `factorised`, of `auto`, and of each answer's comparison with samples."""
    flags, scores, largest = random_point(seed)
    out = []
    for engine in (["--engine", "factorised"], ["--seed", seed]):
        answer = run(flags, *engine)
        if isinstance(answer, str):
            out += [answer, ""]
            continue
        met = "tolerance met" if answer["tolerance_met"] else "tolerance not met"
        same = out and out[0] == met and answer["engine"] == "factorised"
        out += [met, out[1] if same else check(answer, seed, flags, scores, largest)]
    return tuple(out)


BAD = {"WRONG", "not finite", "memory", "crash"}


def table(points, seed, workers):
    counts = {}
    bad = []
    begin = time.time()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for i, (exact, exact_check, auto, auto_check) in enumerate(pool.map(compare, range(seed, seed + points))):
            for key in (("factorised", exact, exact_check), ("auto", auto, auto_check)):
                counts[key] = counts.get(key, 0) + 1
            if {exact, exact_check, auto, auto_check} & (BAD | {"no answer"}):
                bad.append((seed + i, exact, exact_check, auto, auto_check))
    lines = [f"{points} points from seed {seed}, {time.time() - begin:.0f} s"]
    lines += [f"{a:11} {b:18} {c:20} {n}" for (a, b, c), n in sorted(counts.items())]
    lines += [f"seed {s}: {' | '.join(what)}" for s, *what in bad]
    return "\n".join(lines), bad


class Extremes(unittest.TestCase):
    def test_no_engine_is_wrong(self):
        full = os.environ.get("HEADFLOW_TEST_EFFORT") == "full"
        # Without the full effort the seeds of points that are answered at once.
        text, bad = table(300, 1, 2) if full else table(12, 1, 2)
        wrong = [b for b in bad if BAD & set(b)]
        self.assertFalse(wrong, text)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        text, bad = table(int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1, 2)
        print(text)
        sys.exit(any(BAD & set(b) for b in bad))
    unittest.main(argv=sys.argv[:1])
