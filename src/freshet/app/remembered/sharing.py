"""Overlapping queries: which of them share operators, where they are, and how they get there and back.

What runs is the *form* of a query, in which shared operators may stand for its own; the log remembers it. Queries take
up a shared operator only if they are at the same tuple of each input, with nothing between their operators. A fold
depends on everything that it ever read: queries share one only if they began at the same tuples, have missed nothing
since, and have brought event time equally far. A query can leave at any time: it takes along copies of what waits for
it and of what its folds remember. All moves that belong together are one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TypeAlias

from freshet.app.remembered.forms import Move, inputs_of, ports_of
from freshet.app.remembered.restart import Known, fingerprint, is_parked, recalled, remembered
from freshet.log import Log, LogReader, ReaderState
from freshet.log.store.private import write_private
from freshet.model import Query, QueryGraph, state_stream
from freshet.policies.sharing import Mode, OperatorFigures, Sharing

Costs: TypeAlias = Mapping[str, OperatorFigures]
"""Figures that were measured, by operator."""
_COSTS: Final = "costs.json"
"""File of a state folder that keeps these figures from one run to the next: they decide what queries share."""


def form_of(log: Log, query: Query) -> Query:
    """A query as it runs."""
    known = recalled(log, query.name)
    return query if known is None or known.fingerprint != fingerprint(query) else replace(query, graph=known.form)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The new forms of queries; ``commit`` brings their readers there, in one transaction."""

    forms: Sequence[Query]
    commit: Callable[[], None]


def arrange(log: Log, queries: Sequence[Query], mode: Mode, costs: Costs | None) -> Arrangement:
    """Makes queries share what is worth it, and leave what is not. None of them may read the log meanwhile."""
    known = remembered(log)
    free = [query for query in queries if is_free(log, query, known.get(query.name))]
    sharing = shared_work(log, free, known, mode, costs)
    pairs = [(query, sharing.form(query)) for query in free]
    moved = [(query, form) for query, form in pairs if form.graph != form_of(log, query).graph]
    return Arrangement([form for _, form in moved], lambda: _move(log, moved, known))


def _move(log: Log, moved: Sequence[tuple[Query, Query]], known: Mapping[str, Known]) -> None:
    """Brings the readers of queries to where they will be in their forms."""
    move = Move(log, _operators_of_others(known, [query.name for query, _ in moved]))
    for query, form in moved:
        before = known.get(query.name)
        if before is None:
            began = _beginning(log, query)
            before = Known(fingerprint(query), query.graph, query.graph, fresh=True, began=began)
            for own, each in zip(inputs_of(query.graph), inputs_of(form.graph), strict=True):
                if not each.is_queue:
                    move.start(ReaderState(each.reader, each.stream, began[own.reader]))
        else:
            move.shift(before.form, form.graph, ReaderState("", "", 0))
        move.know(query.name, replace(before, form=form.graph).record())
    move.commit()


def joined(log: Log, query: Query, running: Sequence[Query], mode: Mode, costs: Costs | None) -> Query:
    """The form of a query that is added while others run: it joins operators that they share already, if it begins
    where they are."""
    known = remembered(log)
    known.pop(query.name, None)
    return shared_work(log, [*running, query], known, mode, costs).joining(query)


def leave(log: Log, query: str) -> None:
    """Brings a query that has ended back to operators of its own, and parks it there."""
    known = remembered(log)
    mine = known.get(query)
    if mine is None or mine.form == mine.own:
        return
    move = Move(log, _operators_of_others(known, [query]))
    move.shift(mine.form, mine.own, ReaderState("", "", 0, needed=False, parked=True))
    move.know(query, replace(mine, form=mine.own).record())
    move.commit()


def is_free(log: Log | LogReader, query: Query, known: Known | None) -> bool:
    """Whether a query may share: one that changed starts anew by itself, and one that is out does not run."""
    return known is None or (known.fingerprint == fingerprint(query) and not is_parked(log, known))


def shared_work(
    log: Log | LogReader, queries: Sequence[Query], known: Mapping[str, Known], mode: Mode, costs: Costs | None
) -> Sharing:
    """What queries would share, from where they are now."""
    names = {query.name for query in queries}
    current = {name: each.form for name, each in known.items() if name in names}
    marks = {name: mark for query in queries for name, mark in _marks(log, query, known.get(query.name)).items()}
    taken = {operator for each in known.values() for operator in each.form.shared}
    return Sharing(queries, mode, costs=costs, current=current, marks=marks, taken=taken)


def _operators_of_others(known: Mapping[str, Known], queries: Sequence[str]) -> set[str]:
    return {name for query, each in known.items() if query not in queries for name in each.form.operators}


def _beginning(log: Log | LogReader, query: Query) -> dict[str, int]:
    at, there = log.oldest if query.start == "earliest" else log.end, log.streams()
    inputs = [each for each in inputs_of(query.graph) if not each.is_queue]
    return {each.reader: at(each.stream) if each.stream in there else 0 for each in inputs}


def _marks(log: Log | LogReader, query: Query, known: Known | None) -> dict[str, Hashable]:
    """Where the operators of a query are, by their names in the query."""
    graph, form = query.graph, query.graph if known is None else known.form
    began = _beginning(log, query) if known is None else known.began
    places = dict[str, Hashable](began or {}) if known is None else _places(log, graph, form)
    marks: dict[str, Hashable] = {}
    for own, name in zip(graph.from_output, form.from_output, strict=True):
        marks[own] = tuple(places.get(each.reader) for each in ports_of(graph, own))
        if graph.operators[own].remembers:
            since, now = ([at.get(each) for each in _firsts(graph, own)] for at in (began or {}, places))
            # A fold that has read nothing remembers nothing.
            seen = None if since == now else _seen(log, name, len(graph.inputs[own]))
            marks[own] = (marks[own], own if began is None else tuple(since), seen)
    return marks


def _places(log: Log | LogReader, graph: QueryGraph, form: QueryGraph) -> dict[str, Hashable]:
    """Where the inputs of a query are, by the names of its own readers. An input between operators has a place only
    while tuples wait in it, and only queries that share it already have the same place; likewise an input whose next
    tuples are gone."""
    readers = log.readers()
    found: dict[str, Hashable] = {}
    for own, each in zip(inputs_of(graph), inputs_of(form), strict=True):
        reader = readers.get(each.reader)
        if each.is_queue:
            if reader is not None and reader.next < log.end(each.stream):
                found[own.reader] = each.reader
        else:
            there = reader is not None and reader.next >= log.oldest(each.stream)
            found[own.reader] = reader.next if reader is not None and there else each.reader
    return found


def _firsts(graph: QueryGraph, name: str) -> Iterator[str]:
    """The readers of all streams that lead to an operator."""
    for each, source in zip(ports_of(graph, name), graph.inputs[name], strict=True):
        if each.is_queue:
            yield from _firsts(graph, source)
        else:
            yield each.reader


def _seen(log: Log | LogReader, fold: str, ports: int) -> tuple[int | None, ...]:
    """How far a fold has brought event time, by port."""
    there = log.streams()
    streams = (state_stream(fold, port) for port in range(ports))
    return tuple(log.watermark(stream) if stream in there else None for stream in streams)


def read_figures(state: Path) -> Costs | None:
    """The figures that earlier runs over a state folder have measured; None: none."""
    try:
        found = json.loads((state / _COSTS).read_text(encoding="utf-8"))
        return {str(name): OperatorFigures(*map(float, figures)) for name, figures in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None  # the file is not synced: a power cut may have damaged it


def write_figures(state: Path, figures: Costs | None) -> None:
    """Keeps the figures of a run, if there are any.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_figures(Path(folder), {"q.filter_1": OperatorFigures(2e-6, 0.5, rate=10.0, together=1.0)})
    ...     read_figures(Path(folder))
    {'q.filter_1': OperatorFigures(cost=2e-06, selectivity=0.5, rate=10.0, together=1.0)}
    """
    if figures:
        write_private(state / _COSTS, json.dumps(figures))
