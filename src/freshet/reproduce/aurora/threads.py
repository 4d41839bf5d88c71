"""One thread per box against one scheduler (CAR §3.2.3, Fig. 3.3). This is the one claim that is measured in real time:
the cost of an operating system's threads cannot be simulated without assuming the result."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import Final

import numpy as np

DEPTH: Final = 5
"""Number of filters of a query."""
Tuple = tuple[float, int]
"""When a tuple arrived, and its value; None in its place ends a thread."""


def latency(model: str, boxes: int, tuples: int) -> float:
    """Mean seconds from arrival to output of tuples that come to every query, under one of the two models.

    >>> latency("scheduler", 10, 3) > 0
    True
    """
    queries = boxes // DEPTH
    waits = (thread_waits if model == "threads" else scheduler_waits)(queries, tuples)
    return float(np.mean(waits))


@cache
def latencies_of(boxes: int, repetition: int, tuples: int = 20, tries: int = 3) -> tuple[float, float]:
    """The latency with a thread for each box and with one scheduler, each in its best try; measured once for each
    repetition."""
    threads, scheduler = (
        min(latency(model, boxes, tuples) for _ in range(tries)) for model in ("threads", "scheduler")
    )
    return threads, scheduler


def _passes(value: int) -> bool:
    """A filter that lets everything through."""
    return value >= 0


def scheduler_waits(queries: int, tuples: int) -> list[float]:
    """One thread: boxes have queues, and the boxes of a query run in turn over what waits."""
    waits: list[float] = []
    queues = [[deque[Tuple]() for _ in range(DEPTH)] for _ in range(queries)]

    def feed(query: int, item: Tuple) -> None:
        queues[query][0].append(item)

    _arrive(queries, tuples, feed)
    for boxes in queues:
        for depth, queue in enumerate(boxes):
            while queue:
                item = queue.popleft()
                if _passes(item[1]):
                    if depth + 1 < DEPTH:
                        boxes[depth + 1].append(item)
                    else:
                        waits.append(time.perf_counter() - item[0])
    return waits


def thread_waits(queries: int, tuples: int) -> list[float]:
    """One thread for each box; each waits for its own queue."""
    waits: list[float] = []
    queues: list[list[SimpleQueue[Tuple | None]]] = [[SimpleQueue() for _ in range(DEPTH)] for _ in range(queries)]

    def box(boxes: list[SimpleQueue[Tuple | None]], depth: int) -> None:
        while (item := boxes[depth].get()) is not None:
            if _passes(item[1]):
                if depth + 1 < DEPTH:
                    boxes[depth + 1].put(item)
                else:
                    waits.append(time.perf_counter() - item[0])
        if depth + 1 < DEPTH:
            boxes[depth + 1].put(None)

    workers = [threading.Thread(target=box, args=(boxes, depth)) for boxes in queues for depth in range(DEPTH)]
    for worker in workers:
        worker.start()
    _arrive(queries, tuples, lambda query, item: queues[query][0].put(item))
    for boxes in queues:
        boxes[0].put(None)
    for worker in workers:
        worker.join()
    return waits


def _arrive(queries: int, tuples: int, feed: Callable[[int, Tuple], None]) -> None:
    for number in range(tuples):
        for query in range(queries):
            feed(query, (time.perf_counter(), number))
