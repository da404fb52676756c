"""The work of bench/loss_gradient.cc in PyTorch: loss and gradient over fixed samples.

Three ways, float64, one thread:
  autograd  the loss as one would write it down, then .backward()
  hand      the gradient written out, operations on whole-batch tensors (N, L, H)
  tuned     the same arithmetic on chunks (H, L, n) that stay in cache, with the samples
            along the contiguous axis: what someone who profiles the above ends up with

With --work: a few cases with several numbers of samples instead, and the gradients.

Samples here are independent (every sample has noise of its own); the relevant token is
token 0, which loses nothing because tokens are exchangeable. Prints JSON.
"""

import argparse
import json
import math
import os
import statistics
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch  # noqa: E402  (after the thread limits)

CASES = [(2, 2, 10), (4, 2, 5), (8, 3, 5), (8, 4, 5)]  # (H, F, L), as in cases.h
ACTIVATIONS = ["softmax", "softmax-1", "b-softmax"]
NU = 2.0
WORK = [((2, 2, 10), "softmax"), ((8, 4, 5), "softmax-1")]  # as in factorised.cc
WORK_SAMPLES = [4**k for k in range(5, 10)]
WORK_SETS = 6  # of samples, for the error
CHUNK_NUMBERS = 40_000  # of one (H, L, n) tensor: 320 kB, so that two or three fit in L2


def benchmark_point(H, F):
    """The point of cases.h: rows of m of norm 1, R = identity + small noise, b = 0, v = 1."""
    m = torch.tensor([[math.cos(1 + (h + 2 * f) ** 2) for f in range(F)] for h in range(H)])
    m /= m.norm(dim=1, keepdim=True)
    noise = [[0.1 * math.sin(1 + 2 * h + 3 * k) for k in range(H)] for h in range(H)]
    R = torch.eye(H) + torch.tensor(noise)
    return m, R, torch.zeros(H), torch.tensor(1.0)


def draw_samples(H, F, L, N):
    """x = (chi*, xi), shape (N, L, F + H), theta added to chi* of token 0."""
    x = torch.randn(N, L, F + H)
    if F == 2:
        sign = torch.randint(0, 2, (N,)) * 2.0 - 1.0
        theta = math.sqrt(NU) * torch.stack([torch.ones(N), sign], dim=1)
    else:
        theta = math.sqrt(NU) * torch.eye(F)[torch.randint(0, F, (N,))]
    x[:, 0, :F] += theta
    return x


def check_samples(H, F, L):
    """Samples by a formula, on which jax_loss_gradient.py must find the same numbers."""
    shape = (50, L, F + H)
    return 1.5 * torch.sin(1.0 + 1.7 * torch.arange(math.prod(shape))).reshape(shape)


def autograd(activation, chi_star, xi, m, R, b, v):
    """Returns the loss; leaves the gradients in m.grad, R.grad, b.grad and v.grad."""
    chi = chi_star @ m.T + xi @ R.T
    N, L, H = chi.shape
    if activation == "softmax":
        mean = chi.softmax(dim=1).mean(dim=2)
    elif activation == "softmax-1":
        sink = b.expand(N, 1, H)
        mean = v * torch.cat([chi, sink], dim=1).softmax(dim=1)[:, :L].mean(dim=2)
    else:
        mean = (chi + b).reshape(N, L * H).softmax(dim=1).reshape(N, L, H).sum(dim=2)
    loss = ((torch.eye(L)[0] - mean) ** 2).sum(dim=1).mean()
    for leaf in (m, R, b, v):
        leaf.grad = None
    loss.backward()
    return loss


def backward_to_scores(activation, chi, heads, b, v):
    """Residuals w, g = d loss / d chi (summed, not averaged), and the sums for b and v.

    chi has the samples, tokens and heads on axes (0, 1, 2) if heads = 2, (2, 1, 0) if
    heads = 0. Shapes keep reduced axes, so the same lines serve both.
    """
    H, L, N = chi.shape[heads], chi.shape[1], chi.shape[2 - heads]
    b = b[:, None, None] if heads == 0 else b
    target = torch.eye(L)[0][:, None]
    others = (1, 2 - heads)
    if activation == "b-softmax":
        scores = chi + b
        if heads == 0:
            a = scores.reshape(H * L, N).softmax(dim=0).reshape(chi.shape)
        else:
            a = scores.reshape(N, L * H).softmax(dim=1).reshape(chi.shape)
        mean = a.sum(dim=heads, keepdim=True)
        w = target - mean
        s = 2.0 * w
        g = a * ((mean * s).sum(dim=1, keepdim=True) - s)
        return w, g, g.sum(dim=others), torch.zeros(())
    if activation == "softmax":
        a = chi.softmax(dim=1)
        w = target - a.mean(dim=heads, keepdim=True)
        s = (2.0 / H) * w
        g = a * ((a * s).sum(dim=1, keepdim=True) - s)
        return w, g, torch.zeros(H), torch.zeros(())
    sink_shape = (H, 1, N) if heads == 0 else (N, 1, H)
    a = torch.cat([chi, b.expand(sink_shape)], dim=1).softmax(dim=1)
    a, sink = a[:, :L], a[:, L:]
    w = target - v * a.mean(dim=heads, keepdim=True)
    s = (2.0 / H) * w
    inner = (a * s).sum(dim=1, keepdim=True)
    g = v * a * (inner - s)
    return w, g, v * (sink * inner).sum(dim=others), -inner.sum()


def hand(activation, x, W, b, v):
    """Loss and the gradients of W = [m R], b and v; x (N, L, K)."""
    N, L, K = x.shape
    H = W.shape[0]
    chi = (x.reshape(-1, K) @ W.T).reshape(N, L, H)
    w, g, grad_b, grad_v = backward_to_scores(activation, chi, 2, b, v)
    G = g.reshape(-1, H).T @ x.reshape(-1, K)
    return (w * w).sum() / N, G / N, grad_b / N, grad_v / N


def tuned(activation, chunks, W, b, v):
    """The same; chunks of x, each (K, L, n)."""
    H, K = W.shape
    N = sum(x.shape[2] for x in chunks)
    total = [torch.zeros(()), torch.zeros(H, K), torch.zeros(H), torch.zeros(())]
    for x in chunks:
        flat = x.reshape(K, -1)
        chi = (W @ flat).reshape(H, x.shape[1], x.shape[2])
        w, g, part_b, part_v = backward_to_scores(activation, chi, 0, b, v)
        for sum_, part in zip(total, ((w * w).sum(), g.reshape(H, -1) @ flat.T, part_b, part_v)):
            sum_ += part
    return [sum_ / N for sum_ in total]


def standard_errors(activation, x, W, b, v, F):
    """Values and standard errors of the loss, d/d m_00 and d/d R_01 over independent samples."""
    w, g, _, _ = backward_to_scores(activation, x @ W.T, 2, b, v)
    terms = {
        "loss": (w * w).sum(dim=(1, 2)),
        "m00": (g[:, :, 0] * x[:, :, 0]).sum(dim=1),
        "R01": (g[:, :, 0] * x[:, :, F + 1]).sum(dim=1),
    }
    return {
        name: {"value": t.mean().item(), "error": t.std().item() / math.sqrt(len(t))}
        for name, t in terms.items()
    }


def median_ms(work, repetitions):
    work()  # first touch of the allocator and of the code
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        work()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def all_ways(shape, activation, x):
    """The three ways as functions without arguments, and what autograd differentiates by."""
    H, F, L = shape
    chi_star, xi = x[..., :F].contiguous(), x[..., F:].contiguous()
    chunk = max(1, CHUNK_NUMBERS // (L * H))
    chunks = [part.permute(2, 1, 0).contiguous() for part in x.split(chunk)]
    m, R, b, v = benchmark_point(H, F)
    W = torch.cat([m, R], dim=1)
    leaves = [t.clone().requires_grad_() for t in (m, R, b, v)]
    ways = {
        "autograd": lambda: autograd(activation, chi_star, xi, *leaves),
        "hand": lambda: hand(activation, x, W, b, v),
        "tuned": lambda: tuned(activation, chunks, W, b, v),
    }
    return ways, leaves


def run_case(shape, activation, N, repetitions):
    H, F, L = shape
    x = draw_samples(H, F, L, N)
    ways, leaves = all_ways(shape, activation, x)
    m, R, b, v = benchmark_point(H, F)
    W = torch.cat([m, R], dim=1)

    loss = ways["autograd"]().detach()
    grads = [t.grad if t.grad is not None else torch.zeros_like(t) for t in leaves]
    expected = (loss, torch.cat(grads[:2], dim=1), grads[2], grads[3])
    for way in ("hand", "tuned"):
        for got, want in zip(ways[way](), expected):
            difference = (got - want).abs().max().item()
            assert difference < 1e-10, (shape, activation, way, difference)

    return {
        "case": list(shape),
        "activation": activation,
        "check": flat(hand(activation, check_samples(H, F, L), W, b, v)),
        "ms": {way: median_ms(work, repetitions) for way, work in ways.items()},
        "statistics": standard_errors(activation, x, W, b, v, F),
    }


def flat(tensors):
    return torch.cat([t.flatten() for t in tensors]).tolist()


def run_work(shape, activation, repetitions):
    """Times against the number of samples, and gradients (rows of [m R], b, v) of several sets."""
    H, F, L = shape
    m, R, b, v = benchmark_point(H, F)
    W = torch.cat([m, R], dim=1)
    points = []
    for N in WORK_SAMPLES:
        ways, _ = all_ways(shape, activation, draw_samples(H, F, L, N))
        ms = {way: median_ms(work, repetitions) for way, work in ways.items()}
        gradients = []
        for _ in range(WORK_SETS):
            _, *gradient = hand(activation, draw_samples(H, F, L, N), W, b, v)
            gradients.append(flat(gradient))
        points.append({"samples": N, "ms": ms, "gradients": gradients})
    return {"case": list(shape), "activation": activation, "points": points}


def blas_library():
    """The BLAS that torch ended up with; it matters, and torch does not tell."""
    with open("/proc/self/maps") as maps:
        names = {os.path.basename(line.split()[-1]) for line in maps}
    return ", ".join(sorted(n for n in names if "blas" in n)) or "its own BLAS"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", action="store_true", help="times and errors against samples")
    options = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(options.seed)
    results = [
        run_work(shape, activation, options.repetitions) for shape, activation in WORK
    ] if options.work else [
        run_case(shape, activation, options.samples, options.repetitions)
        for shape in CASES
        for activation in ACTIVATIONS
    ]
    versions = {"torch": torch.__version__, "blas": blas_library()}
    print(json.dumps({**versions, "results": results}, indent=1))


if __name__ == "__main__":
    main()
