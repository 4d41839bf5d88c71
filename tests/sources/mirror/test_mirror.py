"""A mirror by HTTP: what changes is a row, once, and what is known survives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.sources.mirror.feeding import feeding, stream
from tests.sources.mirror.web import Web

from freshet.model import UserError
from freshet.sources import create


def options(web: Web, *names: str, **more: Any) -> dict[str, Any]:
    return {
        "elements": list(names), "http": {"url": f"{web.address}/{{element}}"}, "budget": 50.0, "change_every": 0.5,
        "audit": 0.0, "back_off": 0.2, **more,
    }  # fmt: skip


def price(value: object) -> bytes:
    return json.dumps({"price": value}).encode()


def test_a_change_is_a_row_and_what_stays_the_same_is_none(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1.5), "/b": price(2.5)}
    with feeding(tmp_path, options(web, "a", "b")) as fed:
        fed.until(lambda: len(fed.rows()) == 2)
        fed.until(lambda: fed.source.status.polls >= 20)
        assert sorted(fed.values()) == [("a", 1.5), ("b", 2.5)]
        web.pages["/a"] = price(1.6)
        fed.until(lambda: len(fed.rows()) == 3)
        last = fed.rows()[-1]
        assert (last["element"], last["price"]) == ("a", 1.6)
        assert last["changed"] <= last["polled"]
        assert fed.source.status.changes == 1
    asked = [headers for _, path, headers in web.requests if path == "/a" and "If-None-Match" in headers]
    assert asked, "no poll was conditional"


def test_what_is_known_survives_a_restart(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1.5), "/b": price(2.5)}
    with feeding(tmp_path, options(web, "a", "b")) as fed:
        fed.until(lambda: fed.source.status.polls >= 30 and len(fed.rows()) == 2)
    with feeding(tmp_path, options(web, "a", "b")) as fed:
        first = len(web.requests)
        fed.until(lambda: fed.source.status.polls >= 60)
        assert sorted(fed.values()) == [("a", 1.5), ("b", 2.5)]
        rates = {each.element: each for each in fed.source.rates()}
        assert rates["a"].polls > 10
        assert rates["a"].changes == 0
    assert all("If-None-Match" in headers for _, _, headers in web.requests[first:])


def test_a_server_without_validators_is_compared_by_values(tmp_path: Path, web: Web) -> None:
    web.validators = False
    web.pages = {"/a": price(1)}
    with feeding(tmp_path, options(web, "a")) as fed:
        fed.until(lambda: fed.source.status.polls >= 10)
        web.pages["/a"] = b'{ "price": 1, "note": "not a column" }'
        before = fed.source.status.polls
        fed.until(lambda: fed.source.status.polls >= before + 10)
        web.pages["/a"] = price(2)
        fed.until(lambda: fed.values()[-1:] == [("a", 2.0)])
        assert [value for _, value in fed.values()] == [1.0, 2.0]


def test_packed_content_is_unpacked(tmp_path: Path, web: Web) -> None:
    web.packed = True
    web.pages = {"/a": price(7)}
    with feeding(tmp_path, options(web, "a")) as fed:
        fed.until(lambda: fed.values() == [("a", 7.0)])


def test_a_value_that_does_not_fit_is_a_dead_letter(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price("cheap"), "/b": b"{", "/c": price(3)}
    with feeding(tmp_path, options(web, "a", "b", "c")) as fed:
        fed.until(lambda: fed.feeder.status.dead == 2 and len(fed.rows()) == 1)
        before = fed.source.status.polls
        fed.until(lambda: fed.source.status.polls >= before + 10)
        assert fed.feeder.status.dead == 2, "it is told once, not at every poll"
        web.pages["/a"] = price(1)
        fed.until(lambda: ("a", 1.0) in fed.values())


def test_an_element_is_gone_when_the_list_does_not_name_it(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": price(2)}
    with feeding(tmp_path, options(web, "a", "b")) as fed:
        fed.until(lambda: len(fed.rows()) == 2)
    with feeding(tmp_path, options(web, "a")) as fed:
        fed.until(lambda: fed.source.status.elements == 1 and "b" not in fed.log.records("prices"))
        first = len(web.requests)
        before = fed.source.status.polls
        fed.until(lambda: fed.source.status.polls >= before + 5)
    assert "/b" not in web.paths()[first + 1 :]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"http": None}, "needs one of http, file and sql"),
        ({"budget": None}, "needs either budget"),
        ({"budget_bytes": "1 MB"}, "needs either budget"),
        ({"elements": ["a", "a"]}, "a appears twice"),
        ({"elements": []}, "there is none"),
        ({"columns": {"cost": "x"}}, "columns.cost is not a column"),
        ({"columns": {"polled": "x"}}, "columns.polled is not a column"),
        ({"budget": -1}, "greater than 0"),
    ],
)
def test_wrong_options_are_refused(web: Web, more: dict[str, Any], text: str) -> None:
    given = {key: value for key, value in options(web, "a", **more).items() if value is not None}
    with pytest.raises(UserError, match=text):
        create("mirror", given, stream())
