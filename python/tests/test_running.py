"""Ctrl-C, threads, progress, memory, time of a call."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import headflow as hf

HEAVY = dict(dim=10_000, batch=10_000, steps=10_000_000, outputs=1000, progress=False)


# No assertion on time, since the machine may be busy: these would take hours, and a run that did not stop would not end.
@pytest.mark.parametrize("delay", [0.2, 1.0])
def test_ctrl_c_stops_and_keeps(two_heads, delay):
    timer = threading.Timer(delay, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(hf.Interrupted) as raised:
        hf.sgd(two_heads, **HEAVY)
    assert isinstance(raised.value, KeyboardInterrupt)
    assert raised.value.result.attrs["outcome"] == "interrupted"
    assert raised.value.result.sizes["time"] >= 1


def test_the_lock_of_the_interpreter_is_released(two_heads):
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    hf.sgd(two_heads, dim=10_000, batch=10_000, steps=150, threads=1, progress=False)
    taken = time.monotonic() - begin
    done.set()
    thread.join()
    assert sum(1 for t in ticks if t < begin + taken) > 5


def test_calls_from_several_threads(two_heads):
    shared = hf.Loss(two_heads, tolerance=1e-6)
    points = [np.array([[1.0, 0.1 * k], [0.5, -0.1 * k]]) for k in range(8)]
    expected = [hf.loss(two_heads, m=m, progress=False).loss for m in points]
    wrong = []

    def work(k):
        for _ in range(3):
            if hf.loss(two_heads, m=points[k], progress=False).loss != expected[k]:
                wrong.append(k)
            if abs(shared(m=points[k]).loss - expected[k]) > 2e-6:
                wrong.append(-k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_may_end_while_a_daemon_computes():
    script = """
import threading, time
import headflow as hf
problem = hf.Problem(prior=hf.gaussian(2, 1), heads=6, tokens=10)
threading.Thread(target=lambda: hf.flow(problem, time=1e7, rtol=1e-10, progress=False), daemon=True).start()
time.sleep(0.5)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr


def test_minima_stop():
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        hf.minima(hf.Problem(prior=hf.gaussian(2, 1), heads=6, tokens=10), starts=1_000_000, progress=False)


def test_progress_is_a_bar_of_tqdm(two_heads, capsys, monkeypatch):
    monkeypatch.setattr("headflow.progress._PATIENCE", 0.0)
    hf.sgd(two_heads, dim=10_000, batch=10_000, steps=600, threads=1, progress=True)
    assert "sgd" in capsys.readouterr().err
    hf.sgd(two_heads, dim=1000, batch=100, steps=10, progress=False)
    assert capsys.readouterr().err == ""


def test_remarks_are_warnings():
    problem = hf.Problem("b-softmax", hf.gaussian(20, 20), heads=8, features=4, tokens=5)
    with pytest.warns(hf.HeadflowWarning, match="tolerance 1e-09 is not reached"):
        hf.loss(problem, m=np.full((8, 4), 6.0), tolerance=1e-9, progress=False)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_no_leaks(two_heads):
    loss = hf.Loss(two_heads, tolerance=1e-4)
    m = np.array([[1.0, 0.5], [1.0, -0.5]])

    def calls(n):
        for _ in range(n):
            loss(m=m)
        for _ in range(n // 100):
            hf.loss(two_heads, m=m, tolerance=1e-3, progress=False)
            hf.flow(two_heads, time=0.1, outputs=2, progress=False)
            with pytest.raises(hf.OptionError):
                hf.flow(two_heads, tme=1)

    calls(2000)
    gc.collect()
    before = resident()
    calls(10_000)
    gc.collect()
    assert resident() - before < 8 << 20
