"""Overlapping queries: which of them share operators, where they stand, and how they get there and back.

What runs is the *form* of a query, in which shared operators may stand for its first ones; the log remembers it. A
query takes up shared operators only *at rest*, when nothing waits for it between operators, so that its place in the
stream is known exactly, and only with queries that stand at the same tuple. It can leave them at any time: what waits
for it is copied to queues of its own. All moves that belong together are one transaction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from freshet.app.forms import Input, Move, inputs_of
from freshet.app.restart import Known, fingerprint, is_parked, recalled, remembered
from freshet.log import Log, ReaderState
from freshet.log.store.private import write_private
from freshet.model import Query, QueryGraph
from freshet.policies.sharing import Mode, OperatorFigures, share

Place: TypeAlias = tuple[tuple[str, int], ...]
"""The streams that a query reads, each with its offset there."""
Costs: TypeAlias = Mapping[str, OperatorFigures]
"""What was measured of operators, by name."""
_COSTS: Final = "costs.json"
"""File of a state folder that keeps it from one run to the next: it decides what queries share."""


def form_of(log: Log, query: Query) -> Query:
    """A query as it runs."""
    known = recalled(log, query.name)
    return query if known is None or known.fingerprint != fingerprint(query) else replace(query, graph=known.form)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Queries that get another form.

    Args:
        forms: They, as they will run.
        commit: Brings their readers there, in one transaction.
    """

    forms: Sequence[Query]
    commit: Callable[[], None]


def arrange(log: Log, queries: Sequence[Query], mode: Mode, costs: Costs | None) -> Arrangement:
    """Has queries whose text says exactly what they do share what is worth it, and leave what is not.

    None of them reads of the log now.
    """
    known = remembered(log)
    current = {query.name: form_of(log, query).graph for query in queries}
    places = {query.name: _place(log, query, known.get(query.name)) for query in queries}
    free = [query for query in queries if mode == "never" or places[query.name] is not None]
    now = {name for query in free for name in current[query.name].from_output if name not in query.graph.operators}
    shared = partial(share, free, mode, costs=costs, shared_now=now)
    wanted = shared(apart=_apart(free, places, current))
    names = {query.name for query in free}
    others = {name for query, each in known.items() if query not in names for name in each.form.from_output}
    if any(not others.isdisjoint(form.graph.operators) for form in wanted):
        # Names of what they share must not be those of operators that stay elsewhere.
        wanted = shared(apart={name: (places[name], log.epoch) for name in names})
    moved = [(query, form) for query, form in zip(free, wanted, strict=True) if form.graph != current[query.name]]
    move = Move(log, _readers_of_others(known, {query.name for query, _ in moved}))
    for query, form in moved:
        before = known.get(query.name)
        if before is not None:
            move.shift(current[query.name], form.graph, ReaderState("", "", 0))
        else:
            streams = [each for each in inputs_of(form.graph) if not each.is_queue]
            for each, (stream, offset) in zip(streams, places[query.name] or (), strict=True):
                move.start(ReaderState(each.reader, stream, offset))
        fresh = before is None or before.fresh
        move.know(query.name, Known(fingerprint(query), query.graph, form.graph, fresh).record())
    return Arrangement([form for _, form in moved], move.commit)


def joined(log: Log, query: Query, running: Sequence[Query], mode: Mode, costs: Costs | None) -> Query:
    """A new query as it begins while others run: with operators that these share already, if it is to stand where they
    do."""
    known = {name: each for name, each in remembered(log).items() if any(other.name == name for other in running)}
    live = {name for each in known.values() for name in each.form.from_output}
    form = share([*running, query], mode, costs=costs, shared_now=live)[-1]
    common = [name for name in form.graph.from_output if name not in query.graph.operators]
    if not common or not live.issuperset(common):
        return query
    ours = [each for each in inputs_of(form.graph) if each.reader in common]
    return form if _stands(log, ours) == _beginning(log, query) else query


def leave(log: Log, query: str) -> None:
    """Brings a query that runs no more back to operators of its own, and parks it there."""
    known = remembered(log)
    mine = known.get(query)
    if mine is None or mine.form == mine.own:
        return
    move = Move(log, _readers_of_others(known, {query}))
    move.shift(mine.form, mine.own, ReaderState("", "", 0, needed=False, parked=True))
    move.know(query, replace(mine, form=mine.own).record())
    move.commit()


def _readers_of_others(known: Mapping[str, Known], queries: Collection[str]) -> set[str]:
    forms = [each.form for name, each in known.items() if name not in queries]
    return {each.reader for form in forms for each in inputs_of(form)}


def _place(log: Log, query: Query, known: Known | None) -> Place | None:
    """Where a query stands that is at rest or new. One that changed starts anew, and one that is out is not there."""
    if known is None:
        return _beginning(log, query)
    if known.fingerprint != fingerprint(query) or is_parked(log, known):
        return None
    return _stands(log, inputs_of(known.form))


def _beginning(log: Log, query: Query) -> Place:
    at = log.oldest if query.start == "earliest" else log.end
    return tuple((each.stream, at(each.stream)) for each in inputs_of(query.graph) if not each.is_queue)


def _stands(log: Log, inputs: Iterable[Input]) -> Place | None:
    """Where inputs stand; None where tuples wait between operators, or are gone."""
    readers = log.readers()
    place: list[tuple[str, int]] = []
    for each in inputs:
        reader = readers.get(each.reader)
        if each.is_queue:
            if reader is not None and reader.next < log.end(each.stream):
                return None
        elif reader is None or reader.next < log.oldest(each.stream):
            return None
        else:
            place.append((each.stream, reader.next))
    return tuple(place)


def _apart(
    queries: Sequence[Query], places: Mapping[str, Place | None], current: Mapping[str, QueryGraph]
) -> dict[str, Hashable]:
    """What keeps queries apart that stand at different tuples of a stream. Those of one place are not marked, so that
    the names of what they share say nothing but what it does: those that share already, else the most."""
    weight: Counter[Place | None] = Counter()
    for query in queries:
        sharing = current[query.name] != query.graph
        weight[places[query.name]] += len(queries) + 1 if sharing else 1
    first: dict[tuple[str, ...], Place | None] = {}
    for place, _ in weight.most_common():
        first.setdefault(tuple(stream for stream, _ in place or ()), place)
    return {query.name: place for query in queries if (place := places[query.name]) not in first.values()}


def read_figures(state: Path) -> Costs | None:
    """What runs over a state folder have measured, by operator; None: nothing."""
    try:
        found = json.loads((state / _COSTS).read_text(encoding="utf-8"))
        return {str(name): OperatorFigures(*map(float, figures)) for name, figures in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None  # it is not synced: after a power cut nothing is known


def write_figures(state: Path, figures: Costs | None) -> None:
    """Keeps what was measured, by operator; None: nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_figures(Path(folder), {"q.filter_1": OperatorFigures(cost=2e-6, selectivity=0.5, rate=10.0)})
    ...     read_figures(Path(folder))
    {'q.filter_1': OperatorFigures(cost=2e-06, selectivity=0.5, rate=10.0)}
    """
    if figures:
        write_private(state / _COSTS, json.dumps(figures))
