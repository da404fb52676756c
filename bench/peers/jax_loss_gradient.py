"""The work of bench/loss_gradient.cc in JAX: loss and gradient over fixed samples.

Two ways, float64, one thread, compiled:
  plain  the loss as one would write it down, jit(value_and_grad)
  tuned  samples along the contiguous axis, in chunks that stay in cache (lax.scan), each chunk
         differentiated by itself: what someone who profiles the above ends up with

Case, point and samples are those of torch_loss_gradient.py, and so is the check: the two ways
must agree with each other, and with the gradient written out here in numpy, to 1e-10.
Prints JSON. Times are of compiled code; compilation is reported separately.
"""

import argparse
import json
import math
import os
import statistics
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["JAX_PLATFORMS"] = "cpu"
import jax  # noqa: E402  (after the settings)
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

jax.config.update("jax_enable_x64", True)

CASES = [(2, 2, 10), (4, 2, 5), (8, 3, 5), (8, 4, 5)]  # (H, F, L), as in cases.h
ACTIVATIONS = ["softmax", "softmax-1", "b-softmax"]
NU = 2.0
CHUNK_NUMBERS = 40_000  # of one (H, L, n) array: 320 kB, as in torch_loss_gradient.py


def benchmark_point(H, F):
    """The point of cases.h: W = [m R], rows of m of norm 1, R = identity + small noise."""
    m = np.array([[math.cos(1 + (h + 2 * f) ** 2) for f in range(F)] for h in range(H)])
    m /= np.linalg.norm(m, axis=1, keepdims=True)
    noise = [[0.1 * math.sin(1 + 2 * h + 3 * k) for k in range(H)] for h in range(H)]
    return np.concatenate([m, np.eye(H) + noise], axis=1), np.zeros(H), np.float64(1.0)


def draw_samples(generator, H, F, L, N):
    """x = (chi*, xi), shape (N, L, F + H), theta added to chi* of token 0."""
    x = generator.standard_normal((N, L, F + H))
    if F == 2:
        sign = generator.integers(0, 2, N) * 2.0 - 1.0
        theta = math.sqrt(NU) * np.stack([np.ones(N), sign], axis=1)
    else:
        theta = math.sqrt(NU) * np.eye(F)[generator.integers(0, F, N)]
    x[:, 0, :F] += theta
    return x


def plain_loss(activation):
    def loss(parameters, x):
        W, b, v = parameters
        chi = x @ W.T  # (N, L, H)
        N, L, H = chi.shape
        if activation == "softmax":
            mean = jax.nn.softmax(chi, axis=1).mean(axis=2)
        elif activation == "softmax-1":
            sink = jnp.broadcast_to(b, (N, 1, H))
            mean = v * jax.nn.softmax(jnp.concatenate([chi, sink], axis=1), axis=1)[:, :L].mean(axis=2)
        else:
            mean = jax.nn.softmax((chi + b).reshape(N, L * H), axis=1).reshape(N, L, H).sum(axis=2)
        return ((jnp.eye(L)[0] - mean) ** 2).sum(axis=1).mean()
    return loss


def chunk_loss(activation):
    """Loss summed over a chunk x (K, L, n)."""
    def loss(parameters, x):
        W, b, v = parameters
        chi = jnp.einsum("hk,kln->hln", W, x)
        # the largest score is taken out as a constant: it cancels, and so needs no derivative
        if activation == "b-softmax":
            chi = chi + b[:, None, None]
            e = jnp.exp(chi - jax.lax.stop_gradient(chi.max(axis=(0, 1))))
            mean = e.sum(axis=0) / e.sum(axis=(0, 1))
        else:
            top = jax.lax.stop_gradient(chi.max(axis=1, keepdims=True))
            sink = 0.0
            if activation == "softmax-1":
                top = jnp.maximum(top, jax.lax.stop_gradient(b)[:, None, None])
                sink = jnp.exp(b[:, None, None] - top)
            e = jnp.exp(chi - top)
            mean = v * (e / (e.sum(axis=1, keepdims=True) + sink)).mean(axis=0)
        return (mean**2).sum() - 2 * mean[0].sum() + x.shape[2]
    return loss


def tuned(activation):
    """Loss and gradient over chunks x (C, K, L, n), and the samples that fill no chunk."""
    of_chunk = jax.value_and_grad(chunk_loss(activation))

    def add(x, y):
        return jax.tree.map(jnp.add, x, y)

    def loss_gradient(parameters, chunks, rest):
        total, _ = jax.lax.scan(lambda sum_, x: (add(sum_, of_chunk(parameters, x)), None),
                                of_chunk(parameters, rest), chunks)
        N = chunks.shape[0] * chunks.shape[3] + rest.shape[2]
        return jax.tree.map(lambda t: t / N, total)
    return loss_gradient


def in_chunks(x, H):
    """x (N, L, K) as chunks (C, K, L, n) and a rest (K, L, n') for tuned."""
    N, L, K = x.shape
    n = min(N, max(1, CHUNK_NUMBERS // (L * H)))
    whole = N // n * n
    chunks = np.ascontiguousarray(x[:whole].reshape(-1, n, L, K).transpose(0, 3, 2, 1))
    return jnp.asarray(chunks), jnp.asarray(np.ascontiguousarray(x[whole:].transpose(2, 1, 0)))


def by_hand(activation, x, parameters):
    """The gradient written out in numpy: what both ways are checked against."""
    W, b, v = parameters
    N, L, _ = x.shape
    H = W.shape[0]
    chi = x @ W.T
    target = np.eye(L)[0][:, None]
    if activation == "b-softmax":
        e = np.exp(chi + b)
        a = e / e.sum(axis=(1, 2), keepdims=True)
        mean = a.sum(axis=2, keepdims=True)
        s = 2 * (target - mean)
        g = a * ((mean * s).sum(axis=1, keepdims=True) - s)
        grad_b, grad_v = g.sum(axis=(0, 1)), 0.0
    else:
        e = np.exp(chi)
        sink = np.exp(b) if activation == "softmax-1" else 0.0
        Z = e.sum(axis=1, keepdims=True) + sink
        a = e / Z
        mean = v * a.mean(axis=2, keepdims=True)
        s = (2 / H) * (target - mean)
        inner = (a * s).sum(axis=1, keepdims=True)
        g = v * a * (inner - s)
        grad_b, grad_v = v * (sink / Z * inner).sum(axis=(0, 1)), -inner.sum()
        if activation == "softmax":
            grad_v = 0.0  # has no v
    loss = ((target - mean) ** 2).sum() / N
    return loss, (np.einsum("nlh,nlk->hk", g, x) / N, grad_b / N, grad_v / N)


def largest_difference(a, b, activation):
    (loss_a, grad_a), (loss_b, grad_b) = a, b
    pairs = [(loss_a, loss_b), (grad_a[0], grad_b[0])]
    if activation != "softmax":
        pairs.append((grad_a[1], grad_b[1]))
    if activation == "softmax-1":
        pairs.append((grad_a[2], grad_b[2]))
    return max(float(np.abs(np.asarray(p) - np.asarray(q)).max()) for p, q in pairs)


def compiled(function, *arguments):
    start = time.perf_counter()
    done = jax.jit(function).lower(*arguments).compile()
    return done, time.perf_counter() - start


def median_ms(work, repetitions):
    jax.block_until_ready(work())
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        jax.block_until_ready(work())
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def run_case(shape, activation, N, repetitions, generator):
    H, F, L = shape
    x = draw_samples(generator, H, F, L, N)
    point = benchmark_point(H, F)
    parameters = tuple(jnp.asarray(p) for p in point)
    whole, pieces = jnp.asarray(x), in_chunks(x, H)
    plain, plain_seconds = compiled(jax.value_and_grad(plain_loss(activation)), parameters, whole)
    chunked, tuned_seconds = compiled(tuned(activation), parameters, *pieces)
    ways = {"plain": lambda: plain(parameters, whole),
            "tuned": lambda: chunked(parameters, *pieces)}
    expected = by_hand(activation, x, point)
    for way, work in ways.items():
        difference = largest_difference(work(), expected, activation)
        assert difference < 1e-10, (shape, activation, way, difference)
    return {
        "case": list(shape),
        "activation": activation,
        "ms": {way: median_ms(work, repetitions) for way, work in ways.items()},
        "compile_s": {"plain": plain_seconds, "tuned": tuned_seconds},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    results = [run_case(shape, activation, options.samples, options.repetitions, generator)
               for shape in CASES for activation in ACTIVATIONS]
    print(json.dumps({"jax": jax.__version__, "results": results}, indent=1))


if __name__ == "__main__":
    main()
