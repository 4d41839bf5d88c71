"""What windows and joins remember stays in few segments on Spark, in every form, and the answers stay what they are."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from freshet.app import App
from freshet.app.running.run import Run
from freshet.engine.fold_states import MOST_PIECES

pytestmark = pytest.mark.spark

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
STEPS = MOST_PIECES + 12
QUERIES = {
    "lonely": "SELECT a.v, b.w FROM a [RANGE 1 HOUR] LEFT JOIN b [RANGE 1 HOUR] ON a.k = b.k",
    # In stages: initcap is not compiled.
    "staged": "SELECT initcap(a.k) AS k, a.v, b.w FROM a [RANGE 1 HOUR] JOIN b [RANGE 1 HOUR] ON initcap(a.k) = b.up",
    "moving": "SELECT sum(v) AS s, count(*) AS n FROM a [ROWS 70]",
    "groups": "SELECT k, sum(v) AS s, window_end FROM a [RANGE 2 MINUTES SLIDE 1 SECOND] GROUP BY k",
}


def test_every_state_stays_in_few_segments_and_gives_the_same_answers(tmp_path: Path) -> None:
    a = [{"ts": NOON + dt.timedelta(seconds=step), "k": "xyz"[step % 3], "v": step} for step in range(STEPS)]
    b = [{"ts": a[-1]["ts"], "k": k, "up": k.upper(), "w": w} for w, k in enumerate("xyx")]
    pieces: dict[str, list[int]] = defaultdict(list)
    for part in (a[: STEPS // 2], a[STEPS // 2 :]):
        with make_app(tmp_path).start() as run:
            for row in part:
                run.push("a", [row])
                assert run.drain()
                for stream, count in segments(run).items():
                    pieces[stream].append(count)
            if part[-1] is a[-1]:
                run.push("b", b)
                for stream in "ab":
                    run.heartbeat(stream, NOON + dt.timedelta(hours=3))
                assert run.drain()
                found = {name: Counter(tuple(row.values()) for row in run.read(name).to_pylist()) for name in QUERIES}
    for name in QUERIES:
        most = {stream: max(counts) for stream, counts in pieces.items() if stream.startswith(f"{name}.")}
        # One more than the most may be there until a unit of its own has written the state anew.
        assert MOST_PIECES <= max(most.values()) <= MOST_PIECES + 1, most
    assert found == expected(a, b)


def make_app(folder: Path) -> App:
    app = App("scattered", state=folder / "state")
    app.stream("a", "ts timestamp, k string, v int", event_time="ts", lateness="0 s")
    app.stream("b", "ts timestamp, k string, up string, w int", event_time="ts", lateness="0 s")
    for name, sql in QUERIES.items():
        app.query(name, sql)
    return app


def segments(run: Run) -> dict[str, int]:
    """In how many segments each state lies that the next step reads."""
    queues, board = run._parts.queues, run._parts.engine.board
    return {
        stream: len(queues.train(stream, low, queues.end(stream)).segments)
        for fold in board.folds(range(len(board.operators)))
        for stream, low in fold.lows.items()
    }


def expected(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> dict[str, Counter[tuple[Any, ...]]]:
    pairs = [(left, right) for left in a for right in b if left["k"] == right["k"]]
    met = {left["v"] for left, _ in pairs}
    sums: Counter[tuple[Any, ...]] = Counter()
    for second in range(1, STEPS + 120):
        end = NOON + dt.timedelta(seconds=second)
        within: dict[str, list[int]] = defaultdict(list)
        for row in a:
            if end - dt.timedelta(minutes=2) <= row["ts"] < end:
                within[row["k"]].append(row["v"])
        sums.update((k, sum(values), end) for k, values in within.items())
    return {
        "lonely": Counter([(x["v"], y["w"]) for x, y in pairs] + [(x["v"], None) for x in a if x["v"] not in met]),
        "staged": Counter((x["k"].upper(), x["v"], y["w"]) for x, y in pairs),
        "moving": Counter((sum(vs), len(vs)) for at in range(STEPS) for vs in [range(max(0, at - 69), at + 1)]),
        "groups": sums,
    }
