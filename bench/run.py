#!/usr/bin/env python3
"""Measures headflow against this machine's limits, PyTorch and JAX.

    bench/run.py <headflow_bench binary> [--only jax,flows]

Runs the pieces in alternating rounds, pinned to one core, because a shared machine drifts;
prints the report on them (report*.py), writes it into docs/performance.md and
draws work against precision (work_precision.py). Parts:
  base   headflow, the machine and Debian's PyTorch
  jax    JAX from PyPI
  torch  PyTorch from PyPI
  flows  whole flows to a given error (flows.py)
Without base the tables of single evaluations are printed but not written, as they are one run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from environment import Environment
from flows import measure_flows
from report import case_name, report
from report_factorised import report_factorised
from report_flows import report_flows
from report_peers import report_peers
from report_sgd import report_sgd
from work_precision import draw_work_precision

ROOT = Path(__file__).resolve().parent.parent
PEER = ROOT / "bench" / "peers" / "torch_loss_gradient.py"
JAX_PEER = ROOT / "bench" / "peers" / "jax_loss_gradient.py"
SGD_PEER = ROOT / "bench" / "peers" / "torch_sgd.py"
PARTS = ["base", "jax", "torch", "flows"]


def run(command, core, variables=None):
    """Standard output of a command, on one core if one is given."""
    pin = None if core is None else lambda: os.sched_setaffinity(0, {core})
    done = subprocess.run(
        [str(c) for c in command], preexec_fn=pin, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
        env={**os.environ, **(variables or {})},
    )
    if done.returncode != 0:
        sys.exit(f"{Path(str(command[0])).name} failed:\n{done.stderr}")
    return done.stdout


class Measurements:
    """Every number of every round, by name."""

    def __init__(self):
        self.values = {}
        self.context = {}
        self.peer = {}
        self.versions = {}  # of peers from PyPI
        self.checks = {}  # loss and gradient on samples that all peers share

    def add(self, name, value):
        self.values.setdefault(name, []).append(value)

    def median(self, *name):
        return statistics.median(self.values["/".join(name)])

    def mean(self, *name):
        return statistics.fmean(self.values["/".join(name)])

    def benchmark(self, binary, pattern, core, min_time, prefix=""):
        output = json.loads(run(
            [binary, f"--benchmark_filter={pattern}", f"--benchmark_min_time={min_time}",
             "--benchmark_format=json"], core))
        self.context = output["context"]
        to_ms = {"ns": 1e-6, "us": 1e-3, "ms": 1.0}
        for result in output["benchmarks"]:
            name = prefix + result["name"].split("/real_time")[0].split("/iterations")[0]
            self.add(f"{name}/ms", result["real_time"] * to_ms[result["time_unit"]])
            for key, value in result.items():
                if isinstance(value, float):
                    self.add(f"{name}/{key}", value)

    def peer_times(self, prefix, python, script, core, repetitions, seed, variables=None):
        """Times of a peer's ways, and what it found besides; stops if peers disagree."""
        output = json.loads(run(
            [python, script, f"--repetitions={repetitions}", f"--seed={seed}"], core, variables))
        for result in output["results"]:
            case = f"{case_name(result['case'])}/{result['activation']}"
            for way, ms in result["ms"].items():
                self.add(f"{prefix}/{case}/{way}", ms)
            for quantity, numbers in result.get("statistics", {}).items():
                for key, value in numbers.items():
                    self.add(f"{prefix}/{case}/{quantity}_{key}", value)
            expected = self.checks.setdefault(case, result["check"])
            difference = max(abs(a - b) for a, b in zip(result["check"], expected, strict=True))
            if difference > 1e-10:
                sys.exit(f"{prefix}, {case}: differs from another peer by {difference:.1e}")
        return output

    def torch(self, core, repetitions, seed):
        output = self.peer_times("torch", "/usr/bin/python3", PEER, core, repetitions, seed)
        self.peer = {key: output[key] for key in ("torch", "blas")}

    def from_pypi(self, environment, core, repetitions, seed):
        for peer, prefix, script in (("jax", "jax", JAX_PEER), ("torch", "new_torch", PEER)):
            if environment.has(peer):
                output = self.peer_times(prefix, environment.python, script, core, repetitions,
                                         seed, environment.variables)
                self.versions[prefix] = output[peer].split("+")[0]

    def torch_sgd(self, core, seed):
        output = json.loads(run(["/usr/bin/python3", SGD_PEER, f"--seed={seed}"], core))
        for name, ns in output["ns_per_sample"].items():
            self.add(f"torch_sgd/{name}", ns)

    def torch_work(self, core, repetitions, seed):
        """Times and gradients of torch with several numbers of samples."""
        output = json.loads(run(
            ["/usr/bin/python3", PEER, "--work", f"--repetitions={repetitions}", f"--seed={seed}"],
            core))
        for result in output["results"]:
            setting = f"{case_name(result['case'])}/{result['activation']}/R1"
            for point in result["points"]:
                errors = [self.largest_error(setting, g) for g in point["gradients"]]
                for way, ms in point["ms"].items():
                    self.add(f"work/{setting}/torch_{way}/{point['samples']}/ms", ms)
                    for error in errors:
                        self.add(f"work_error/{setting}/torch_{way}/{point['samples']}/error", error)

    def largest_error(self, setting, gradient):
        return max(abs(g - self.mean("exact", setting, f"gradient_{i}"))
                   for i, g in enumerate(gradient))


def measure(binary, parts, environment, rounds, core, min_time, repetitions):
    data = Measurements()
    for r in range(rounds):
        print(f"round {r + 1} of {rounds}", file=sys.stderr, flush=True)
        if "base" in parts:
            data.benchmark(
                binary, "-standard_error|2_thread|factorised|length|accuracy|work|exact|sgd", core,
                min_time)
            data.benchmark(binary, "^(factorised|length|sgd)/", core, min_time / 3)
            data.torch_sgd(core, seed=r + 1)
        else:
            data.benchmark(binary, "^loss_gradient/.*float64/1_thread", core, min_time)
        data.torch(core, repetitions, seed=r + 1)
        data.from_pypi(environment, core, repetitions, seed=r + 1)
        if "base" in parts:
            data.benchmark(binary, "float64/._thread|fma_peak", None, min_time, prefix="free/")
    if "base" in parts:
        print("errors, work and precision", file=sys.stderr, flush=True)
        data.benchmark(binary, "standard_error|accuracy|exact|work", core, min_time)
        data.torch_work(core, repetitions=3, seed=1)
    return data


def write_between(page, name, text):
    """Replaces what stands between the markers of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    head, found, rest = page.read_text().partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        sys.exit(f"{page.name}: no {begin} … {end} to write between")
    page.write_text(f"{head}{begin}\n{text}\n{end}{tail}")


def parts_of(text):
    parts = text.split(",")
    unknown = [p for p in parts if p not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no part '{unknown[0]}'; there are {', '.join(PARTS)}")
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path, help="headflow_bench")
    parser.add_argument("--only", type=parts_of, default=PARTS, help=f"of {','.join(PARTS)}")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--min-time", type=float, default=0.15, help="seconds a benchmark")
    parser.add_argument("--repetitions", type=int, default=5, help="of a peer in a round")
    parser.add_argument("--doc", type=Path, default=ROOT / "docs" / "performance.md")
    options = parser.parse_args()
    parts = options.only
    binary = options.binary.resolve()
    build = binary.parent.parent

    environment = Environment(build / "venv")
    if {"jax", "flows"} & set(parts):
        environment.add("jax")
    if "torch" in parts:
        environment.add("torch")
    if set(parts) - {"flows"}:
        data = measure(binary, parts, environment, options.rounds, options.core, options.min_time,
                       options.repetitions)
        text = report_peers(data, environment.remarks)
        if "base" in parts:
            text = "\n\n".join([report(data, options.rounds), text, report_factorised(data),
                                report_sgd(data)])
            draw_work_precision(data, options.doc.parent / "images" / "work_precision.png")
            write_between(options.doc, "measured", text)
        print(text)
    if "flows" in parts:
        text = report_flows(measure_flows(build / "headflow", environment, options.core))
        write_between(options.doc, "flows", text)
        print(text)


if __name__ == "__main__":
    main()
