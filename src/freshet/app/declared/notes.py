"""Notes on an application: what is valid, but perhaps not intended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from freshet.app.declared.spec import StreamSpec
from freshet.model import Join, Operator, Panes, Query, Stream, duration_text


def notes_on(queries: Iterable[Query], specs: Mapping[str, StreamSpec], tables: Iterable[str]) -> list[str]:
    """Streams and tables that nothing reads, and queries whose answers come too late whatever runs first."""
    every, streams = list(queries), {name: spec.stream for name, spec in specs.items()}
    read = {name for query in every for name in query.graph.streams}
    joined = {name for query in every for name in query.graph.tables}
    notes = [f"streams.{name}: no query reads it" for name in streams if name not in read]
    notes += [f"tables.{name}: no query joins with it" for name in tables if name not in joined]
    return notes + [f"queries.{query.name}: {reason}" for query in every for reason in unhelped(query, streams)]


def unhelped(query: Query, streams: Mapping[str, Stream]) -> list[str]:
    """Why scheduling cannot help a query, or not always: one of its operators holds tuples for longer than they are
    worth answering, however soon it runs (WU §4.5). Each reason names both durations.

    Periodic queries are due by their deadlines, not by the validity of tuples.

    >>> from freshet.model import Lifetime, QueryGraph, parse_schema
    >>> ticks = Stream("ticks", parse_schema("ts timestamp, v int"), "ts", validity=5.0, lateness=2.0)
    >>> mean = Panes("q.panes", Lifetime("ts", 60_000_000), 30_000_000)
    >>> unhelped(Query("q", "", QueryGraph({"q.panes": mean}, {"q.panes": ("ticks",)}, "q.panes")), {"ticks": ticks})
    ['a window closes up to 32 s after a tuple came, but tuples of ticks are worth answering for 5 s']
    """
    if query.is_periodic:
        return []
    graph, found = query.graph, list[str]()
    before: dict[str, tuple[str, ...]] = {}
    for name in graph.order:
        sources = [before.get(each, (each,)) for each in graph.inputs[name]]
        before[name] = tuple(dict.fromkeys(stream for each in sources for stream in each))
        found += _reasons(graph.operators[name], [streams[each] for each in before[name] if each in streams])
    return found


def _reasons(operator: Operator, read: Sequence[Stream]) -> Iterator[str]:
    limited = [(stream.validity, stream.name) for stream in read if stream.validity is not None]
    if not limited:
        return
    validity, name = min(limited)
    worth = f"tuples of {name} are worth answering for {duration_text(validity)}"
    if operator.ordered_by is not None:
        yield f"the partners of a tuple may come at any time, but {worth}"
    elif isinstance(operator, Panes) and operator.emit == "closed":
        delay = operator.slide / 1e6 + max(stream.lateness or 0.0 for stream in read)
        if operator.slide > 1 and delay > validity:
            yield f"a window closes up to {duration_text(delay)} after a tuple came, but {worth}"
    elif isinstance(operator, Join):
        delay = max((each.size or 0) / 1e6 for each in operator.validity)
        if delay > validity:
            yield f"a partner may come up to {duration_text(delay)} after a tuple, but {worth}"
