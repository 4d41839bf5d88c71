"""Homes of states: a unit goes where its states were kept, and nowhere is anything taken for kept that may not be."""

from __future__ import annotations

from typing import Any, cast

from freshet.model import Chain, State, Train
from freshet.spark.driver.jobs import Job
from freshet.spark.driver.residents.homes import StateHomes
from freshet.spark.driver.residents.seat import Seat


def seats(count: int) -> list[Seat]:
    """Seats that are never started, so that they need no Spark."""
    nothing = cast(Any, None)
    return [Seat(number, f"seat-{number}", nothing, nothing, nothing) for number in range(count)]


def job(*folds: str) -> Job:
    """A job whose chains have these folds."""
    chains = tuple(Chain((number,), (Train("s", 0, 10),)) for number in range(max(1, len(folds))))
    return Job("vectorised", chains, tuple(State(fold, (), (None,), (None,)) for fold in folds))


def test_a_job_without_states_goes_to_any_resident() -> None:
    homes, idle = StateHomes(), seats(3)
    assert homes.first(job(), idle, 1) == idle[:1]
    assert homes.first(job(), idle, 5) == idle
    assert not homes.has_all(job(), idle[:1])


def test_a_job_goes_to_the_resident_that_has_kept_its_states() -> None:
    homes, (one, two, three) = StateHomes(), seats(3)
    homes.settle(job("a"), [three])
    assert homes.first(job("a"), [one, two, three], 1) == [three]
    assert homes.has_all(job("a"), [three])
    assert not homes.has_all(job("a"), [one])


def test_the_resident_with_most_states_is_the_first_and_need_not_have_all() -> None:
    homes, (one, two) = StateHomes(), seats(2)
    homes.settle(job("a"), [one])
    homes.settle(job("b", "c"), [two])
    assert homes.first(job("a", "b", "c"), [one, two], 1) == [two]
    assert not homes.has_all(job("a", "b", "c"), [two])
    homes.settle(job("a", "b", "c"), [two])
    assert homes.has_all(job("a", "b", "c"), [two])
    assert not homes.has_all(job("a"), [one])


def test_one_that_took_the_seat_later_has_kept_nothing() -> None:
    homes, (one, two) = StateHomes(), seats(2)
    homes.settle(job("a"), [two])
    two.term += 1
    assert not homes.has_all(job("a"), [two])
    assert homes.first(job("a"), [one, two], 1) == [one]


def test_each_part_has_a_home_of_its_own() -> None:
    homes, (one, two, three) = StateHomes(), seats(3)
    homes.settle(job("a"), [three, one])
    assert homes.first(job("a"), [one, two, three], 2) == [three, one]
    assert homes.first(job("a"), [one, two], 2) == [two, one], "the second part stays at home"
    assert homes.has_all(job("a"), [three, one])
    assert not homes.has_all(job("a"), [one, three]), "each has kept the part of the other"
    assert not homes.has_all(job("a"), [one])


def test_other_parts_have_no_home() -> None:
    homes, (one, two) = StateHomes(), seats(2)
    homes.settle(job("a"), [two])
    assert homes.first(job("a"), [one, two], 2) == [one, two]
    homes.settle(job("a"), [one, two])
    assert not homes.has_all(job("a"), [two])
