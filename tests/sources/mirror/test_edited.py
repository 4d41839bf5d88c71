"""Somebody edits the application, or the file with the elements, between runs and while a mirror runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mirror.feeding import feeding
from tests.sources.mirror.test_mirror import options, price
from tests.sources.mirror.web import Web

from freshet.sources.mirror.elements import FileElements


def listed(web: Web, file: Path, **more: Any) -> dict[str, Any]:
    return {**options(web, **more), "elements": {"file": str(file)}}


def test_a_file_that_cannot_be_read_changes_nothing(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    file = tmp_path / "items.csv"
    file.write_text("element\na\n")
    with feeding(tmp_path / "state", listed(web, file)) as fed:
        fed.until(lambda: fed.values() == [("a", 1.0)])
        file.write_text("name\nb\n")
        time.sleep(2.5)
        file.write_text("element\na\nb\n")
        fed.until(lambda: fed.values() == [("a", 1.0), ("b", 2.0)])


def test_a_file_that_is_being_written_is_not_read(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    file = tmp_path / "items.csv"
    file.write_text("element\na\nb\n")
    with feeding(tmp_path / "state", listed(web, file)) as fed:
        fed.until(lambda: len(fed.rows()) == 2)
        for _ in range(30):
            file.write_text("element\n")
            time.sleep(0.05)
            file.write_text("element\na\nb\n")
            time.sleep(0.05)
        polls = {name: fed.log.records("prices")[name]["polls"] for name in "ab"}
        fed.until(lambda: fed.log.records("prices")["a"]["polls"] > polls["a"] + 3)
        assert len(fed.rows()) == 2, "nobody was away in between"


def test_a_given_rate_may_change(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    for rate in (1.0, 7.0):
        named = [{"element": "a", "rate": rate}, "b"]
        web.requests.clear()  # those of the run before say nothing of this one
        with feeding(tmp_path, {**options(web), "elements": named, "learn": False}) as fed:
            fed.until(lambda: len(fed.rows()) == 2 and len(web.requests) > 4)
            rates = {each.element: each.changes_per_s for each in fed.source.rates()}
            assert rates["a"] == rate


def test_other_columns_are_read_at_once(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": b'{"price": 1, "cost": 7}'}
    with feeding(tmp_path, options(web, "a")) as fed:
        fed.until(lambda: fed.values() == [("a", 1.0)])
    with feeding(tmp_path, options(web, "a", columns={"price": "cost"})) as fed:
        fed.until(lambda: fed.values() == [("a", 1.0), ("a", 7.0)])


def test_an_element_that_a_file_names_twice_is_one_element(tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("element,worth\na,1\nb,1\na,5\n")
    assert [(each.name, each.worth) for each in FileElements(file, "element").news().present] == [
        ("a", 5.0),
        ("b", 1.0),
    ]


@pytest.mark.parametrize("worth", ["1e60", "1e-60", "-1", "nan", "much"])
def test_a_worth_that_no_plan_can_use_is_refused_with_its_row(tmp_path: Path, worth: str) -> None:
    file = tmp_path / "items.csv"
    file.write_text(f"element,worth\na,{worth}\nb,1\n")
    news = FileElements(file, "element").news()
    assert [each.name for each in news.present] == ["b"]
    ((name, reason),) = news.refused
    assert name == "a"
    assert "must be 0, or between 1e-50 and 1e+50" in reason
