"""Periodic queries: an answer at each release, over windows that end there (RT §2.2).

An aggregate over a window of time of one stream keeps panes, as with ``[RANGE w SLIDE period]``: each release closes a
boundary. Everything else runs as a batch over what its windows hold at the release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from freshet.model.graph import QueryGraph
from freshet.model.query import Query
from freshet.model.scheduling.instance import InputWindow
from freshet.model.schema import WEIGHT
from freshet.sql.flows.flow import Flow, Want, refuse_table
from freshet.sql.flows.released import ReleasedFlow, check_window
from freshet.sql.flows.window import WindowFlow
from freshet.sql.flows.wiring import Wiring
from freshet.sql.lower.graph import GraphBuilder
from freshet.sql.lower.logical import Aggregate, Applied, Distinct, LogicalJoin, SetOperation, Window
from freshet.sql.lower.lower import Lowering
from freshet.sql.parse.errors import SqlError, TextPlace, fail
from freshet.sql.parse.text import column

_WINDOW: Final = "PERIOD needs a window after every stream, as in FROM s [RANGE 1 MINUTE]"
_APART: Final = (LogicalJoin, SetOperation, Applied)


def lower_periodic(query: Query, graph: GraphBuilder, changes: TextPlace | None, whole_windows: bool = False) -> Query:
    """A periodic query as it runs: its operators, and what an instance sees at each edge from a stream. With
    ``whole_windows`` no panes are kept.

    Raises:
        SqlError: A part has no meaning at a release.
    """
    place = _place(query.text)
    if changes is not None:
        raise SqlError("EMIT CHANGES and PERIOD exclude each other: a release gives one answer", changes)
    applied = next((name for name, each in graph.operators.items() if isinstance(each, Applied)), None)
    if applied is not None:
        raise SqlError("operators of one's own do not run with PERIOD", place)
    assert query.promises.period is not None
    period = max(1, round(query.promises.period * 1e6))
    panes = _has_panes(graph) and not whole_windows
    flow = _PeriodicLowering(graph, None, {}, (), False, {}, period, panes).flow(query.graph.root)
    refuse_table(flow, "a query reads a stream; join one with it", graph.tables.get(flow.traits.table or ""))
    wiring = Wiring()
    columns = tuple((name, column(name)) for name in flow.traits.names)
    run = wiring.graph(flow.emit(Want(f"{query.name}.project", columns), wiring))
    return replace(query, graph=run, windows=_windows(run, wiring, panes, place), has_time=True, order=None)


def check_estimates(graph: GraphBuilder, periodic: bool) -> None:
    """Refuses estimates where the weights of tuples are not known.

    Raises:
        SqlError: The query is not periodic, or it is more than one aggregate over one stream.
    """
    every = list(graph.operators.values())
    asking = [each for each in every if isinstance(each, Aggregate) and WEIGHT in f"{each.columns} {each.having}"]
    if not asking:
        return
    place = graph.places[asking[0].name]
    if not periodic:
        raise fail("estimate() and error_bound() are for queries with PERIOD: others have no levels", place)
    folds = sum(isinstance(each, Aggregate | Distinct | Applied) for each in every)
    if folds > 1 or any(len(inputs) > 1 for inputs in graph.inputs.values()):
        raise fail("estimate() and error_bound() are for one aggregate over one stream, without joins", place)


def _windows(run: QueryGraph, wiring: Wiring, panes: bool, place: TextPlace | None) -> dict[str, InputWindow]:
    found: dict[str, InputWindow] = {}
    for name, inputs in run.inputs.items():
        for source in inputs:
            if source not in run.operators:
                if not panes and name not in wiring.windows:
                    raise SqlError(_WINDOW, place)
                found[name] = InputWindow() if panes else wiring.windows[name]
    return found


def _has_panes(graph: GraphBuilder) -> bool:
    """Whether all that is computed is computed over one window of time of one stream."""
    windows = [each for each in graph.operators.values() if isinstance(each, Window)]
    streams = [name for inputs in graph.inputs.values() for name in inputs if name not in graph.operators]
    streams = [name for name in streams if name not in graph.tables]
    joins = [name for name, each in graph.operators.items() if isinstance(each, _APART)]
    apart = any(not set(graph.inputs[name]) & graph.tables.keys() for name in joins)
    folds = any(isinstance(each, Aggregate | Distinct) for each in graph.operators.values())
    return folds and not apart and len(windows) == 1 == len(streams) and windows[0].size is not None


@dataclass(frozen=True, slots=True)
class _PeriodicLowering(Lowering):
    """Flows of a query whose windows end at releases."""

    period: int
    panes: bool

    def window(self, window: Window, child: Flow, source: str) -> Flow:
        place = self.graph.places[window.name]
        if not self.panes:
            return ReleasedFlow(window, child, place)
        check_window(window, place)
        return WindowFlow(replace(window, slide=self.period / 1e6), child, source, place)


def _place(text: str) -> TextPlace:
    start = text.upper().rfind("PERIOD")
    return start, start + len("PERIOD") - 1
