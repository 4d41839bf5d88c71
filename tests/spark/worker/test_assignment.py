from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, Keep, Segment, State, Train
from freshet.model.promises.keep import Timing
from freshet.spark.driver.files import write_whole
from freshet.spark.worker.assignment import PROPERTY, Assignment, telling, told


def _train(sizes: list[int], first: int = 0) -> Train:
    segments, end = [], first
    for number, rows in enumerate(sizes):
        segments.append(Segment("s", end, rows, number, 0, 0, f"f{number}", 0, 0))
        end += rows
    return Train("s", first, end, tuple(segments))


@contextmanager
def told_by(assignment: Assignment) -> Iterator[str]:
    """The property that tasks find."""
    context = Mock()
    with telling(context, PROPERTY, assignment.text(), assignment.specs, assignment.unit):
        [(_, text)] = [call.args for call in context.setLocalProperty.mock_calls]
        yield text


@given(sizes=st.lists(st.integers(1, 9), max_size=5), first=st.integers(0, 99), parts=st.integers(1, 7))
def test_parts_cover_the_train_in_order(sizes: list[int], first: int, parts: int):
    train = _train(sizes, first)
    assignment = Assignment(Path("/state"), "u", "spec", parts, (Chain((0,), (train,)),))
    shares = [assignment.part(train, number) for number in range(parts)]
    assert [offset for share in shares for offset in range(share.first, share.end)] == list(
        range(train.first, train.end)
    )
    assert max(share.rows for share in shares) - min(share.rows for share in shares) <= 1
    for share in shares:
        covered = {offset for piece in share.segments for offset in range(piece.first, piece.end)}
        assert covered >= set(range(share.first, share.end))
        assert all(piece.first < share.end and piece.end > share.first for piece in share.segments)


def test_every_field_of_what_is_kept_travels():
    keep = Keep(
        0.5, "q.edge", "amount", 2.0, 0.25, "load", past=(3, 7), let_go=(5,), weighed=True, timing=Timing(0.1, 0.2)
    )
    unset = [each.name for each in fields(Keep) if getattr(keep, each.name) == each.default]
    assert not unset, "give these a value here, too"
    train = Train("s", 0, 10, keep=keep)
    assignment = Assignment(Path("/state"), "u", "spec", 1, (Chain((0,), (train,)),))
    [[found]] = [chain.trains for chain in Assignment.parse(assignment.text()).chains]
    assert found.keep is not None
    assert astuple(found.keep) == astuple(keep)  # fields that decide nothing do not count for ==


def test_a_long_assignment_travels_as_a_file(tmp_path: Path):
    chains = tuple(Chain((number,), (_train([5] * 20, 100 * number),), ("q",)) for number in range(200))
    assignment = Assignment(tmp_path, "u", "spec", 2, chains)
    with told_by(assignment) as text:
        assert len(text) < 1000
        assert Assignment.parse(told(text)) == assignment
    assert not list((tmp_path / "specs").iterdir())


def test_a_short_one_travels_as_text(tmp_path: Path):
    assignment = Assignment(tmp_path, "u", "spec", 1, ())
    with told_by(assignment) as text:
        assert Assignment.parse(told(text)) == assignment
    assert not list(tmp_path.iterdir())


def test_what_a_failed_job_has_written_goes_and_what_others_have_written_stays(tmp_path: Path):
    chains = tuple(Chain((number,), (_train([5] * 20, 100 * number),), ("q",)) for number in range(200))
    for name in ("u-0-7.report", "other-0-7.report"):
        write_whole(tmp_path / "specs" / name, "")
    with pytest.raises(KeyboardInterrupt), told_by(Assignment(tmp_path, "u", "spec", 2, chains)):
        raise KeyboardInterrupt
    assert [file.name for file in (tmp_path / "specs").iterdir()] == ["other-0-7.report"]


def test_chains_states_and_parts_survive_the_way_and_a_train_travels_once():
    train, other = _train([5, 5]), _train([3], 40)
    chains = (Chain((0,), (train,)), Chain((1,), (train,), ("q", "r")), Chain((2, 3), (0, other), ("q.queue",)))
    state = State("q.join", (_train([2]), _train([1])), (None, 3), (4, None))
    assignment = Assignment(Path("/state"), "u", "spec", 2, chains, (state,), (_train([1]),), ("q.panes",))
    assert Assignment.parse(assignment.text()) == assignment
    assert assignment.text().count('"f1"') == 1
