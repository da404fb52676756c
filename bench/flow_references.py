#!/usr/bin/env python3
"""Computes the ends that flows.py measures errors against: bench/flow_references.json.

    bench/flow_references.py build/headflow [flow ...]

Takes minutes, hence apart from the benchmark and kept. The engine is the factorised one; the
error is the distance to a run with three times its tolerances.
"""

import argparse
import json
import os
from pathlib import Path

from flow_cases import FLOWS, REFERENCES, distance
from flow_program import run_flow

TOLERANCES = {"fig02": 1e-9, "fig04": 1e-7, "fig04b": 1e-5}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path, help="headflow")
    parser.add_argument("flows", nargs="*", help="all if none is named")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    known = json.loads(REFERENCES.read_text()) if REFERENCES.exists() else {}
    for flow in FLOWS:
        if options.flows and flow.name not in options.flows:
            continue
        fine, coarse = (
            run_flow(options.program.resolve(), flow, options.core, "factorised", t, min(t, 1e-6))
            for t in (TOLERANCES[flow.name], 3 * TOLERANCES[flow.name]))
        error = distance(fine["W"], coarse["W"])
        print(f"{flow.name}: error {error:.1e}, {fine['seconds']:.0f} s", flush=True)
        known[flow.name] = {"tolerance": TOLERANCES[flow.name], "time": flow.time,
                            "noise": flow.noise, "error": error, "W": fine["W"]}
        rows = ",\n".join(f" {json.dumps(name)}: {json.dumps(known[name])}" for name in known)
        REFERENCES.write_text(f"{{\n{rows}\n}}\n")


if __name__ == "__main__":
    main()
