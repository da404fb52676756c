"""A virtual environment with peers from PyPI, made once and kept.

What cannot be installed (no network, no space, no time) is left out with a remark for the report;
the benchmark goes on without it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PEERS = {  # name: (packages, modules to import, seconds for it, free space in GB)
    "jax": (["jax", "diffrax"], ["jax", "diffrax"], 300, 2),
    # PyPI's torch for Linux brings several GB of libraries for graphics cards, unused here
    "torch": (["torch"], ["torch", "numpy"], 600, 12),
}


class Environment:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.python = self.folder / "bin" / "python"
        self.remarks = []
        self.found = set()
        # compiled code is kept, so that only the first round waits for the compiler
        self.variables = {"JAX_COMPILATION_CACHE_DIR": str(self.folder / "jax-cache"),
                          "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

    def has(self, peer):
        return peer in self.found

    def add(self, peer):
        """Installs a peer if it is missing."""
        packages, modules, seconds, gigabytes = PEERS[peer]
        reason = self._make()
        if not reason and not self._imports(modules):
            print(f"installing {' and '.join(packages)} from PyPI", file=sys.stderr, flush=True)
            if shutil.disk_usage(self.folder).free < gigabytes * 10**9:
                reason = f"less than {gigabytes} GB of free space"
            else:
                reason = self._run([self.python, "-m", "pip", "install", "--quiet",
                                    "--no-cache-dir", *packages], seconds)
            if not reason and not self._imports(modules):
                reason = "installed, but cannot be imported"
        if reason:
            self.remarks.append(f"{' and '.join(packages)} from PyPI: not here ({reason}).")
            print(self.remarks[-1], file=sys.stderr, flush=True)
        else:
            self.found.add(peer)

    def _make(self):
        if self.python.exists():
            return ""
        return self._run(["/usr/bin/python3", "-m", "venv", self.folder], 120)

    def _imports(self, modules):
        return not self._run([self.python, "-c", f"import {', '.join(modules)}"], 120, quiet=True)

    def _run(self, command, seconds, quiet=False):
        """Why it failed, in a few words, or nothing."""
        environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        try:
            done = subprocess.run([str(c) for c in command], timeout=seconds, env=environment,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        except subprocess.TimeoutExpired:
            return f"not within {seconds} s"
        if done.returncode == 0:
            return ""
        if not quiet:
            print(done.stderr, file=sys.stderr, flush=True)
        return "the installation failed"
