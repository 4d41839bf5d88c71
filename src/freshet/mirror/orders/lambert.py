"""The branch of Lambert's W that plans need, in a form that loses no digits."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_SERIES: Final = (
    1.0, 1 / 3, 1 / 36, -1 / 270, 1 / 4320, 1 / 17010, -139 / 5443200, 1 / 204120, -571 / 2351462400,
    -281 / 1515591000,
)  # fmt: skip
"""r = w + w^2/3 + w^3/36 - ... solves r - ln(1 + r) = w^2/2 (the expansion behind Stirling's formula)."""
_NEAR: Final = 0.25
"""Up to this w the series is exact to 1e-15."""
_M1: Final = 0.3361
_M2: Final = -0.0042
_M3: Final = -0.0201


def inverse_log_excess(excess: Floats) -> Floats:
    """Solves r - ln(1 + r) = excess for r >= 0; this is -1 - W(-exp(-1 - excess)) on the branch -1 of Lambert's W.

    The argument of W tends to -1/e for small excess, where all digits of it are lost; the excess itself keeps them.
    It is also about ten times as fast as a W for complex numbers. A first guess with four digits (Barry et al., 2000)
    is refined by one step of Halley.

    >>> r = inverse_log_excess(np.array([0.0, 1e-30, 1.0, 1e6]))
    >>> (r - np.log1p(r))[2:]
    array([1.e+00, 1.e+06])
    >>> float(r[1])
    1.414...e-15
    """
    root = np.sqrt(0.5 * excess)
    r = excess + (2 / _M1) * (1 - 1 / (1 + _M1 * root / (1 + _M2 * excess * np.exp((_M3 * 2**0.5) * root))))
    w = 2.0 * root
    near = w < _NEAR
    far = np.where(near, 1.0, r)
    error = far - np.log1p(far) - excess
    # Halley: f = r - ln(1 + r) - excess, f' = r / (1 + r), f'' = 1 / (1 + r)^2.
    step = error * (1 + far) / far
    r = far - step / (1 - 0.5 * step / (far * (1 + far)))
    if near.any():
        r[near] = _series(w[near])
    return np.asarray(r)


def _series(w: Floats) -> Floats:
    total = np.full_like(w, _SERIES[-1])
    for coefficient in reversed(_SERIES[:-1]):
        total = total * w + coefficient
    return total * w
