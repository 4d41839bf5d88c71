from __future__ import annotations

import pytest

import freshet
from freshet.app import App, InvalidApp
from freshet.log import Retention
from freshet.model import UserError


def monitor() -> App:
    app = App("monitor")
    app.stream("packets", "host string, size int")
    return app


def test_public_names_are_lazy_and_typed() -> None:
    from pathlib import Path

    stub = Path(freshet.__file__).with_suffix(".pyi").read_text()
    for name in freshet.__all__:
        assert getattr(freshet, name).__name__ == name
        assert f"import {name} as {name}" in stub
    with pytest.raises(AttributeError):
        _ = freshet.nothing  # type: ignore[attr-defined]


def test_queries_on_queries_are_checked_in_any_order() -> None:
    app = monitor()
    app.query("c", "SELECT host FROM b UNION ALL SELECT host FROM a")
    app.query("b", "SELECT host FROM a WHERE size > 5")
    app.query("a", "SELECT host, size FROM packets")
    assert list(app.checked().queries) == ["a", "b", "c"]


def test_a_circle_is_one_problem_and_hides_no_other() -> None:
    app = monitor()
    app.query("a", "SELECT host FROM b")
    app.query("b", "SELECT host FROM a")
    app.query("behind", "SELECT host FROM b")
    app.query("wrong", "SELECT hots FROM packets")
    with pytest.raises(InvalidApp) as caught:
        app.check()
    texts = {problem.place: problem.text for problem in caught.value.problems}
    assert len(texts) == 2
    assert "reads its own output" in texts["queries.a.sql" if "queries.a.sql" in texts else "queries.b.sql"]
    assert "unknown column hots" in texts["queries.wrong.sql"]


def test_a_query_over_a_wrong_one_is_not_blamed() -> None:
    app = monitor()
    app.query("a", "SELECT nothing FROM packets")
    app.query("b", "SELECT nothing FROM a")
    with pytest.raises(InvalidApp) as caught:
        app.check()
    assert [problem.place for problem in caught.value.problems] == ["queries.a.sql"]


@pytest.mark.parametrize(
    ("name", "sql", "options", "text"),
    [
        ("packets", "SELECT 1", {}, "there is a stream packets already"),
        ("PACKETS", "SELECT 1", {}, "there is a stream packets already"),
        ("a b", "SELECT 1", {}, "cannot name a query"),
        ("q", "SELECT 1", {"weight": 0.0}, "weight 0.0 is outside"),
        ("q", "SELECT 1", {"curve": [(0, 1), (1, 2)]}, r"query q: utility 2 at latency 1 s is outside \[0, 1\]"),
        ("q", "SELECT 1", {"curve": "steep"}, "query q: a latency curve is a list such as"),
        ("q", "SELECT 1", {"start": "newest"}, "query q: start must be 'earliest' or 'latest', not 'newest'"),
        ("q", "SELECT 1", {"on_error": "raise"}, "query q: on_error must be 'null' or 'fail', not 'raise'"),
        ("q", "SELECT 1", {"sinks": {"kind": "memory"}}, "query q: sinks must be a list"),
        ("q", "SELECT 1", {"retention": Retention(bound_bytes=0)}, "query q: retention: a bound of 0 bytes"),
        ("q", "SELECT 1", {"retention": "1 h"}, "query q: retention must be a freshet.Retention, such as"),
    ],
)
def test_wrong_declarations_are_refused_at_once(name: str, sql: str, options: dict[str, object], text: str) -> None:
    with pytest.raises(UserError, match=text):
        monitor().query(name, sql, **options)  # type: ignore[arg-type]


def test_two_sinks_on_one_file() -> None:
    app = monitor()
    for name in ("a", "b"):
        app.query(name, "SELECT host FROM packets", sinks=[{"kind": "jsonl", "path": "same.jsonl"}])
    with pytest.raises(InvalidApp, match=r"queries.b.sinks\[0\].path: is the file of queries.a.sinks\[0\] already"):
        app.check()


def test_an_app_needs_a_stream() -> None:
    with pytest.raises(InvalidApp, match="declare at least one"):
        App("empty").check()


def test_a_stream_that_nobody_reads_is_noted() -> None:
    assert monitor().check() == ["streams.packets: no query reads it"]
