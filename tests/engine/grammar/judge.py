"""Whether what Freshet gave out is what DuckDB gives in one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal
from unittest.mock import patch

from tests.engine.grammar.batch import answers
from tests.engine.grammar.cases import START, Case, Play
from tests.engine.grammar.compare import plain, same, within
from tests.engine.grammar.forms import Body, Combined, Derived, Kind, Member, Named, Query, Select
from tests.engine.grammar.left_out import left_out, with_edges
from tests.engine.grammar.logs import STREAMS
from tests.engine.grammar.shapes import body_shape, with_each_tuple

from freshet.engine import fold_states
from freshet.engine.periodic import releases
from freshet.model import releases_between
from freshet.testing.compare import Row

Due = Literal["at once", "closed", "later"]
"""When a row comes: when its tuples have come, when the watermarks of the streams have reached its time, or some time
later."""


@patch.dict(releases.MOST_AT_ONCE, {"catch-up": releases.MOST_AT_ONCE["skip"]})
def check(case: Case) -> tuple[int, int]:
    """Plays a case: before the end of time the rows must be those that are due by then, after it those of the batch.

    Returns how many queries it has, and how many of them have an answer.
    """
    play = Play(case)
    try:
        with patch.object(fold_states, "MOST_PIECES", case.pieces):
            play.play()
        check_releases(play)
        for name, held in play.held.items():
            found, came = ([tuple(map(plain, row)) for row in rows] for rows in (play.app.tuples(name), held.contents))
            assert found == came, f"{case}\n{name} holds {found}, not {came}"
        _check_open(play, _batch(play))
        play.end_time()
        expected = _batch(play)
        check_closed(case, play.app.tuples, expected)
        return len(expected), sum(map(bool, expected.values()))
    finally:
        play.app.close()


def _batch(play: Play) -> dict[str, list[Row]]:
    """What DuckDB gives over log minus ledger."""
    return answers(with_edges(play), play.held, play.releases(), left_out(play))


def check_releases(play: Play) -> None:
    """Every release up to now was answered, or the ledger says that it was skipped."""
    for query in (each for each in play.case.queries if each.period):
        entries = [each for each in play.app.missing(query.name) if each.kind == "skipped"]
        skipped = {number * query.period for each in entries for number in range(each.first, each.end)}
        answered, due = set(play.releases()[query.name]), set(releases_between(START, play.app.now, query.period))
        reasons = {each.reason for each in entries}
        assert play.case.missed == "skip" or reasons <= {"too many were due at once"}, f"{play.case}\n{entries}"
        assert answered.isdisjoint(skipped), f"{play.case}\n{query.name}: {answered & skipped} twice"
        assert answered | skipped == due, f"{play.case}\n{query.name}: {due ^ (answered | skipped)}"


def check_closed(case: Case, tuples: Callable[[str], Sequence[Row]], batch: Mapping[str, Sequence[Row]]) -> None:
    """After all windows have closed, the rows of each query must be those of the batch.

    Args:
        case: The case.
        tuples: Gives the rows of a query, in their order.
        batch: What DuckDB gives.
    """
    for query in case.queries:
        found = tuples(query.name)
        if _tells_changes(query):
            found = _last(found, query)
        _compare(case, query, found, batch[query.name], same, "after all windows have closed")


def _check_open(play: Play, batch: Mapping[str, Sequence[Row]]) -> None:
    """Before that, they must be those that are due."""
    when = dict.fromkeys(STREAMS, "at once") | _when(play.case.queries)
    for query in play.case.queries:
        if _tells_changes(query):
            continue
        expected, due = batch[query.name], when[query.name]
        if due == "closed":
            marks = [play.held[name].watermark for name in _streams(query.body)]
            known = [mark for mark in marks if mark is not None]
            expected = [row for row in expected if len(known) == len(marks) and row[-1] <= min(known)]
        judge = within if due == "later" else same
        _compare(play.case, query, play.app.tuples(query.name), expected, judge, f"while windows are open ({due})")


def _compare(
    case: Case, query: Query, found: Sequence[Row], expected: Sequence[Row], judge: Callable[..., bool], moment: str
) -> None:
    kinds: list[Kind] = [kind for _, kind in body_shape(query.body).columns]
    shown = [row[:-1] for row in expected]
    if not judge(found, shown, kinds):
        raise AssertionError(f"{case}\n{query.name} {moment}\n{_difference(found, shown)}")


def _tells_changes(query: Query) -> bool:
    return isinstance(query.body, Select) and query.body.changes


def _when(queries: Sequence[Query]) -> dict[str, Due]:
    """When the rows of each query come."""
    known: dict[str, Due] = {}
    for query in queries:
        known[query.name] = "at once" if query.period else _due(query.body, known)
    return known


def _due(body: Body, known: Mapping[str, Due]) -> Due:
    selects = body.members if isinstance(body, Combined) else (body,)
    members = [member for select in selects for member in select.members]
    if not all(_is_at_once(member, known) for member in members):
        return "later"
    if any(join.kind == "left" for select in selects for join in select.joins):
        return "later"
    if not _has_boundaries(body):
        return "at once"
    return "closed" if all(_is_of_stream(member) for member in members) else "later"


def _has_boundaries(body: Body) -> bool:
    if isinstance(body, Combined):
        return body.kind != "UNION ALL" or any(_has_boundaries(member) for member in body.members)
    return (body.keys is not None or body.distinct) and not with_each_tuple(body)


def _is_at_once(member: Member, known: Mapping[str, Due]) -> bool:
    if isinstance(member.source, Named):
        return known.get(member.source.name, "at once") == "at once"
    return _due(member.source.body, known) == "at once"


def _is_of_stream(member: Member) -> bool:
    """Whether it goes by the time of a stream itself."""
    source = member.source
    if isinstance(source, Named):
        return source.name in STREAMS
    body = source.body
    selects = body.members if isinstance(body, Combined) else (body,)
    return all(not select.joins and _is_of_stream(select.members[0]) for select in selects)


def _streams(body: Body) -> set[str]:
    """The streams that a query reads."""
    selects = body.members if isinstance(body, Combined) else (body,)
    found = set()
    for member in (member for select in selects for member in select.members):
        found |= _streams(member.source.body) if isinstance(member.source, Derived) else {member.source.name}
    return found


def _last(rows: Sequence[Row], query: Query) -> list[Row]:
    """The last row of each group and window."""
    assert isinstance(query.body, Select)
    count = len(query.body.keys or ()) + 1
    return list({tuple(map(plain, row[:count])): row for row in rows}.values())


def _difference(found: Sequence[Row], expected: Sequence[Row]) -> str:
    ours, theirs = ([tuple(map(plain, row)) for row in rows] for rows in (found, expected))
    only, missing = list(ours), []
    for row in theirs:
        if row in only:
            only.remove(row)
        else:
            missing.append(row)
    return f"Freshet alone: {only}\nDuckDB alone:  {missing}\nboth: {len(ours) - len(only)} rows"
