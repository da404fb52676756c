"""One step of SGD in D dimensions in PyTorch, with the gradient written out: the peer of bench/sgd.cc.

A batch is drawn and used in pieces, so that memory stays small; a step is then linear in the
number of samples, and the time of a sample is what is measured. One thread. Prints JSON.
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

H, F, L, D, NU = 2, 2, 10, 10_000, 2.0
PIECE = 20  # samples drawn at a time: 16 MB in float64


def attention(activation, chi, b, v):
    """Weights a (N, L, H), their mean over heads, and the weight of the sink."""
    if activation == "b-softmax":
        a = (chi + b).reshape(len(chi), L * H).softmax(dim=1).reshape(chi.shape)
        return a, a.sum(dim=2), None
    if activation == "softmax":
        a = chi.softmax(dim=1)
        return a, a.mean(dim=2), None
    a = torch.cat([chi, b.expand(len(chi), 1, H)], dim=1).softmax(dim=1)
    return a[:, :L], v * a[:, :L].mean(dim=2), a[:, L]


def step(activation, k, k_star, b, v, samples):
    """Loss and gradients of k, b and v."""
    grad, grad_b, grad_v = torch.zeros_like(k), torch.zeros_like(b), torch.zeros_like(v)
    total = torch.zeros((), dtype=k.dtype)
    for first in range(0, samples, PIECE):
        n = min(PIECE, samples - first)
        x = torch.randn(n, L, D, dtype=k.dtype)
        sign = torch.randint(0, 2, (n,)) * 2.0 - 1.0
        theta = math.sqrt(NU) * torch.stack([torch.ones(n), sign], dim=1).to(k.dtype)
        x[:, 0] += theta @ k_star
        a, mean, sink = attention(activation, x @ k.T, b, v)
        w = -mean
        w[:, 0] += 1
        residual = torch.bmm(w[:, None], x)                          # y - y^
        s = (2 / D) * torch.bmm(x, residual.transpose(1, 2))         # -d loss / d mean
        total += (residual**2).sum() / D
        if activation == "b-softmax":
            g = a * ((mean * s[..., 0]).sum(dim=1)[:, None, None] - s)
            grad_b += g.sum(dim=(0, 1))
        else:
            inner = (a * s).sum(dim=1, keepdim=True)
            g = (v / H) * a * (inner - s)
            if activation == "softmax-1":
                grad_b += (v / H) * (sink * inner[:, 0]).sum(dim=0)
                grad_v -= inner.sum() / H
        grad += g.reshape(-1, H).T @ x.reshape(-1, D)
    return total / samples, grad / samples, grad_b / samples, grad_v / samples


def check(activation):
    """The gradient by hand against autograd, on one small batch."""
    global D
    keep, D = D, 50
    k, k_star = torch.randn(H, D, dtype=torch.float64) / 7, torch.randn(F, D, dtype=torch.float64) / 7
    leaves = [k, torch.randn(H, dtype=torch.float64), torch.tensor(1.2, dtype=torch.float64)]
    if activation == "softmax":
        leaves[2] = torch.tensor(1.0, dtype=torch.float64)
    torch.manual_seed(5)
    hand = step(activation, leaves[0], k_star, leaves[1], leaves[2], PIECE)
    leaves = [t.clone().requires_grad_() for t in leaves]
    torch.manual_seed(5)
    x = torch.randn(PIECE, L, D, dtype=torch.float64)
    sign = torch.randint(0, 2, (PIECE,)) * 2.0 - 1.0
    theta = math.sqrt(NU) * torch.stack([torch.ones(PIECE), sign], dim=1).to(torch.float64)
    x[:, 0] += theta @ k_star
    _, mean, _ = attention(activation, x @ leaves[0].T, leaves[1], leaves[2])
    loss = ((x[:, 0] - torch.bmm(mean[:, None], x)[:, 0]) ** 2).sum() / (D * PIECE)
    loss.backward()
    used = {"softmax": 1, "b-softmax": 2, "softmax-1": 3}[activation]
    pairs = [(hand[0], loss)] + [(g, t.grad) for g, t in zip(hand[1:], leaves)][:used]
    for got, want in pairs:
        assert (got - want).abs().max() < 1e-12, (activation, got, want)
    D = keep


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for activation in ("softmax", "softmax-1", "b-softmax"):
        check(activation)
        for name, dtype in (("float64", torch.float64), ("float32", torch.float32)):
            torch.manual_seed(options.seed)
            k, k_star = (torch.randn(rows, D, dtype=dtype) / math.sqrt(D) for rows in (H, F))
            b, v = torch.zeros(H, dtype=dtype), torch.ones((), dtype=dtype)
            times = []
            for _ in range(options.repetitions + 1):
                start = time.perf_counter()
                step(activation, k, k_star, b, v, options.samples)
                times.append(time.perf_counter() - start)
            results[f"{activation}/{name}"] = 1e9 * statistics.median(times[1:]) / options.samples
    print(json.dumps({"torch": torch.__version__, "ns_per_sample": results}))


if __name__ == "__main__":
    main()
