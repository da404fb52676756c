"""Whole flows over fixed samples in PyTorch: the tuned gradient, and Dormand and Prince's 5(4).

Job and output as of jax_flow.py. Written here, as Debian has no solver for PyTorch; steps are
adapted in the usual way, by the fifth root of the estimated error.
"""

import json
import math
import sys
import time

from torch_loss_gradient import CHUNK_NUMBERS, tuned
import torch

NODES = [  # rows of the Butcher table; the last is also the fifth-order solution
    [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]]
ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40]


def draw_samples(job, N, seed):
    """x = (chi*, xi), shape (N, L, F + H), theta added to chi* of token 0."""
    torch.manual_seed(seed)
    F = job["features"]
    x = torch.randn(N, job["tokens"], F + job["heads"])
    nu = job["nu"]
    if job["prior"] == "flipping":
        sign = torch.randint(0, 2, (N,)) * 2.0 - 1.0
        x[:, 0, :F] += torch.stack([torch.full((N,), math.sqrt(nu[0])), math.sqrt(nu[1]) * sign], 1)
    else:
        x[:, 0, :F] += torch.linspace(nu[0], nu[1], F).sqrt() * torch.randn(N, F)
    return x


def integrate(velocity, y, end, tolerance):
    """y at time `end`, and the number of evaluations."""
    t, step, evaluations = 0.0, 0.1, 1
    first = velocity(y)
    while t < end:
        step = min(step, end - t)
        slopes = [first]
        for row in NODES:
            new = y + step * sum(c * k for c, k in zip(row, slopes) if c)
            slopes.append(velocity(new))
        evaluations += len(NODES)
        scale = tolerance * (1 + torch.maximum(y.abs(), new.abs()))
        error = step * sum(c * k for c, k in zip(ERROR, slopes) if c)
        size = (error / scale).square().mean().sqrt().item()
        if size <= 1:
            t, y, first = t + step, new, slopes[-1]
        step *= min(5.0, max(0.2, 0.9 * max(size, 1e-10) ** -0.2))
    return y, evaluations


def main():
    job = json.load(sys.stdin)
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    start = torch.cat([torch.tensor(job["m"]), torch.tensor(job["R"])], dim=1)
    H, K = start.shape
    y = torch.cat([start.flatten(), torch.zeros(H)])
    results = []
    for run in job["runs"]:
        chunk = max(1, CHUNK_NUMBERS // (job["tokens"] * H))
        chunks = [part.permute(2, 1, 0).contiguous()
                  for part in draw_samples(job, run["samples"], run["seed"]).split(chunk)]

        def velocity(y):
            _, dW, db, _ = tuned(job["activation"], chunks, y[:H * K].reshape(H, K), y[H * K:],
                                 torch.tensor(1.0))
            return -torch.cat([dW.flatten(), db])

        began = time.perf_counter()
        end, evaluations = integrate(velocity, y, job["time"], run["tolerance"])
        seconds = time.perf_counter() - began
        results.append({"seconds": seconds, "evaluations": evaluations,
                        "W": end[:H * K].reshape(H, K).tolist()})
    print(json.dumps({"version": f"PyTorch {torch.__version__.split('+')[0]}", "results": results}))


if __name__ == "__main__":
    main()
