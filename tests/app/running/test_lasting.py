"""What is there when an application starts is left out of garbage collections, until the last one ends."""

from __future__ import annotations

import gc
import weakref

import pytest

from freshet.app.running.lasting import lasting


class Ring:
    """An object that only a garbage collection frees."""

    def __init__(self) -> None:
        self.me = self


def test_what_was_there_waits_for_the_end_of_the_last_run() -> None:
    before = Ring()
    seen = weakref.ref(before)
    with lasting():
        with lasting():
            after = Ring()
            new = weakref.ref(after)
            del before, after
            gc.collect()
            assert seen() is not None
            assert new() is None
        gc.collect()
        assert seen() is not None
    gc.collect()
    assert seen() is None


def test_garbage_from_before_is_freed_first() -> None:
    old = Ring()
    seen = weakref.ref(old)
    del old
    with lasting():
        assert seen() is None


def test_a_run_that_fails_ends_it_too() -> None:
    with pytest.raises(ValueError, match="over"), lasting():
        raise ValueError("over")
    assert gc.get_freeze_count() == 0
