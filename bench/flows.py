"""Time of a whole flow to a given error at its end, by headflow and by peers that sample.

headflow's factorised engine is run with tighter and tighter tolerances until the end is as close
to the reference as asked. A sampler has two errors: that of its steps, made small first, on
few samples; and that of the samples, C N^(-1/2), whose C is measured over several sets of samples.
From these follow the samples that an error needs. If such a run takes at most LIMIT seconds it is
made; if not, its time is extrapolated from the largest runs, and marked so.
"""

import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

from flow_cases import FLOWS, REFERENCES, distance
from flow_program import run_flow

PEERS = Path(__file__).resolve().parent / "peers"
ERRORS = [1e-3, 1e-5]
FEW = 4096  # samples on which the tolerance of the steps is chosen
LADDER = [(2**14, 6), (2**16, 6)]  # samples, sets of them
LARGEST = 6.0  # seconds of the largest runs, from which time and error are extrapolated
LIMIT = 15.0  # seconds of a run that is made rather than extrapolated
SETS = 2  # of samples, of both
LONGEST = 60.0  # seconds after which no tighter tolerance of headflow is tried


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
    asked = [{"samples": n, "seed": s + 1, "tolerance": tolerance}
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


def measurable(error, reference):
    return error > 2 * reference["error"]


def measure_factorised(program, flow, reference, core):
    """The fastest of both integrators for each error; tolerances of engine and steps alike."""
    out = {"name": "headflow, factorised", "errors": {e: None for e in ERRORS}, "closest": None}
    for integrator in ("explicit", "implicit"):
        asked = [e for e in ERRORS if measurable(e, reference)]
        for tolerance in (c * 10.0**-k for k in range(3, 9) for c in (1, 0.3)):
            def attempt():
                return run_flow(program, flow, core, "factorised", tolerance, tolerance, integrator)
            result = attempt()
            error = distance(result["W"], reference["W"])
            if out["closest"] is None or error < out["closest"]["reached"]:
                out["closest"] = {"reached": error, "seconds": result["seconds"]}
            while asked and error <= asked[0]:
                again = [result["seconds"]] + [
                    attempt()["seconds"] for _ in range(2) if result["seconds"] < LIMIT]
                best = out["errors"][asked[0]]
                if best is None or statistics.median(again) < best["seconds"]:
                    out["errors"][asked[0]] = {
                        "seconds": statistics.median(again), "reached": error,
                        "evaluations": result["evaluations"], "tolerance": tolerance,
                        "integrator": integrator}
                asked.pop(0)
            best = out["errors"][asked[0]] if asked else None
            if not asked or result["seconds"] > (best["seconds"] if best else LONGEST / 3):
                break  # slower than what is known, or the next one would take too long
    return out


def measure_flows(program, environment, core):
    references = json.loads(REFERENCES.read_text())
    peers = []
    if environment.has("jax"):
        peers.append(peer(environment.python, "jax_flow.py", core, environment.variables))
    newest = environment.python if environment.has("torch") else "/usr/bin/python3"
    peers.append(peer(newest, "torch_flow.py", core))
    laws = [[own_sampler(program, core)], peers]  # headflow's samples share noise
    out = []
    for flow in FLOWS:
        reference = references[flow.name]
        if (reference["time"], reference["noise"]) != (flow.time, flow.noise):
            sys.exit(f"{REFERENCES.name} is of another {flow.name}: run flow_references.py")
        print(f"flows: {flow.title}", file=sys.stderr, flush=True)
        rows = [measure_factorised(program, flow, reference, core)]
        for samplers in laws:
            tried = [try_sampler(run, flow, reference["W"]) for run in samplers]
            add_law(tried)
            for t in tried:
                reach_errors(t, flow, reference["W"])
            rows += tried
        out.append({"flow": flow, "reference": reference, "rows": rows})
    return out
