"""Flows over fixed samples: what a sampler needs for a given error at the end of a flow.

A sampler has two errors: that of its steps, made small first, on few samples; and that of the
samples, C N^(-1/2), whose C is measured over several sets of samples. From these follow the
samples that an error needs. If such a run takes at most LIMIT seconds it is made; if not, its
time is extrapolated from the largest runs, and marked so.
"""

import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

from flow_cases import ERRORS, distance
from flow_program import run_flow

PEERS = Path(__file__).resolve().parent / "peers"
FEW = 4096  # samples on which the tolerance of the steps is chosen
LADDER = [(2**14, 6), (2**16, 6)]  # samples, sets of them
LARGEST = 6.0  # seconds of the largest runs, from which time and error are extrapolated
LIMIT = 15.0  # seconds of a run that is made rather than extrapolated
SETS = 2  # of samples, of both


def peer(python, script, core, variables=None):
    """A function that hands a job to a peer and returns its results."""
    def run(flow, runs):
        done = subprocess.run(
            [str(python), str(PEERS / script)], input=flow.job(runs), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            env={**os.environ, **(variables or {})})
        if done.returncode != 0:
            sys.exit(f"{script} failed:\n{done.stderr}")
        output = json.loads(done.stdout)
        return output["version"], output["results"]
    return run


def own_sampler(program, core):
    """headflow's Monte Carlo as such a function: the same method, another implementation."""
    def run(flow, runs):
        return "headflow, Monte Carlo", [
            run_flow(program, flow, core, "mc", 1e-6, r["tolerance"], samples=r["samples"],
                     seed=r["seed"]) for r in runs]
    return run


def step_tolerances(run, flow):
    """For each error asked for, the loosest tolerance that leaves a third of it to the steps."""
    tried = sorted({e / d for e in ERRORS for d in (1, 3, 10, 30, 100)}, reverse=True)
    runs = [{"samples": FEW, "seed": 1, "tolerance": t} for t in [min(tried) / 10] + tried]
    _, (exact, *results) = run(flow, runs)
    chosen = {}
    for error in ERRORS:
        good = [(t, r["evaluations"]) for t, r in zip(tried, results)
                if distance(r["W"], exact["W"]) < error / 3]
        chosen[error] = min(good, key=lambda c: c[1]) if good else (
            runs[0]["tolerance"], exact["evaluations"])
    return chosen


def root_mean_square(values):
    return math.sqrt(statistics.fmean(v * v for v in values))


def time_unit(runs):
    """Seconds of one evaluation of one sample."""
    return statistics.median(r["seconds"] / r["evaluations"] / r["samples"] for r in runs)


def run_sets(run, flow, reference, tolerance, sizes):
    """Runs with (samples, sets) as given, with their errors."""
    # other seeds for other numbers of samples, or the small sets would be parts of the large ones
    asked = [{"samples": n, "seed": n + s, "tolerance": tolerance}
             for n, sets in sizes for s in range(sets)]
    version, results = run(flow, asked)
    return version, [{**a, **r, "error": distance(r["W"], reference)}
                     for a, r in zip(asked, results)]


def try_sampler(run, flow, reference):
    """Errors and times with several numbers of samples, the largest of which takes seconds."""
    chosen = step_tolerances(run, flow)
    tolerance, evaluations = chosen[ERRORS[0]]
    version, runs = run_sets(run, flow, reference, tolerance, LADDER)
    biggest, _ = LADDER[-1]
    unit = time_unit([r for r in runs if r["samples"] == biggest])
    largest = max(4 * biggest, 2 ** int(math.log2(LARGEST / unit / evaluations)))
    _, top = run_sets(run, flow, reference, tolerance, [(largest, SETS)])
    return {"name": version, "run": run, "chosen": chosen, "runs": runs + top, "largest": {
        "samples": largest, "error": root_mean_square(r["error"] for r in top),
        "seconds": statistics.median(r["seconds"] for r in top), "unit": time_unit(top)}}


def add_law(tried):
    """C and the exponent, from all samplers of one law of samples: errors scatter more than C.

    The smallest sets show whether the law holds, but may be too small for it to hold exactly.
    """
    runs = [r for t in tried for r in t["runs"]]
    constant = root_mean_square(math.sqrt(r["samples"]) * r["error"] for r in runs
                                if r["samples"] > LADDER[0][0])
    slope = statistics.linear_regression([math.log(r["samples"]) for r in runs],
                                         [math.log(r["error"]) for r in runs]).slope
    for t in tried:
        t.update(constant=constant, exponent=slope)


def reach_errors(tried, flow, reference):
    """Time for each error, measured or extrapolated."""
    tried["errors"] = {}
    for error in ERRORS:
        tolerance, evaluations = tried["chosen"][error]
        samples = math.ceil((tried["constant"] / error) ** 2)
        seconds, reached = tried["largest"]["unit"] * evaluations * samples, None
        if seconds <= LIMIT:
            _, made = run_sets(tried["run"], flow, reference, tolerance, [(samples, SETS)])
            seconds = statistics.median(r["seconds"] for r in made)
            reached = root_mean_square(r["error"] for r in made)
        tried["errors"][error] = {"seconds": seconds, "samples": samples, "reached": reached,
                                  "evaluations": evaluations}
