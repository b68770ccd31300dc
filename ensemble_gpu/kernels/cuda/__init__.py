"""The CUDA engine: numba kernels over device arrays, the same model bit for bit as the others.

A file of kernels reads top to bottom: device functions, kernels, launchers; `trees/` has those of
trees. `_numba.py` is the one import of numba's CUDA target, `launch.py` the one place that
launches, `device.py` the memory and the stream, `limits.py` how large a problem may be.

No machine of this project has a GPU. What was proven of the kernels, and by what:

- simulator (tests/cuda/simulator): results are those of the other engines, and every barrier is
  needed; what runs there is Python.
- compiled code (tests/cuda/compiled): of every kernel, for five compute capabilities, both what
  libnvvm and ptxas make and what nvJitLink makes of it by link-time optimisation, which is what
  users of the extras cuda12 and cuda13 run. No fused multiply-add where it could change a bit, the
  same barriers in both, no spills, no compare-and-swap loops, registers and shared memory in
  bounds. The linker is CUDA 13's.
- executed: `python -m ensemble_gpu doctor --selftest` runs them on your GPU and compares every
  result with the CPU.
"""
