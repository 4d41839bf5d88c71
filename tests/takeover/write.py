"""Writes the fixture folders: ``python -m tests.takeover.write FOLDER``, with the version whose format they keep.

Each is the state folder of :mod:`tests.takeover.application` at another moment, packed as ``NAME.tar.gz``:

- ``rest``: all queries have answered all rows; windows and joins are half open.
- ``waiting``: a box at a time, stopped in the middle: tuples wait in front of joins, between operators of queries with
  several paths, and in shared work.
- ``merging``: the same, with tuples behind a join, which the version before kept in a queue for each of its inputs.
- ``parked``: two queries were taken out, the others went on.
- ``quarantined``: one query fails, the others went on.
- ``chained``: joins of three inputs that ran as two joins, both half open.
- ``between``: the same, with pairs that wait between the two.

``expected.json`` has the answers of a run that was never stopped.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.takeover.application import CHAINED, QUERIES, alerts, application, packets

from freshet.app import App
from freshet.log import Log

HALF = 60
"""Packets, and twice the alerts, that were pushed before a folder was kept."""
ALL = 100
"""Packets in the end."""


def rest(folder: Path) -> None:
    run_all(application(folder), 0, HALF)


def waiting(folder: Path) -> None:
    _stop_when(
        folder, lambda queues: any("@" in name for name in queues) and any("__shared" in name for name in queues)
    )


def merging(folder: Path) -> None:
    _stop_when(folder, lambda queues: any(name.startswith("pairs.project@") for name in queues), 8.0)


def _stop_when(folder: Path, wanted: Callable[[set[str]], bool], patience: float = 2.0) -> None:
    run_all(application(folder, share=True), 0, HALF // 2)
    shutil.copytree(folder / "state", folder / "before")
    chance = random.Random(1)
    while not wanted(_waiting(folder)):
        shutil.rmtree(folder / "state")
        shutil.copytree(folder / "before", folder / "state")
        with application(folder, share=True, policy="baat", rows=7).start() as run:
            run.push("packets", packets(HALF // 2, HALF))
            run.push("alerts", alerts(HALF // 4, HALF // 2))
            time.sleep(0.2 + patience * chance.random())
            run.stop(drain=False)


def _waiting(folder: Path) -> set[str]:
    with Log.open(folder / "state") as log:
        queues = {reader.stream for reader in log.readers().values() if reader.next < log.end(reader.stream)}
    print("tuples wait in", sorted(queues), flush=True)
    return {name for name in queues if "state" not in name}


def parked(folder: Path) -> None:
    run_all(application(folder), 0, HALF // 2)
    run_all(application(folder, without=("pairs", "few")), HALF // 2, HALF)


def quarantined(folder: Path) -> None:
    run_all(application(folder, broken=True), 0, HALF)


def chained(folder: Path) -> None:
    run_all(application(folder, queries=CHAINED), 0, HALF)


def between(folder: Path) -> None:
    run_all(application(folder, queries=CHAINED), 0, HALF // 2)
    chance = random.Random(1)
    with application(folder, queries=CHAINED, policy="baat", rows=7).start() as run:
        run.push("packets", packets(HALF // 2, HALF))
        run.push("alerts", alerts(HALF // 4, HALF // 2))
        time.sleep(1.0 + chance.random())
        run.stop(drain=False)
    assert any(".join_2" in name for name in _waiting(folder)), "nothing waits between the joins: try again"


def run_all(app: App, first: int, end: int) -> dict[str, list[str]]:
    """Pushes the rows of a range and lets all queries answer them; returns their outputs, sorted."""
    with app.start() as run:
        run.push("packets", packets(first, end))
        run.push("alerts", alerts(first // 2, end // 2))
        run.drain()
        return {name: sorted(json.dumps(row, default=str) for row in run.read(name).to_pylist()) for name in app.queries
                if name in QUERIES or name in CHAINED}  # fmt: skip


def expected(target: Path, queries: Mapping[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        answers = run_all(application(Path(folder), queries=queries), 0, ALL)
    (target / "expected.json").write_text(json.dumps(answers, indent=0))


def main(target: Path) -> None:
    makers: dict[str, Callable[[Path], None]] = {
        "rest": rest, "waiting": waiting, "merging": merging, "parked": parked, "quarantined": quarantined,
        "chained": chained, "between": between,
    }  # fmt: skip
    chosen = sys.argv[2:] or list(makers)
    if not (target / "expected.json").exists():
        expected(target, CHAINED if "chained" in chosen else QUERIES)
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            makers[name](Path(folder))
            with tarfile.open(target / f"{name}.tar.gz", "w:gz") as archive:
                archive.add(Path(folder, "state"), "state", filter=_plain)
        print(name, (target / f"{name}.tar.gz").stat().st_size, flush=True)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What belongs to the state; neither Spark's output nor the maker's names."""
    if Path(member.name).name in ("spark.out", "lock", "specs"):
        return None
    member.uname = member.gname = ""
    member.uid = member.gid = 0
    return member


if __name__ == "__main__":
    main(Path(sys.argv[1]))
