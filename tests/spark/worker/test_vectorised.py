"""Compiled boxes in a worker: which are kept, and what the collector has to look at."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from freshet.model import ARRIVAL, Filter, Project
from freshet.spark.worker import vectorised
from freshet.spark.worker.vectorised import Superboxes, set_aside

SCHEMA = pa.schema([("k", pa.int32()), ("v", pa.float64()), ("name", pa.string())])


def chains_of(number: int) -> tuple[tuple[Filter | Project, ...], ...]:
    predicate = f"(v * {number} + k) % 7 < 3 AND name IN ('a', 'b') AND NOT k IS NULL AND (v > 1 OR k BETWEEN 1 AND 9)"
    return ((Filter("q.filter_1", predicate), Project("q.project", (("x", f"v * {number} - k"), ("name", "name")))),)


@pytest.fixture
def boxes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Superboxes]:
    boxes = Superboxes(most_chains=2)
    monkeypatch.setattr(vectorised, "_SUPERBOXES", boxes)
    yield boxes
    gc.unfreeze()


def set_aside_by(phase: str, generation: int, thing: object) -> bool:
    """Whether a collection no longer looks at a thing after this."""
    assert any(each is thing for each in gc.get_objects())
    set_aside(phase, {"generation": generation, "collected": 0, "uncollectable": 0})
    return not any(each is thing for each in gc.get_objects())


def test_only_new_boxes_are_set_aside_and_only_after_a_whole_collection(boxes: Superboxes) -> None:
    assert not set_aside_by("stop", 2, boxes)
    box = boxes.get(chains_of(1), SCHEMA)
    assert not set_aside_by("start", 2, box)
    assert not set_aside_by("stop", 1, box)
    assert set_aside_by("stop", 2, box)
    later: list[object] = []
    assert boxes.get(chains_of(1), SCHEMA) is box
    assert not set_aside_by("stop", 2, later)


def test_a_box_that_is_given_up_goes_without_the_collector(boxes: Superboxes) -> None:
    box = boxes.get(chains_of(1), SCHEMA)
    program: Any = box._program
    [begun] = box.begin(pa.table({"k": [1], "v": [2.0], "name": ["a"], ARRIVAL: [5]}).cast(program._schema))
    assert begun.failure is None
    predicate: Any = next(step for chain in program._chains for step in chain._steps)
    gone: list[weakref.ref[Any]] = [weakref.ref(box), weakref.ref(predicate.evaluate)]
    del box, program, predicate, begun
    gc.collect()
    set_aside("stop", {"generation": 2})
    gc.disable()
    try:
        for number in range(2, 5):
            boxes.get(chains_of(number), SCHEMA)
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()
