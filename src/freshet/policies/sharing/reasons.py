"""Why a query does not share, in one line."""

from __future__ import annotations

from collections.abc import Iterator

from freshet.model import Query
from freshet.policies.sharing.sharing import Sharing, why_never
from freshet.policies.sharing.work import WorkKey


def why_not(sharing: Sharing, query: Query) -> str | None:
    """Why a query shares nothing, or less than it could; None: it shares all that it has in common with others.

    >>> from freshet.sql import build_query
    >>> from freshet.model import parse_schema
    >>> schemas = {"s": parse_schema("v int")}
    >>> one, two = [build_query(name, "SELECT v FROM s WHERE v > 1", schemas) for name in ("one", "two")]
    >>> why_not(Sharing([one, two]), one)
    >>> why_not(Sharing([one]), one)
    'no other query has an operator of it'
    >>> why_not(Sharing([one, two], marks={"one.filter_1": 7}), one)
    'one.filter_1 is at another tuple than the same of two'
    >>> why_not(Sharing([one, two], "auto"), one)
    'nothing has been measured of one.filter_1 yet'
    """
    if sharing.mode == "never":
        return 'share is "never"'
    reason = why_never(query)
    if reason is not None:
        return reason
    works = sharing.works[query.name]
    left = {name: work for name, work in works.items() if work.place not in sharing.chosen}
    for name, work in left.items():
        if work.place in sharing.groups:
            return _not_worth(sharing, name, work.place)
        for other in _elsewhere(sharing, query, work):
            verb = "began or is" if query.graph.operators[name].remembers else "is"
            return f"{name} {verb} at another tuple than the same of {other}"
    return "no other query has an operator of it" if len(left) == len(works) else None


def _elsewhere(sharing: Sharing, query: Query, work: WorkKey) -> Iterator[str]:
    """The other queries that do the same work at another place."""
    for other, works in sharing.works.items():
        if other != query.name and any(each.content == work.content for each in works.values()):
            yield other


def _not_worth(sharing: Sharing, name: str, place: str) -> str:
    group = sharing.groups[place]
    if not any(sharing.worth.figures(each, place) for each in group.operators.values()):
        return f"nothing has been measured of {name} yet"
    saved, queues = (f"{1e3 * seconds:.3g} ms" for seconds in sharing.worth.balance(place))
    return f"it is not worth it: sharing {name} would save {saved} a second, and its queues cost {queues}"
