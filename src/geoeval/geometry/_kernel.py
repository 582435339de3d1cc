"""How kernels are compiled. Import this only from modules that are themselves imported inside functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

_F = TypeVar("_F", bound=Callable[..., Any])


def kernel(function: _F) -> _F:
    """Compile for speed: cached on disk, without the interpreter lock, and never with reordered arithmetic.

    Division by 0 gives inf or NaN as in numpy; the check that Python's rule needs would keep loops from being
    vectorised.
    """
    return cast("_F", numba.njit(cache=True, nogil=True, error_model="numpy")(function))
