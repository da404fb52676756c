"""JAX and a current PyTorch beside headflow's Monte-Carlo kernel (medians over rounds)."""

import statistics

from report import case_name, each_case, label, table

PEERS = {  # prefix in the measurements: name, ways
    "jax": ("JAX", ["plain", "tuned"]),
    "new_torch": ("PyTorch", ["autograd", "hand", "tuned"]),
}


def present(data):
    return [p for p in PEERS if p in data.versions]


def title(data, peer):
    return f"{PEERS[peer][0]} {data.versions[peer]}"


def peer_ms(data, peer, way, case, activation):
    return data.median(peer, case_name(case), activation, way)


def own_ms(data, case, activation):
    return data.median("loss_gradient", case_name(case), activation, "float64/1_thread/ms")


def speeds(data, peer, way):
    """Peer's time over headflow's, all cases."""
    return [peer_ms(data, peer, way, *c) / own_ms(data, *c) for c in each_case()]


def summary(data):
    rows = []
    for peer in present(data):
        for way in PEERS[peer][1]:
            values = speeds(data, peer, way)
            rows.append([f"speed over {title(data, peer)}, {way}"]
                        + [f"{f(values):.0f} ×" for f in (min, statistics.median, max)])
    return table(["", "lowest", "median", "highest"], rows)


def times(data):
    columns = [(peer, way) for peer in present(data) for way in PEERS[peer][1]]
    rows = []
    for case, activation in each_case():
        own = own_ms(data, case, activation)
        ms = [peer_ms(data, peer, way, case, activation) for peer, way in columns]
        rows.append([label(case), activation, f"{own:.2f}"] + [f"{t:.1f}" for t in ms]
                    + [f"{t / own:.0f}" for t in ms])
    names = [f"{PEERS[peer][0]} {way}" for peer, way in columns]
    return table(["(H, F, L)", "activation", "headflow ms"] + [f"{n} ms" for n in names]
                 + [f"× {n}" for n in names], rows)


def report_peers(data, remarks):
    parts = ["### JAX, and a current PyTorch"]
    if present(data):
        parts += [
            "The same work in packages from PyPI, on the same core in the same rounds, compiled\n"
            "beforehand where there is a compiler. JAX *plain* is the loss as one writes it down,\n"
            "`jit(value_and_grad)`; *tuned* is the gradient written out over chunks that stay in cache,\n"
            "samples along the contiguous axis, `lax.scan`. Ways of PyTorch as above.",
            summary(data), times(data)]
    elif not remarks:
        parts.append("Not measured in this run.")
    return "\n\n".join(parts + remarks)
