import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ensemble_gpu.cli import doctor, driver, findings, selftest
from ensemble_gpu.cli.driver import Device, Driver
from ensemble_gpu.cli.facts import Cupy, Facts, Namespace, gather
from ensemble_gpu.cli.findings import examine

ROOT = Path(__file__).parents[2]
T4 = Device("Tesla T4", (7, 5), 16 * 2**30)
V100 = Device("Tesla V100", (7, 0), 32 * 2**30)
REQUIRED = {
    "numpy": "2.4.6",
    "numba": "0.68.1",
    "array-api-compat": "1.16.0",
    "array-api-extra": "0.11.5",
    "threadpoolctl": "3.6.0",
    "scikit-learn": "1.9.1",
}

LAPTOP = Facts(
    version="0.1.0",
    python="3.12.1",
    system="Linux x86_64",
    packages=REQUIRED,
    hardware=False,
    namespaces=(Namespace("numpy", "host", "cpu"),),
)
SERVER = replace(
    LAPTOP,
    packages={**REQUIRED, "numba-cuda": "0.30.4", "cuda-bindings": "13.0.1"},
    cupy_wheels={"cupy-cuda13x": "14.2.0"},
    cupy=Cupy((13, 0), sees_gpu=True),
    driver=Driver((13, 0), (T4,)),
    driver_release="580.65.06",
    hardware=True,
    kernels=True,
    namespaces=(*LAPTOP.namespaces, Namespace("cupy", "cuda", "cuda")),
)


def only(facts):
    found = examine(facts)
    assert len(found) == 1, found
    return found[0]


def with_packages(facts, **versions):
    named = {name.replace("_", "-"): version for name, version in versions.items()}
    packages = {k: v for k, v in {**facts.packages, **named}.items() if v is not None}
    return replace(facts, packages=packages)


# --- findings from made-up facts -------------------------------------------------------------


@pytest.mark.parametrize("facts", [LAPTOP, SERVER])
def test_consistent_machines_have_no_findings(facts):
    assert examine(facts) == []


def test_an_older_cuda_than_the_drivers_is_fine():
    facts = replace(SERVER, cupy=Cupy((12, 8), True), cupy_wheels={"cupy-cuda12x": "14.2.0"})
    assert examine(with_packages(facts, cuda_bindings="12.8.0")) == []


@pytest.mark.parametrize("name", list(findings.OLDEST))
def test_an_old_or_absent_requirement_is_broken(name):
    old = only(replace(LAPTOP, packages={**REQUIRED, name: "0.0.1"}))
    assert old.broken
    assert f"'{name}>={findings.OLDEST[name]}'" in old.fix
    gone = only(replace(LAPTOP, packages={k: v for k, v in REQUIRED.items() if k != name}))
    assert gone.broken
    assert gone.problem == f"{name} is not installed."


def test_no_driver_without_hardware_is_only_a_note():
    found = only(replace(SERVER, driver=None, hardware=False, cupy=Cupy((13, 0))))
    assert not found.broken
    assert "no NVIDIA driver" in found.problem
    assert "none needed" in found.fix


@pytest.mark.parametrize(("facts", "broken"), [(LAPTOP, False), (SERVER, True)])
def test_hardware_without_driver_is_broken_where_cuda_packages_want_it(facts, broken):
    found = only(replace(facts, driver=None, hardware=True))
    assert found.broken is broken
    assert "nvidia-smi" in found.fix


def test_a_driver_that_does_not_start_is_broken():
    found = only(replace(SERVER, driver=Driver((13, 0), (), 803), cupy=Cupy((13, 0))))
    assert found.broken
    assert "803" in found.problem
    assert "restart" in found.fix


def test_a_driver_without_a_gpu_is_only_a_note():
    found = only(replace(SERVER, driver=Driver((13, 0), (), driver.NO_DEVICE)))
    assert not found.broken
    assert "--gpus all" in found.fix


def test_hidden_devices_are_noted():
    hidden = Driver((13, 0), (), driver.NO_DEVICE)
    found = only(replace(SERVER, driver=hidden, visible_devices="-1"))
    assert not found.broken
    assert "unset CUDA_VISIBLE_DEVICES" in found.fix


@pytest.mark.parametrize(
    ("cuda", "extra"), [((12, 4), "cuda12"), ((13, 1), "cuda13"), ((14, 0), "cuda13")]
)
def test_a_gpu_without_cupy_is_told_which_extra_to_install(cuda, extra):
    facts = replace(LAPTOP, driver=Driver(cuda, (T4,)), hardware=True)
    found = only(facts)
    assert found.fix == f"pip install 'ensemble_gpu[{extra}]'"
    assert not found.broken
    assert only(with_packages(facts, numba_cuda="0.30.4", cuda_bindings="12.1")).broken


def test_several_builds_of_cupy_are_broken():
    wheels = {"cupy-cuda12x": "13.0.0", "cupy-cuda13x": "14.2.0"}
    found = only(replace(SERVER, cupy_wheels=wheels))
    assert found.broken
    assert found.fix == (
        "pip uninstall -y cupy-cuda12x cupy-cuda13x, then pip install 'ensemble_gpu[cuda13]'"
    )


def test_cupy_that_cannot_be_imported_is_broken():
    error = "ImportError: libcublas.so.12: cannot open shared object file"
    facts = replace(SERVER, cupy=Cupy(error=error), broken={"cupy": error})
    found = only(facts)
    assert found.broken
    assert error in found.problem


def test_cupy_for_a_newer_cuda_than_the_drivers_is_broken():
    facts = replace(SERVER, driver=Driver((12, 4), (T4,)), cupy=Cupy((13, 0), False))
    found = only(with_packages(facts, cuda_bindings="12.4.1"))
    assert found.broken
    assert "CUDA 13" in found.problem
    assert "CUDA 12" in found.problem
    assert found.fix == (
        "update the driver to 580 or newer, or pip uninstall -y cupy-cuda13x and "
        "pip install 'ensemble_gpu[cuda12]'"
    )


def test_a_driver_older_than_every_extra_must_be_updated():
    facts = replace(SERVER, driver=Driver((11, 8), (T4,)), cupy=Cupy((12, 0), False))
    found = only(with_packages(facts, cuda_bindings=None))
    assert found.fix == "update the driver to 525 or newer"


def test_cupy_that_sees_no_gpu_is_broken():
    found = only(replace(SERVER, cupy=Cupy((13, 0), sees_gpu=False)))
    assert found.broken
    assert "cupy.show_config()" in found.fix


def test_missing_numba_cuda_means_the_slow_engine():
    found = only(with_packages(SERVER, numba_cuda=None, cuda_bindings=None))
    assert found.broken
    assert "reference engine" in found.problem
    assert found.fix == "pip install 'ensemble_gpu[cuda13]'"


@pytest.mark.parametrize("version", ["0.18.1", "0.29.99", "0.4"])
def test_old_numba_cuda_is_broken(version):
    found = only(with_packages(SERVER, numba_cuda=version))
    assert found.broken
    assert found.fix == "pip install --upgrade 'numba-cuda>=0.30,<0.31'"


@pytest.mark.parametrize("version", ["0.31.0", "1.0"])
def test_newer_numba_cuda_is_only_a_note(version):
    found = only(with_packages(SERVER, numba_cuda=version))
    assert not found.broken
    assert "newer" in found.problem


def test_numba_cuda_for_a_newer_cuda_than_the_drivers_is_broken():
    facts = replace(
        SERVER, driver=Driver((12, 4), (T4,)), cupy=Cupy((12, 4), True),
        cupy_wheels={"cupy-cuda12x": "14.2.0"}, kernels=False,
    )  # fmt: skip
    found = only(facts)
    assert found.broken
    assert "cuda-bindings 13.0.1" in found.problem


def test_numba_cuda_that_sees_no_gpu_is_broken():
    found = only(replace(SERVER, kernels=False))
    assert found.broken
    assert "cuda.detect()" in found.fix


def test_a_gpu_below_the_lowest_capability_is_broken_unless_there_is_another():
    alone = only(replace(SERVER, driver=Driver((13, 0), (V100,))))
    assert alone.broken
    assert "7.0" in alone.problem
    assert "device='cpu'" in alone.fix
    beside = only(replace(SERVER, driver=Driver((13, 0), (V100, T4))))
    assert not beside.broken
    assert "CUDA_VISIBLE_DEVICES=1" in beside.fix


def test_an_array_library_that_fails_is_broken():
    found = only(replace(LAPTOP, broken={"jax": "RuntimeError: no backend"}))
    assert found.broken
    assert "jax" in found.problem


def test_the_simulator_on_a_gpu_machine_is_pointed_out():
    assert "unset NUMBA_ENABLE_CUDASIM" in only(replace(SERVER, simulator=True)).fix
    assert examine(replace(LAPTOP, simulator=True)) == []


def test_the_floors_are_those_of_the_project_file():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert dict(text.split(">=") for text in project["dependencies"]) == findings.OLDEST
    extras = project["optional-dependencies"]
    bounds = f">={findings.OLDEST_NUMBA_CUDA},<{findings.NEXT_NUMBA_CUDA}"
    for major in findings.FIRST_DRIVER:
        assert f"numba-cuda[cu{major}]{bounds}" in extras[f"cuda{major}"]


# --- the report ------------------------------------------------------------------------------


def test_the_report_of_a_laptop_is_polite_about_the_gpu():
    text = doctor.report(LAPTOP, examine(LAPTOP))
    assert "There is no NVIDIA GPU here, which is fine" in text
    assert "problem" not in text


def test_the_report_of_a_server_names_devices_and_engines():
    text = doctor.report(SERVER, examine(SERVER))
    assert re.search(r"0 +Tesla T4 +16\.0 GiB +7\.5", text)
    assert "NVIDIA 580.65.06, runs CUDA up to 13.0" in text
    assert "cuda (numba kernels on the GPU)" in text
    assert "Nothing to fix." in text
    assert max(map(len, text.splitlines())) <= 100


def test_problems_are_numbered_with_their_fix():
    facts = with_packages(SERVER, numba_cuda="0.18.1")
    text = doctor.report(facts, examine(facts))
    assert "1. problem: numba-cuda 0.18.1 is too old" in text
    assert "fix: pip install --upgrade 'numba-cuda>=0.30,<0.31'" in text


@pytest.mark.parametrize(
    ("facts", "code"),
    [(LAPTOP, 0), (SERVER, 0), (replace(SERVER, kernels=False), 1),
     (replace(SERVER, driver=None, hardware=False), 0)],
)  # fmt: skip
def test_exit_code_says_whether_something_is_broken(facts, code, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "gather", lambda: facts)
    assert doctor.run() == code
    assert capsys.readouterr().out.startswith("ensemble_gpu 0.1.0 on Python 3.12.1")


# --- asking the machine ----------------------------------------------------------------------


def test_this_machine_is_described():
    facts = gather()
    assert facts.packages["numpy"] == np.__version__
    assert facts.namespaces[0] == Namespace("numpy", "host", "cpu")
    assert (facts.cupy is None) == (not facts.cupy_wheels)
    assert (facts.kernels is None) == ("numba-cuda" not in facts.packages)
    assert facts.simulator == (os.environ.get("NUMBA_ENABLE_CUDASIM", "0") == "1")
    assert doctor.report(facts, examine(facts))


class FakeLibrary:
    """A driver with one GPU, as ctypes would call it."""

    def __init__(self, error=0):
        self.error = error

    def cuInit(self, flags):
        return self.error

    def cuDriverGetVersion(self, version):
        version._obj.value = 12040

    def cuDeviceGetCount(self, count):
        count._obj.value = 1

    def cuDeviceGet(self, handle, ordinal):
        handle._obj.value = ordinal

    def cuDeviceGetName(self, name, size, handle):
        name.value = b"NVIDIA L4"

    def cuDeviceTotalMem_v2(self, memory, handle):
        memory._obj.value = 24 * 2**30

    def cuDeviceGetAttribute(self, value, attribute, handle):
        value._obj.value = {75: 8, 76: 9}[attribute]


def test_the_driver_is_read_through_its_own_library():
    assert driver.read_driver(None) is None
    l4 = Device("NVIDIA L4", (8, 9), 24 * 2**30)
    assert driver.read_driver(FakeLibrary()) == Driver((12, 4), (l4,))
    assert driver.read_driver(FakeLibrary(error=100)) == Driver((12, 4), (), 100)


def test_the_drivers_release_is_read_from_the_kernel(tmp_path):
    file = tmp_path / "version"
    assert driver.driver_release(file) is None
    file.write_text(
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    )
    assert driver.driver_release(file) == "580.65.06"


def test_hardware_is_looked_for_on_the_bus(tmp_path):
    assert driver.hardware_present(tmp_path / "absent") is None
    for name, vendor, kind in (("a", "0x8086", "0x030000"), ("b", "0x10de", "0x040300")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vendor").write_text(vendor + "\n")
        (tmp_path / name / "class").write_text(kind + "\n")
    assert driver.hardware_present(tmp_path) is False
    (tmp_path / "b" / "class").write_text("0x030200\n")
    assert driver.hardware_present(tmp_path) is True


# --- the self-test ---------------------------------------------------------------------------

REFERENCE = selftest.Target("reference", np.asarray, "reference", forced=True)
TINY = selftest.Sizes(rows=60, features=3, classes=4, rounds=4, long_rounds=6, timed=(80, 3, 3))


@pytest.mark.slow
def test_the_selftest_passes_on_another_engine():
    outcomes = [*selftest.check_kernels(REFERENCE, TINY), *selftest.check_fits(REFERENCE, TINY)]
    assert [o.failure for o in outcomes] == [None] * len(outcomes)
    assert len(outcomes) == 3 * 6 + len(selftest.CASES) + 1
    kernels = {"encode", "requantise, histogram", "score", "update", "requantise, used", "predict"}
    assert kernels == {o.name.split(" (")[0] for o in outcomes[:18]}


def test_the_selftest_sees_a_different_model():
    shifted = replace(REFERENCE, put=lambda a: a * 2.0 if a.dtype.kind == "f" else a)
    assert "fingerprint" in next(selftest.check_fits(shifted, TINY)).failure
    assert "values differ" in next(selftest.check_kernels(shifted, TINY)).failure


def test_the_selftest_sees_that_another_engine_ran():
    pretender = replace(REFERENCE, engine="cpu")
    failure = selftest._compare_fit(
        type("Model", (), {"engine_": "reference"}), pretender, None, "", np.zeros(1)
    )
    assert failure == "the reference engine ran instead of cpu"


def test_the_selftest_reports_errors_and_goes_on():
    def put(array):
        raise MemoryError("out of device memory")

    broken = replace(REFERENCE, put=put)
    fits = list(selftest.check_fits(broken, TINY))
    kernels = list(selftest.check_kernels(broken, TINY))
    assert {o.failure for o in [*fits, *kernels]} == {"MemoryError: out of device memory"}
    assert (len(fits), len(kernels)) == (len(selftest.CASES) + 1, 3)


def test_without_a_gpu_the_selftest_says_what_would_run(monkeypatch, capsys):
    monkeypatch.setattr(selftest, "target", lambda: None)
    assert doctor._selftest()
    text = capsys.readouterr().out
    assert "no GPU that CuPy can use" in text
    assert all(case.name in text for case in selftest.CASES)


def test_failures_are_printed_and_counted(monkeypatch, capsys):
    outcome = selftest.Outcome("score", "66% of the values differ", 0.1, 0.2)
    monkeypatch.setattr(selftest, "target", lambda: REFERENCE)
    monkeypatch.setattr(selftest, "check_kernels", lambda where, sizes: [outcome])
    monkeypatch.setattr(selftest, "check_fits", lambda where, sizes: [])
    assert not doctor._selftest()
    text = capsys.readouterr().out
    assert "FAILED score: 66% of the values differ" in text
    assert "1 of 1 tests failed" in text


@pytest.mark.long
def test_the_selftest_runs_in_the_simulator():
    code = (
        "from itertools import islice; from ensemble_gpu.cli import selftest as s; "
        "t = s.target(); size = s.Sizes(12, 2, 2, 1, 2, None); s.CASES = s.CASES[3:4]; "
        "outcomes = [*islice(s.check_kernels(t, size), 6), *s.check_fits(t, size)]; "
        "print(t.name, len(outcomes), [o for o in outcomes if o.failure])"
    )
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "simulator 7 []", done.stdout + done.stderr
