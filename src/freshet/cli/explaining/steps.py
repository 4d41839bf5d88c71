"""The part of ``freshet explain`` on what queries have in common when one step runs several of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from freshet.app.declared.checking import Checked
from freshet.kernels import why_not
from freshet.kernels.folds.panes.common import common_width
from freshet.kernels.superbox.family import families
from freshet.kernels.superbox.pipeline import head
from freshet.model import Operator, QueryGraph
from freshet.model.units import duration_text

NamedChain = tuple[str, tuple[Operator, ...]]
"""A query, and what it does with a stream."""

_MOST_NAMES: Final = 8
_MOST_LINES: Final = 20


def common_steps(checked: Checked, chosen: Collection[str]) -> Iterator[Iterator[str]]:
    """The lines on each stream that several of the chosen queries read in the compiled form."""
    readers: dict[str, list[NamedChain]] = defaultdict(list)
    # An instance of a periodic query reads a window of its own.
    for query in (each for each in checked.queries.values() if not each.is_periodic):
        for stream, operators in _paths(query.graph):
            schema = checked.schemas.get(stream)
            if schema is not None and why_not(head(operators), schema) is None:
                readers[stream].append((query.name, operators))
    for stream, chains in readers.items():
        names = list(dict.fromkeys(name for name, _ in chains))
        if len(names) > 1 and not set(chosen).isdisjoint(names):
            yield _lines(stream, names, chains)


def _paths(graph: QueryGraph) -> Iterator[tuple[str, tuple[Operator, ...]]]:
    """What a query does with each thing that it reads, up to where several inputs come together."""
    readers = {source: name for name in graph.order for source in graph.inputs[name]}
    for name in graph.order:
        for source in graph.inputs[name]:
            if source not in graph.operators:
                yield source, tuple(_onwards(graph, readers, name))


def _onwards(graph: QueryGraph, readers: Mapping[str, str], name: str | None) -> Iterator[Operator]:
    while name is not None and len(graph.inputs[name]) == 1:
        yield graph.operators[name]
        name = readers.get(name)


def _lines(stream: str, names: Sequence[str], chains: Sequence[NamedChain]) -> Iterator[str]:
    yield f"a step over {stream} that runs several of {_listed(names)}"
    yield "  reads its train once for all of them"
    found = [*_expressions(chains), *_panes(chains)]
    yield from (f"  computes {text} once for {_listed(served)}" for text, served in found[:_MOST_LINES])
    if len(found) > _MOST_LINES:
        yield f"  and {len(found) - _MOST_LINES} more"


def _expressions(chains: Sequence[NamedChain]) -> list[tuple[str, list[str]]]:
    """Expressions over the stream's own columns that several queries have, the most common ones first."""
    served: dict[str, dict[str, None]] = defaultdict(dict)
    for name, operators in chains:
        for operator in head(operators):
            for text in operator.expressions:
                if not text.isidentifier():
                    served[text][name] = None
            if operator.makes is not None:
                break
    shared = [(text, list(names)) for text, names in served.items() if len(names) > 1]
    return sorted(shared, key=lambda each: -len(each[1]))


def _panes(chains: Sequence[NamedChain]) -> Iterator[tuple[str, list[str]]]:
    """What sliding aggregates have in common."""
    for family in families([operators for _, operators in chains]):
        keys = f" for each {', '.join(family.keys)}" if family.keys else ""
        width = duration_text(common_width(family.panes) / 1e6)
        yield f"partial answers of {width}{keys}", [chains[number][0] for number in family.members]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more
