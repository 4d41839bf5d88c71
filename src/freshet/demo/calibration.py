"""Finds how much the machine can take: the monitor gets packets as fast as it answers them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from freshet.demo.counts import readings, unanswered
from freshet.demo.monitor import LOGINS, MASTER, PACKETS, monitor, options
from freshet.sources import create

FIRST: Final = 5_000
"""Number of packets of the first round, which warms up."""
GROWTH: Final = 4
"""Each round has this many times the packets of the one before: what counts is the pace with long trains."""
MOST: Final = 1_500_000
"""Number of packets of the longest round."""
LOOK: Final = 0.01
"""Seconds between two checks whether a round is over."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """What was found.

    Args:
        packets_per_s: Packets a second that all queries together answer, with trains as long as they like.
        rounds: Number of packets, and seconds, of each round; the first ones warm up.
    """

    packets_per_s: float
    rounds: tuple[tuple[int, float], ...]


def measure(
    folder: Path,
    policy: str | None,
    rounds_at_least: int,
    seconds: float,
    tell: Callable[[str], None],
    check: Callable[[], None],
) -> Capacity:
    """Runs the monitor for some seconds on packets that already wait.

    Args:
        folder: Folder for the state.
        policy: A policy instead of the declared one.
        rounds_at_least: Minimum number of rounds, however long they take.
        seconds: Seconds after which no further round begins.
        tell: Called with a text at the start and for each round.
        check: Called again and again; it may raise to end the run.
    """
    app = monitor(folder, {PACKETS: {"kind": "push"}, LOGINS: {"kind": "push"}})
    packets = _packets(MOST // GROWTH)
    rounds: list[tuple[int, float]] = []
    read = readings(app)
    with app.start(policy=policy, master=MASTER, progress=lambda text: tell(f"{text} ...")) as run:
        began, rows = time.monotonic(), FIRST
        while len(rounds) < rounds_at_least or (time.monotonic() - began < seconds and rows <= MOST):
            start = time.perf_counter()
            for first in range(0, rows, packets.num_rows):
                run.push(PACKETS, packets.slice(0, min(rows - first, packets.num_rows)))
            # The meters count what has just come as waiting only after the engine has noticed it.
            while any(unanswered(read, run.meters()).values()):
                check()
                run.wait(LOOK)
            rounds.append((rows, time.perf_counter() - start))
            tell(f"{rows:,} packets in {rounds[-1][1]:.1f} s")
            rows *= GROWTH
    return Capacity(_sustained(rounds), tuple(rounds))


def _sustained(rounds: list[tuple[int, float]]) -> float:
    """The best of the rounds: other work of the machine made the others slower.

    >>> _sustained([(5000, 1.0), (6000, 0.5), (12000, 1.0)])
    12000.0
    """
    return max(rows / seconds for rows, seconds in rounds)


def _packets(rows: int) -> pa.Table:
    declared = monitor(Path())
    kept = {key: value for key, value in options(declared, PACKETS).items() if key not in ("kind", "arrival")}
    stream = declared.streams[PACKETS].stream
    source = create("generator", kept | {"rate": 1e9, "limit": rows, "max_rows": rows}, stream)
    source.poll(0.0)  # the clock of a generator begins with its first poll
    batch = source.poll(1e6)
    assert batch is not None
    assert isinstance(batch.rows, pa.Table)
    return batch.rows
