"""Whole flows over fixed samples in JAX and diffrax: the tuned gradient and Tsit5, all compiled.

Reads a job (bench/flows.py) from standard input: the problem, the start, the time span and runs,
each with samples, seed and tolerance. Prints the end of each run, its time without compilation,
and its evaluations. Float64, one thread.
"""

import json
import math
import sys
import time

from jax_loss_gradient import compiled, in_chunks, tuned  # first: it makes the settings of JAX
import diffrax
import jax
import jax.numpy as jnp
import numpy as np


def draw_samples(job, N, seed):
    """x = (chi*, xi), shape (N, L, F + H), theta added to chi* of token 0."""
    generator = np.random.default_rng(seed)
    F = job["features"]
    x = generator.standard_normal((N, job["tokens"], F + job["heads"]))
    nu = job["nu"]
    if job["prior"] == "flipping":
        sign = generator.integers(0, 2, N) * 2.0 - 1.0
        x[:, 0, :F] += np.stack([np.full(N, math.sqrt(nu[0])), math.sqrt(nu[1]) * sign], axis=1)
    else:
        x[:, 0, :F] += np.sqrt(np.linspace(nu[0], nu[1], F)) * generator.standard_normal((N, F))
    return x


def flow(job):
    """The end and the number of steps, as a function of start, tolerance and samples."""
    gradient = tuned(job["activation"])

    def velocity(_, y, samples):
        W, b = y
        _, (dW, db, _) = gradient((W, b, 1.0), *samples)
        return -dW, -db

    def solve(y, tolerance, *samples):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity), diffrax.Tsit5(), 0.0, job["time"], None, y, samples,
            saveat=diffrax.SaveAt(t1=True), max_steps=100_000,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance))
        return solution.ys[0][0], solution.stats["num_steps"]
    return solve


def main():
    job = json.load(sys.stdin)
    start = jnp.concatenate([jnp.array(job["m"]), jnp.array(job["R"])], axis=1), jnp.zeros(job["heads"])
    programs, results = {}, []
    for run in job["runs"]:
        samples = in_chunks(draw_samples(job, run["samples"], run["seed"]), job["heads"])
        arguments = start, jnp.float64(run["tolerance"]), *samples
        if run["samples"] not in programs:
            programs[run["samples"]], _ = compiled(flow(job), *arguments)
        began = time.perf_counter()
        end, steps = jax.block_until_ready(programs[run["samples"]](*arguments))
        seconds = time.perf_counter() - began
        # Tsit5 hands its last stage on as the next step's first
        results.append({"seconds": seconds, "evaluations": 6 * int(steps) + 1, "W": end.tolist()})
    print(json.dumps({"version": f"JAX {jax.__version__}, diffrax {diffrax.__version__}",
                      "results": results}))


if __name__ == "__main__":
    main()
