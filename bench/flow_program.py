"""Runs one flow with headflow, as a program, on one core and one thread."""

import json
import os
import subprocess
import sys
import time


def matrix(rows):
    return ";".join(",".join(repr(float(x)) for x in row) for row in rows)


def run_flow(program, flow, core, engine, tolerance, step_tolerance, integrator="explicit",
             samples=0, seed=1):
    """[m R] at the end, evaluations, and seconds of the whole process."""
    m, R = flow.start()
    command = [
        program, "flow", f"--activation={flow.activation}", f"--prior={flow.prior}",
        f"--tokens={flow.tokens}", f"--heads={flow.heads}", f"--features={flow.features}",
        f"--nu={flow.nu[0]},{flow.nu[1]}", "--init=point", f"--m={matrix(m)}", f"--R={matrix(R)}",
        f"--engine={engine}", f"--tolerance={tolerance}", f"--samples={samples}", f"--seed={seed}",
        f"--integrator={integrator}", f"--rtol={step_tolerance}", f"--atol={step_tolerance}",
        f"--time={flow.time}", "--outputs=1", "--threads=1", "--quiet", "--json"]
    began = time.perf_counter()
    done = subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    seconds = time.perf_counter() - began
    if done.returncode != 0:
        sys.exit(f"headflow flow failed:\n{done.stderr}")
    end = json.loads(done.stdout)
    W = [row + more for row, more in zip(end["m"], end["R"])]
    return {"W": W, "evaluations": end["evaluations"], "seconds": seconds}
