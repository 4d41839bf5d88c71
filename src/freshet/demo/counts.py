"""Checks by counts whether everything that came in was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import freshet

Figures = Mapping[str, Any]


def readings(app: freshet.App) -> dict[str, Counter[str]]:
    """How often each query reads each stream or output."""
    graphs = {name: query.graph for name, query in app.checked().queries.items()}
    return {
        name: Counter(each for inputs in graph.inputs.values() for each in inputs if each not in graph.operators)
        for name, graph in graphs.items()
    }


def unanswered(read: Mapping[str, Mapping[str, int]], meters: Figures) -> dict[str, int]:
    """By query, the number of tuples in its inputs that it has not answered; below 0: answered twice.

    Args:
        read: The result of :func:`readings`.
        meters: The result of ``Run.meters`` or ``Run.report``.

    >>> meters = {"streams": {"s": {"tuples": 10}}, "queries": {
    ...     "a": {"tuples_in": 10, "tuples_out": 4}, "b": {"tuples_in": 13, "tuples_out": 0}}}
    >>> unanswered({"a": {"s": 1}, "b": {"a": 1, "s": 1}}, meters)
    {'a': 0, 'b': 1}
    """
    return {
        name: sum(times * _length(stream, meters) for stream, times in streams.items())
        - int(meters["queries"][name]["tuples_in"])
        for name, streams in read.items()
    }


def _length(stream: str, meters: Figures) -> int:
    found = meters["streams"].get(stream)
    return int(found["tuples"]) if found else int(meters["queries"][stream]["tuples_out"])
