"""The part of ``freshet explain`` on operators that queries share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from freshet.app.checking import Checked, may_share
from freshet.model import Query
from freshet.model.promises import shared
from freshet.policies.sharing import Mode, OperatorFigures, share, shared_by


def shared_work(
    checked: Checked, chosen: Collection[str], mode: Mode, costs: Mapping[str, OperatorFigures] | None
) -> Iterator[Iterator[str]]:
    """The lines on each operator that the chosen queries share once they stand at the same tuple."""
    candidates = [query for query in checked.queries.values() if may_share(query, checked.schemas)]
    forms = share(candidates, mode, costs=costs)
    served = shared_by(forms)
    labels = {name: f"shared operator {number}" for number, name in enumerate(served, 1)}
    for name, members in served.items():
        if not set(chosen).isdisjoint(members):
            yield _lines(name, [form for form in forms if form.name in members], labels)


def _lines(name: str, forms: Sequence[Query], labels: Mapping[str, str]) -> Iterator[str]:
    promises = shared((form.promises, 0.0) for form in forms)
    graph = forms[0].graph
    yield f"{labels[name]} (weight {promises.weight:g}), for {', '.join(form.name for form in forms)}"
    if promises.curve is not None:
        yield f"  sum of their latency curves: utility {promises.curve.text()}"
    yield f"  {graph.operators[name].text()}"
    yield f"  reads {labels.get(graph.inputs[name][0], graph.inputs[name][0])}"
    for label in dict.fromkeys(_readers(name, forms, labels)):
        yield f"  read by {label}"


def _readers(name: str, forms: Sequence[Query], labels: Mapping[str, str]) -> Iterator[str]:
    for form in forms:
        [reader] = [each for each, inputs in form.graph.inputs.items() if name in inputs]
        if reader in labels:
            yield labels[reader]
        else:
            left = [each for each in form.graph.order if each not in labels]
            yield f"{form.name}, which adds {', '.join(left)}"
