from __future__ import annotations

import operator
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from freshet.kernels.expressions.bounds import bound

SIGNS = {"=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@given(st.sampled_from(list(SIGNS)), st.decimals(-200, 200, places=1) | st.sampled_from([Decimal(-128), Decimal(127)]))
def test_every_tinyint_keeps_its_answer(sign: str, number: Decimal) -> None:
    limit = bound(sign, number, np.dtype(np.int8))
    for value in range(-128, 128):
        said = limit if isinstance(limit, bool) else SIGNS[limit.sign](value, limit.constant)
        assert said == SIGNS[sign](value, number)
    assert isinstance(limit, bool) or -128 <= limit.constant <= 127
