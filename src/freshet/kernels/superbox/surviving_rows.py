"""The tuples of a train that have passed the filters of one chain so far."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.node import Node
from freshet.kernels.expressions.value import Mask, Value, truth


class Survivors:
    """A frame and a mask over it. Masks are combined if that is cheaper than gathering the survivors' columns."""

    __slots__ = ("_frame", "_mask", "count", "errors")

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._mask: Mask | None = None
        self.count = frame.rows
        self.errors = 0

    def keep(self, predicate: Node) -> None:
        """Keeps the tuples for which the predicate is true."""
        mask, frame = self._mask, self._frame
        if mask is not None and predicate.prefers_survivors(self.count, frame.rows):
            frame, mask = self.gather(), None
        value = predicate(frame)
        if value.errors is not None:
            self._count_errors(value)
        passed = truth(value)
        self._mask = mask = passed if mask is None else mask & passed
        self.count = int(np.count_nonzero(mask))

    def project(self, columns: Sequence[Node]) -> None:
        """Replaces the columns by computed ones."""
        values = self.compute(columns)
        self._frame = Frame(self.count, [*values])

    def compute(self, columns: Sequence[Node]) -> list[Value]:
        """The values of expressions over the survivors."""
        frame = self.gather()
        values = [column(frame) for column in columns]
        for number, value in enumerate(values):
            if value.errors is not None:
                self._count_errors(value)
                values[number] = Value(value.values, value.valid)
        return values

    def gather(self) -> Frame:
        """The frame of the survivors alone."""
        if self._mask is not None:
            if self.count < self._frame.rows:
                self._frame = self._frame.take(self._mask.nonzero()[0])
            self._mask = None
        return self._frame

    def _count_errors(self, value: Value) -> None:
        errors = value.errors
        assert errors is not None
        self.errors += int((errors if self._mask is None else errors[self._mask]).sum())
