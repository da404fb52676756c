#!/usr/bin/env python3
"""Measures headflow against this machine's limits and against PyTorch.

    bench/run.py <headflow_bench binary>

Runs the pieces in alternating rounds, pinned to one core, because a shared machine drifts;
prints the report on them (report.py, report_factorised.py, report_sgd.py), writes it into docs/performance.md and
draws work against precision (work_precision.py).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from report import case_name, report
from report_factorised import report_factorised
from report_sgd import report_sgd
from work_precision import draw_work_precision

ROOT = Path(__file__).resolve().parent.parent
PEER = ROOT / "bench" / "peers" / "torch_loss_gradient.py"
SGD_PEER = ROOT / "bench" / "peers" / "torch_sgd.py"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def run(command, core):
    """Standard output of a command, on one core if one is given."""
    pin = None if core is None else lambda: os.sched_setaffinity(0, {core})
    done = subprocess.run(
        [str(c) for c in command], preexec_fn=pin, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
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

    def torch(self, core, repetitions, seed):
        output = json.loads(run(
            ["/usr/bin/python3", PEER, f"--repetitions={repetitions}", f"--seed={seed}"], core))
        self.peer = {key: output[key] for key in ("torch", "blas")}
        for result in output["results"]:
            name = f"torch/{case_name(result['case'])}/{result['activation']}"
            for way, ms in result["ms"].items():
                self.add(f"{name}/{way}", ms)
            for quantity, numbers in result["statistics"].items():
                for key, value in numbers.items():
                    self.add(f"{name}/{quantity}_{key}", value)

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


def measure(binary, rounds, core, min_time, repetitions):
    data = Measurements()
    for r in range(rounds):
        print(f"round {r + 1} of {rounds}", file=sys.stderr, flush=True)
        data.benchmark(binary, "-standard_error|2_thread|factorised|length|accuracy|work|exact|sgd",
                       core, min_time)
        data.benchmark(binary, "^(factorised|length|sgd)/", core, min_time / 3)
        data.torch_sgd(core, seed=r + 1)
        data.torch(core, repetitions, seed=r + 1)
        data.benchmark(binary, "float64/._thread|fma_peak", None, min_time, prefix="free/")
    print("errors, work and precision", file=sys.stderr, flush=True)
    data.benchmark(binary, "standard_error|accuracy|exact|work", core, min_time)
    data.torch_work(core, repetitions=3, seed=1)
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binary", type=Path, help="headflow_bench")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--min-time", type=float, default=0.15, help="seconds a benchmark")
    parser.add_argument("--repetitions", type=int, default=7, help="of torch in a round")
    parser.add_argument("--doc", type=Path, default=ROOT / "docs" / "performance.md")
    options = parser.parse_args()

    data = measure(options.binary.resolve(), options.rounds, options.core, options.min_time,
                   options.repetitions)
    text = "\n\n".join([report(data, options.rounds), report_factorised(data), report_sgd(data)])
    print(text)
    page = options.doc.read_text()
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"{options.doc.name}: no {BEGIN} … {END} to write between")
    draw_work_precision(data, options.doc.parent / "images" / "work_precision.png")
    options.doc.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}")


if __name__ == "__main__":
    main()
