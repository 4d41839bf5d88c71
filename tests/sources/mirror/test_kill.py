"""kill -9: what polls met is neither lost nor doubled, and what was learned stays."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.sources.mirror import kill_child
from tests.sources.mirror.web import Web

from freshet.bench.mirror.live import compared, stored_versions
from freshet.bench.mirror.server import ServerSettings, read_record, serving
from freshet.log import LogReader

ELEMENTS = 60
ROOT = Path(__file__).parents[3]


def start(state: Path, address: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    child = subprocess.Popen(
        [sys.executable, kill_child.__file__, str(state), address, str(ELEMENTS)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": paths},
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == "running\n"
    return child


def stored_polls(state: Path) -> dict[str, int]:
    return {name: record["polls"] for name, record in stored(state).items()}


def stored(state: Path) -> dict[str, Any]:
    with LogReader(state) as log:
        return dict(log.records("prices"))


def until_polled(state: Path, least: int) -> None:
    end = time.monotonic() + 600
    while sum(stored_polls(state).values()) < least:
        assert time.monotonic() < end
        time.sleep(0.05)


def test_kills_lose_and_double_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    settings = ServerSettings([1.0] * ELEMENTS, time.time(), 300.0, 7, str(tmp_path / "server"))
    kills = []
    with serving(settings) as address:
        for kill in range(3):
            child = start(state, address)
            try:
                until_polled(state, 200 * (kill + 1))
                known = stored_polls(state)
            finally:
                child.kill()
                child.wait()
            kills.append(time.time())
            after = stored_polls(state)
            assert all(after[name] >= known[name] for name in known), "what was learned stays"
        child = start(state, address)
        try:
            until_polled(state, 2500)
        finally:
            end = time.time()
            child.kill()
            child.wait()
    # Nobody polls again what the last process met in its last moments.
    record = [each for each in read_record(tmp_path / "server") if each.time <= end - 3.0]
    found = compared(record, stored_versions(state, "prices"), kills)
    assert found.met > 100
    assert (found.lost, found.doubled) == (0, 0)


def test_a_host_that_asked_for_peace_has_it_after_a_kill(tmp_path: Path, web: Web) -> None:
    def busy(request: Any) -> None:
        request.answer(429, b"", {"Retry-After": "300"})

    web.pages = {f"/m/{number}": busy for number in range(ELEMENTS)}
    asked = []
    for _ in range(2):
        child = start(tmp_path, web.address)
        try:
            end = time.monotonic() + 600
            while not (web.requests and any(record["failures"] for record in stored(tmp_path).values())):
                assert time.monotonic() < end
                time.sleep(0.05)
            time.sleep(3.0)
        finally:
            child.kill()
            child.wait()
        asked.append(len(web.requests))
    assert asked[0] < ELEMENTS, "what was not under way at the first answer was not sent"
    assert asked[1] == asked[0]
