"""The outputs of many chains, made together if the chains have equal projections.

A chain lets only a few rows of a train pass. To gather and project them chain by chain costs more in calls than in
work. So the rows of all chains with equal projections are gathered one after the other; each chain's output is a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa

from freshet.kernels.expressions.arrow import encode
from freshet.kernels.expressions.frame import Frame
from freshet.kernels.expressions.value import Index
from freshet.kernels.superbox.chain import ChainOutput, CompiledChain, Selected
from freshet.model.messages import sentence

_MOST_ROWS: Final = 1 << 16
"""Number of rows to project at a time: larger arrays do not fit the caches, and calls no longer matter."""


class _Waiting(NamedTuple):
    """A chain whose filters have run: its number, and the rows that passed."""

    number: int
    selected: Selected
    rows: Index


class Outputs:
    """Makes the outputs of chains.

    Args:
        chains: All chains of a program.
    """

    def __init__(self, chains: Sequence[CompiledChain]) -> None:
        self._chains = chains
        alike: dict[tuple[object, ...], list[int]] = {}
        for number, chain in enumerate(chains):
            if chain.alike is not None:
                alike.setdefault(chain.alike, []).append(number)
        self._groups = [numbers for numbers in alike.values() if len(numbers) > 1]
        self._alone = sorted(set(range(len(chains))).difference(*self._groups))

    def run(self, frame: Frame) -> list[ChainOutput]:
        """The outputs of all chains. A chain that raises does not stop the others."""
        outputs = {number: self._run_alone(number, frame) for number in self._alone}
        for numbers in self._groups:
            outputs.update(self._run_group(numbers, frame))
        return [outputs[number] for number in range(len(self._chains))]

    def _run_alone(self, number: int, frame: Frame) -> ChainOutput:
        chain = self._chains[number]
        try:
            return chain.finish(chain.select(frame))
        except Exception as error:  # whatever it is, it is this chain's failure alone
            return chain.failed(sentence(error))

    def _run_group(self, numbers: Sequence[int], frame: Frame) -> dict[int, ChainOutput]:
        outputs: dict[int, ChainOutput] = {}
        waiting: list[_Waiting] = []
        count = 0
        for number in numbers:
            chain = self._chains[number]
            try:
                selected = chain.select(frame)
                rows = selected.places()
                if rows is None:
                    outputs[number] = chain.finish(selected)
                    continue
            except Exception as error:  # whatever it is, it is this chain's failure alone
                outputs[number] = chain.failed(sentence(error))
                continue
            waiting.append(_Waiting(number, selected, rows))
            count += len(rows)
            if count >= _MOST_ROWS:
                outputs.update(self._flush(waiting, frame))
                waiting, count = [], 0
        outputs.update(self._flush(waiting, frame))
        return outputs

    def _flush(self, waiting: Sequence[_Waiting], frame: Frame) -> dict[int, ChainOutput]:
        if not waiting:
            return {}
        try:
            return self._together(waiting, frame)
        except Exception:  # one of them raises: run each by itself to find out which
            return {each.number: self._run_alone(each.number, frame) for each in waiting}

    def _together(self, waiting: Sequence[_Waiting], frame: Frame) -> dict[int, ChainOutput]:
        began = perf_counter_ns()
        chain = self._chains[waiting[0].number]
        ends = np.cumsum([0, *(len(each.rows) for each in waiting)])
        values = chain.project(frame.take(np.concatenate([each.rows for each in waiting])))
        errors = np.zeros(len(waiting), np.int64)
        for value in values:
            if value.errors is not None:
                sums = np.concatenate([[0], np.cumsum(value.errors)])
                errors += sums[ends[1:]] - sums[ends[:-1]]
        arrays = [encode(value, kind) for value, kind in zip(values, chain.schema.types, strict=True)]
        batch = pa.RecordBatch.from_arrays(arrays, schema=chain.schema)
        per_row = (perf_counter_ns() - began) / int(ends[-1])
        outputs = {}
        for place, each in enumerate(waiting):
            part = batch.slice(int(ends[place]), len(each.rows))
            outputs[each.number] = chain.output(
                each.selected, part, max(1, int(per_row * len(each.rows))), int(errors[place])
            )
        return outputs
