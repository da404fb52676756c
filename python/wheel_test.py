"""The wheel in an empty virtual environment: python/wheel_test.py dist/headflow-*.whl

It must carry all that it needs: libraries that Debian's packages would bring may not be taken from there.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

CHECK = """
import headflow as hf
problem = hf.Problem("b-softmax", hf.gaussian(3, 1), tokens=5, heads=3)
run = hf.flow(problem, time=20, integrator="implicit", tolerance=1e-4, progress=False)
assert float(run.loss[-1]) < float(run.loss[0])
assert hf.fixed_point(hf.Problem(prior=hf.flipping(2)), progress=False).index == 0
maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
carried = ("tbb", "sundials", "fmt", "hwy", "netcdf", "toml")
foreign = [name for name in maps if any(part in name.rsplit("/", 1)[-1] for part in carried) and "headflow.libs" not in name]
assert not foreign, foreign
assert any("headflow.libs" in name for name in maps)
assert not any("netcdf" in name for name in maps)
import importlib.metadata as metadata
files = [str(file) for file in metadata.files("headflow")]
for wanted in ("headflow/py.typed", "headflow/_core.pyi", "LICENSE", "CITATION.cff", "headflow/figures/report.css"):
    assert any(name.endswith(wanted) for name in files), wanted
assert metadata.version("headflow") == hf.__version__
print("headflow", hf.__version__, "from", hf.__file__)
"""


def main():
    wheel = Path(sys.argv[1]).resolve()
    assert "cp310-abi3-manylinux" in wheel.name, wheel.name
    with tempfile.TemporaryDirectory() as folder:
        python = f"{folder}/venv/bin/python"
        subprocess.run(["/usr/bin/python3", "-m", "venv", f"{folder}/venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel], check=True)
        done = subprocess.run([python, "-I", "-c", CHECK], cwd=folder, env={"PATH": "/usr/bin:/bin", "HOME": folder},
                              text=True, capture_output=True)
        print(done.stdout, done.stderr, sep="", end="")
        sys.exit(done.returncode)


if __name__ == "__main__":
    main()
