from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, Segment, State, Train
from freshet.spark.worker.assignment import Assignment, forget_property, read_property


def _train(sizes: list[int], first: int = 0) -> Train:
    segments, end = [], first
    for number, rows in enumerate(sizes):
        segments.append(Segment("s", end, rows, number, 0, 0, f"f{number}", 0, 0))
        end += rows
    return Train("s", first, end, tuple(segments))


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


def test_a_long_assignment_travels_as_a_file(tmp_path: Path):
    chains = tuple(Chain((number,), (_train([5] * 20, 100 * number),), ("q",)) for number in range(200))
    assignment = Assignment(tmp_path, "u", "spec", 2, chains)
    text = assignment.property_text()
    assert len(text) < 1000
    assert read_property(text) == assignment
    forget_property(text)
    assert not list((tmp_path / "specs").iterdir())


def test_a_short_one_travels_as_text(tmp_path: Path):
    assignment = Assignment(tmp_path, "u", "spec", 1, ())
    assert read_property(assignment.property_text()) == assignment
    assert not list(tmp_path.iterdir())


def test_chains_states_and_parts_survive_the_way_and_a_train_travels_once():
    train, other = _train([5, 5]), _train([3], 40)
    chains = (Chain((0,), (train,)), Chain((1,), (train,), ("q", "r")), Chain((2, 3), (0, other), ("q.queue",)))
    state = State("q.join", (_train([2]), _train([1])), (None, 3), (4, None))
    assignment = Assignment(Path("/state"), "u", "spec", 2, chains, (state,), (_train([1]),), ("q.panes",))
    assert Assignment.parse(assignment.text()) == assignment
    assert assignment.text().count('"f1"') == 1
