"""The part of ``freshet explain`` on operators that queries share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from freshet.app import App
from freshet.app.declared.checking import Checked, may_share
from freshet.app.remembered.restart import Known
from freshet.app.remembered.sharing import is_free, read_figures, shared_work
from freshet.log import LogReader
from freshet.model import FreshetError, Query
from freshet.model.promises.promise import shared
from freshet.policies.sharing import Sharing, shared_by, why_not


@dataclass(frozen=True, slots=True)
class SharedWork:
    """What queries of an application would share if it were started now.

    Args:
        sharing: What those share that may.
        reasons: Why the others share nothing, by query.
    """

    sharing: Sharing
    reasons: Mapping[str, str]

    @classmethod
    def of(cls, app: App, checked: Checked) -> SharedWork:
        """From where queries are in the state folder, if there is one, and from what was measured there."""
        with ExitStack() as stack:
            log, known = None, dict[str, Known]()
            try:
                log = stack.enter_context(LogReader(app.state))
                known = {name: Known.of(record) for name, record in log.queries().items()}
            except FreshetError:
                pass  # there is no state yet, or none that can be read: all queries are new
            reasons: dict[str, str] = {}
            for name, query in checked.queries.items():
                if not may_share(query, checked.schemas):
                    reasons[name] = "only Spark knows the types of all that it reads"
                elif log is not None and not is_free(log, query, known.get(name)):
                    reasons[name] = "it changed or was out, and starts by itself"
            free = [query for name, query in checked.queries.items() if name not in reasons]
            mode, costs = app.settings.share, read_figures(app.state)
            if log is None:
                return cls(Sharing(free, mode, costs=costs), reasons)
            return cls(shared_work(log, free, known, mode, costs), reasons)

    def form(self, query: Query) -> Query:
        """A query as it would run."""
        return query if query.name in self.reasons else self.sharing.form(query)

    def of_query(self, name: str) -> Iterator[str]:
        """The lines on what a query shares, and why it shares no more."""
        forms = {query.name: self.sharing.form(query) for query in self.sharing.queries}
        found: dict[tuple[str, ...], list[str]] = {}
        for operator, members in shared_by(list(forms.values())).items():
            if name in members:
                found.setdefault(tuple(other for other in members if other != name), []).append(operator)
        for others, operators in found.items():
            yield f"  shares {', '.join(operators)} with {', '.join(others)}"
        reason = self.reasons.get(name)
        for query in (each for each in self.sharing.queries if each.name == name):
            reason = why_not(self.sharing, query)
        if reason is not None:
            yield f"  shares {'no more' if found else 'nothing'}: {reason}"

    def operators(self, chosen: Collection[str]) -> Iterator[Iterator[str]]:
        """The lines on each operator that the chosen queries share."""
        forms = [self.sharing.form(query) for query in self.sharing.queries]
        for name, members in shared_by(forms).items():
            if not set(chosen).isdisjoint(members):
                yield _lines(name, [form for form in forms if form.name in members])


def _lines(name: str, forms: Sequence[Query]) -> Iterator[str]:
    promises = shared((form.promises, 0.0) for form in forms)
    graph = forms[0].graph
    yield f"{name} (weight {promises.weight:g}), for {', '.join(form.name for form in forms)}"
    if promises.curve is not None:
        yield f"  sum of their latency curves: utility {promises.curve.text()}"
    yield f"  {graph.operators[name].text()}"
    yield f"  reads {', '.join(dict.fromkeys(graph.inputs[name]))}"
    for reader in dict.fromkeys(reader for form in forms for reader in _readers(name, form)):
        yield f"  read by {reader}"


def _readers(name: str, form: Query) -> Iterator[str]:
    if name == form.graph.root:
        yield f"the output {form.name}"
    yield from (reader for reader, inputs in form.graph.inputs.items() if name in inputs)
