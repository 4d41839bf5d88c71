"""Audits tell how fresh a mirror is, by the record of the server that it polls."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.sources.mirror.feeding import feeding, stream
from tests.sources.mirror.test_manners import failing
from tests.sources.mirror.test_mirror import options, price
from tests.sources.mirror.web import Web

from freshet.bench.mirror.server import ServerSettings, read_record, serving
from freshet.sources.mirror.audit import LEAD, Audits

ELEMENTS = 40


def test_audits_meet_what_the_server_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # If audits waited for commits, their copies would age by a second.
    monkeypatch.setattr("freshet.sources.mirror.source._SAVE_ROWS", 1.0)
    settings = ServerSettings([1.0] * ELEMENTS, time.time(), 300.0, 7, str(tmp_path / "server"))
    with serving(settings) as address:
        given = {
            "elements": [str(number) for number in range(ELEMENTS)], "http": {"url": f"{address}/m/{{element}}"},
            "budget": 60.0, "change_every": 1.0, "learn": False, "audit": 0.4,
        }  # fmt: skip
        with feeding(tmp_path / "state", given, stream("element string, version bigint")) as fed:
            fed.until(lambda: fed.source.status.audits >= 20)
            since, before = time.time(), dict(fed.source._book.counts)
            fed.until(lambda: fed.source.status.audits >= before["audits"] + 500)
            until, after = time.time(), dict(fed.source._book.counts)
    true = float(settings.changing().freshness(read_record(tmp_path / "server"), since, until).mean())
    found = (after["audits_fresh"] - before["audits_fresh"]) / (after["audits"] - before["audits"])
    assert found == pytest.approx(true, abs=0.08), "four standard errors"


def test_an_element_that_fails_is_not_fresh(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1), "/b": failing}
    with feeding(tmp_path, options(web, "a", "b", audit=0.5)) as fed:
        fed.until(lambda: fed.source.status.audits >= 100)
        assert fed.source.status.freshness_audited == pytest.approx(0.5, abs=0.2)


def test_moments_are_drawn_ahead_and_those_that_were_missed_are_dropped() -> None:
    audits, found = Audits(rate=10.0, seed=1), 0
    for tick in range(10_000):
        now = tick * 0.01
        assert all(audits.awaits(number) for number in audits.draw(now, lambda: [1.0, 3.0]))
        found += len(audits.due(now))
    assert 850 < found < 1150
    assert not audits.due(now + LEAD + 1.0)
    assert not audits.awaits(0)
    assert not audits.awaits(1)
