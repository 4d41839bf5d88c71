"""A query's plan as the view shows it, and what its operators did as a unit reports it."""

from __future__ import annotations

from collections.abc import Iterable

from freshet.model import ChainResult, InstanceView, Train, View
from freshet.quality.periodic.query_model import PlannedOperator, ProfiledRun


def planned_operators(view: View, instance: InstanceView) -> list[PlannedOperator]:
    """The operators of an instance's query, by their numbers as texts. An operator reads edges first, by the names of
    their cursors, then other operators."""
    edges: dict[int, list[str]] = {}
    for each in instance.inputs:
        edges.setdefault(each.node, []).append(each.reader)
    found = []
    for number in view.queries[instance.query].operators:
        operator = view.operators[number]
        inputs = (*edges.get(number, ()), *map(str, operator.inputs))
        found.append(PlannedOperator(str(number), inputs, operator.kind == "join" and operator.ports > 1))
    return found


def profiled_runs(chains: Iterable[ChainResult]) -> list[ProfiledRun]:
    """What the operators of an instance did, with their ports in the order of :func:`planned_operators`."""
    found = []
    for result in chains:
        for place, run in enumerate(result.operators):
            ports = _ports(result) if place == 0 else ()
            rows = ports if len(ports) > 1 else (run.rows_in,)
            found.append(ProfiledRun(str(run.operator), rows, run.rows_out, run.seconds))
    return found


def _ports(result: ChainResult) -> tuple[int, ...]:
    """Tuples that came in at each port of a chain: first those of trains."""
    ports = list(zip(result.chain.inputs, result.entered, strict=False))
    edges = [rows for each, rows in ports if isinstance(each, Train)]
    return (*edges, *(rows for each, rows in ports if not isinstance(each, Train)))
