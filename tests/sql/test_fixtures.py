"""Queries with the graphs they become, and wrong queries with the messages they get; see ``fixtures``.

A case is the text of a query, a line of dashes, and what is expected; a line of equals signs ends it.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from freshet.model import Query, UserError
from freshet.sql import SqlError, build_query, describe

FIXTURES = Path(__file__).parent / "fixtures"


def cases(name: str) -> list[tuple[str, str]]:
    blocks = (FIXTURES / f"{name}.txt").read_text().removesuffix("\n").split("\n====\n")
    return [(text, expected) for text, expected in (block.split("\n----\n") for block in blocks)]


def dump(query: Query) -> str:
    promises = query.promises
    promise = f"\nperiod {promises.period} deadline {promises.deadline}" if promises.period else ""
    return describe(query.graph) + promise


@pytest.mark.parametrize(("text", "expected"), cases("good"))
def test_query_becomes_graph(
    text: str, expected: str, streams: dict[str, pa.Schema], times: dict[str, str | None]
) -> None:
    assert dump(build_query("q", text, streams, times=times)) == expected


@pytest.mark.parametrize(("text", "expected"), cases("bad"))
def test_wrong_query_is_explained(
    text: str, expected: str, streams: dict[str, pa.Schema], times: dict[str, str | None]
) -> None:
    with pytest.raises(SqlError) as caught:
        build_query("q", text, streams, times=times)
    assert str(caught.value) == expected
    assert isinstance(caught.value, UserError)


@pytest.mark.parametrize(("text", "expected"), cases("safe"))
def test_safe_form(text: str, expected: str) -> None:
    from freshet.sql import error_count, safe

    assert f"{safe(text)}\n{error_count(text)}" == expected
