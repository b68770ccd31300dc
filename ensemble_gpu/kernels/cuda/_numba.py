"""The one import of numba's CUDA target.

With the package numba-cuda installed `numba.cuda` is that package; without it, only the simulator
inside numba is of use. Every kernel file takes `cuda` from here and keeps it as a module global,
because the simulator replaces that global while a kernel runs. For the same reason a device
function that uses `cuda` lives in the file of the kernels that call it.
"""

from numba import cuda

__all__ = ["cuda"]
