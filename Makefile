# Every target makes the environment that it needs; `make help` lists them.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip --quiet --disable-pip-version-check

# Two processes; a file's tests share what they fitted.
PYTEST = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Bytecode is kept whatever the environment says: without it every process compiles all that it
# imports, and rewrites the assertions of all test files. It is made on first use: of the packages
# that are installed most files are never imported.
export PYTHONDONTWRITEBYTECODE =

.PHONY: help demo test test-fast test-long test-interop test-dask test-cuda test-gpu lint bench bench-quick bench-final clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/%.installed: pyproject.toml | $(BIN)/python
	$(PIP) install --no-compile --editable ".[$(subst +,$(comma),$*)]"
	@touch $@

comma := ,

demo: $(VENV)/plot+test.installed  ## train, compare with scikit-learn, draw pictures
	$(BIN)/python -m ensemble_gpu demo

test: $(VENV)/plot+test.installed  ## the tests, the CUDA engine under the simulator included
	$(PYTEST) -m "not interop and not long and not dask" --ignore=tests/cuda --ignore=tests/dask
	NUMBA_ENABLE_CUDASIM=1 $(PYTEST) -m "not long" --dist load tests/cuda/simulator

test-long: $(VENV)/plot+test.installed  ## those that take long: all combinations, many seeds, compiling anew, late threads
	$(PYTEST) -m "long and not interop" --dist load --ignore=tests/cuda --ignore=tests/dask
	NUMBA_ENABLE_CUDASIM=1 $(PYTEST) -m long --dist load tests/cuda/simulator

test-fast: $(VENV)/plot+test.installed  ## the inner loop: every room, without the tests marked slow and the simulator
	$(PYTEST) -m "not slow and not long and not interop and not dask" --ignore=tests/cuda --ignore=tests/dask

test-interop: $(VENV)/test+interop+onnx+treelite.installed  ## the tests that need torch, JAX, shap, onnxruntime and Treelite
	$(BIN)/python -m pytest -m interop

test-dask: $(VENV)/dask+test+test-dask.installed  ## fits on Dask clusters and with MPI: same models, kills, TLS
	$(BIN)/python -m pytest tests/dask tests/distributed/test_mpi.py tests/distributed/test_sockets.py

test-cuda: VENV = .venv-cuda
test-cuda:  ## kernels to PTX and SASS; needs no GPU
	$(MAKE) VENV=.venv-cuda .venv-cuda/test+cuda-proof.installed
	.venv-cuda/bin/python -m pytest tests/cuda/compiled

test-gpu: $(VENV)/plot+test.installed  ## the tests on CuPy arrays; needs a GPU and a cuda extra
	$(BIN)/python -m ensemble_gpu doctor
	ENSEMBLE_GPU_TEST_CUPY=1 $(PYTEST) -m "not interop" --ignore=tests/cuda --ignore=tests/dask

lint: $(VENV)/dev+test.installed  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/bench.installed  ## side by side with the peers
	$(BIN)/python -m bench

bench-quick: $(VENV)/bench.installed  ## the same in under three minutes
	$(BIN)/python -m bench --quick

bench-final: $(VENV)/bench.installed  ## the same as bench, part by part in processes of their own
	$(BIN)/python -m bench.final

clean:  ## remove environments, caches and compiled kernels
	rm -rf .venv .venv-cuda build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis demo_output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
