"""What a schedule has learned is committed element by element, and taken back."""

from __future__ import annotations

import json

import pytest

from freshet.sources.mirror.known import KnownElement
from freshet.sources.mirror.options import MirrorOptions
from freshet.sources.mirror.schedule import PollSchedule


def schedule() -> PollSchedule:
    options = MirrorOptions(elements=["a"], budget=1, audit=0, sql={"database": "x.db", "query": "SELECT ?"})
    made = PollSchedule(options)
    made.add([KnownElement("a"), KnownElement("b")], now=0.0)
    return made


def polled() -> PollSchedule:
    made = schedule()
    for number in range(40):
        made.polled(0, 2.0 * number, changed=number % 3 != 0)
        made.polled(1, 2.0 * number, changed=number % 3 == 0)
    made.polled(0, 700.0, changed=True)
    return made


def test_records_survive_json() -> None:
    before, after = polled(), schedule()
    learned, dues = zip(*json.loads(json.dumps(before.records([0, 1]))), strict=True)
    after.restore(learned, dues, before.common(), now=700.0)
    assert after.rates() == pytest.approx(before.rates())


def test_records_of_an_older_version_are_taken_over() -> None:
    record = {"last": 78.0, "changes": 20.0, "changed_time": 40.0, "quiet_time": 20.0, "dated": 0.0, "trust": 1.0,
              "faster": 0.0, "slower": 0.0, "believed": None}  # fmt: skip
    made = schedule()
    made.restore([record, {}], [80.0, None], [0.5, 1.0], now=79.0)
    assert made.rates() == pytest.approx([0.54, 0.5], abs=0.02)
    made.polled(0, 680.0, changed=True)
    assert made.rates()[0] == pytest.approx(0.54, abs=0.02), "a pause after an update spoils nothing"
    assert len(made.records([0, 1])) == 2
