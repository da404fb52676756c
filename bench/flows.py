"""Time of a whole flow to a given error at its end, by headflow and by peers that sample.

headflow's factorised engine is run with tighter and tighter tolerances until the end is as close
to the reference as asked; for the samplers see flow_samplers.py.
"""

import json
import statistics
import sys

from flow_cases import ERRORS, FLOWS, REFERENCES, distance
from flow_program import run_flow
from flow_samplers import add_law, own_sampler, peer, reach_errors, try_sampler

LONGEST = 20.0  # seconds of a run of headflow after which no tighter tolerance is tried
REPEATED = 15.0  # seconds below which a run is timed three times


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
                    attempt()["seconds"] for _ in range(2) if result["seconds"] < REPEATED]
                best = out["errors"][asked[0]]
                if best is None or statistics.median(again) < best["seconds"]:
                    out["errors"][asked[0]] = {
                        "seconds": statistics.median(again), "reached": error,
                        "evaluations": result["evaluations"], "tolerance": tolerance,
                        "integrator": integrator}
                asked.pop(0)
            best = out["errors"][asked[0]] if asked else None
            if not asked or result["seconds"] > (best["seconds"] if best else LONGEST):
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
