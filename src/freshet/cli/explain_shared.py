"""The part of ``freshet explain`` on work that queries share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from freshet.app.checking import Checked, may_share
from freshet.model import Query
from freshet.policies.sharing import Shared, share


def shared_work(checked: Checked, chosen: Collection[str]) -> Iterator[Iterator[str]]:
    """The lines on each piece of work that the chosen queries share once they stand at the same tuple."""
    found = share([query for query in checked.queries.values() if may_share(query, checked)])
    works = [query for query in found.queries if query.hidden]
    labels = {query.name: f"shared work {number}" for number, query in enumerate(works, 1)}
    for query in works:
        if not set(chosen).isdisjoint(found.members[query.name]):
            yield _lines(query, found, labels)


def _lines(work: Query, found: Shared, labels: Mapping[str, str]) -> Iterator[str]:
    (path,) = work.paths
    yield f"{labels[work.name]} (weight {work.weight:g}), for {', '.join(found.members[work.name])}"
    if work.curve is not None:
        yield f"  sum of their latency curves: utility {work.curve.text()}"
    yield from (f"  {operator.text()}" for operator in path.operators)
    yield f"  reads {labels.get(path.stream, path.stream)}"
    for reader in found.queries:
        if work.name in reader.graph.streams:
            left = ", ".join(operator.name for operator in reader.paths[0].operators)
            yield f"  read by {labels[reader.name]}" if reader.hidden else f"  read by {reader.name}, which adds {left}"
