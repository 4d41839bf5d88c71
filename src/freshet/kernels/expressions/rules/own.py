"""Calls of the user's own functions, which work on Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Final

import numpy as np

from freshet.kernels.expressions.arrow import decode, encode
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node, RuleScope
from freshet.kernels.expressions.types import name
from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.expressions.value import Value, total
from freshet.model.functions import Function, Vectorised

_COST: Final = 50.0
"""Assumed cost of a row, where comparing one number costs 1: the function is Python."""


def own_call(function: Function, scope: RuleScope, arguments: Sequence[Node]) -> Node:
    """The node of a call; if the function raises for a row, the row is NULL, with an error."""
    if not isinstance(function, Vectorised):
        raise Unsupported(f"function {function.name}")
    for node, wanted in zip(arguments, function.takes, strict=True):
        if node.kind != wanted:
            raise Unsupported(f"{name(node.kind)} for {name(wanted)} of function {function.name}")

    def evaluate(frame: Frame) -> Value:
        values = [node(frame) for node in arguments]
        made, failed = function.apply([encode(value, node.kind) for value, node in zip(values, arguments, strict=True)])
        value = decode(made)
        value.errors = reduce(total, [each.errors for each in values])
        if failed:
            errors = np.zeros(frame.rows, np.int32)
            errors[[*failed]] = 1
            value.errors = total(value.errors, errors)
        return value

    return Node(
        function.returns, f"{function.key}({','.join(node.key for node in arguments)})", evaluate, arguments, _COST
    )
