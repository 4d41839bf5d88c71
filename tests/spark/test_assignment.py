from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from freshet.model import Chain, Segment, Train, Work
from freshet.spark.assignment import Assignment, read_property


def _train(sizes: list[int], first: int = 0) -> Train:
    segments, end = [], first
    for number, rows in enumerate(sizes):
        segments.append(Segment("s", end, rows, number, 0, 0, f"f{number}", 0, 0))
        end += rows
    return Train("s", first, end, tuple(segments))


@given(sizes=st.lists(st.integers(1, 9), max_size=5), first=st.integers(0, 99), parts=st.integers(1, 7))
def test_parts_cover_the_train_in_order(sizes: list[int], first: int, parts: int):
    train = _train(sizes, first)
    assignment = Assignment(Path("/state"), "u", "spec", parts, (Work(train, (Chain((0,)),)),))
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
    works = tuple(Work(_train([5] * 20), (Chain((number,)),)) for number in range(200))
    assignment = Assignment(tmp_path, "u", "spec", 2, works)
    text = assignment.property_text()
    assert len(text) < 1000
    assert read_property(text) == assignment
    assignment.forget(text)
    assert not list((tmp_path / "specs").iterdir())


def test_a_short_one_travels_as_text(tmp_path: Path):
    assignment = Assignment(tmp_path, "u", "spec", 1, ())
    assert read_property(assignment.property_text()) == assignment
    assert not list(tmp_path.iterdir())
