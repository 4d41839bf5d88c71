"""Joins with a bound that begin with what their streams have kept: the bound holds for those tuples, too."""

from __future__ import annotations

import random
import shutil
from typing import Any

import pytest
from tests.engine.joins.test_join_bound_cases import SIZE, TEXTS, pushed, remembered

from freshet import App
from freshet.log import Log
from freshet.testing import LocalRun, assert_same

Row = dict[str, Any]


def application(text: str | None, buffer: Any = "ram", disorder: str = "4 rows", memory: int | None = SIZE) -> App:
    """Without a text, none of its queries has a bound."""
    app = App("sensors")
    for name in "abc":
        app.stream(name, "epoch int, n int, t string", ordered_by="epoch", disorder=disorder)
    app.query("plain", "SELECT n FROM a")
    if text is not None:
        app.query("q", text, join_memory=memory, join_buffer=buffer)
    return app


def moved(first: LocalRun, later: LocalRun) -> None:
    """Goes on with another declaration of the application, in another process."""
    first.log.close()
    later.log.close()
    shutil.rmtree(later.folder)
    shutil.copytree(first.folder, later.folder)
    later.crash()


def known(run: LocalRun) -> list[Any]:
    """What the log knows of the bound: levels, and what was let go."""
    ends = {name: run.log.end(name) for name in "ab"}
    levels = [run.log.levels(name, "q.join_1") for name in ends]
    return [*levels, *(run.log.let_go(name, 0, end, "q.join_1") for name, end in ends.items())]


def most_remembered(run: LocalRun) -> int:
    most = 0
    while not run.engine.is_idle():
        run.turn()
        most = max(most, remembered(run))
    return most


@pytest.mark.parametrize("buffer", ["ram", "log", "sorted", "hybrid"])
@pytest.mark.parametrize("seed", range(6))
def test_what_was_kept_before_there_was_a_bound_never_exceeds_it(seed: int, buffer: str) -> None:
    draw = random.Random(seed)
    text, disorder = TEXTS[seed % len(TEXTS)], draw.choice(("4 rows", "30 rows"))
    streams = [name for name in "abc" if f"{name}.epoch" in text or f" {name} " in text]
    pushes = pushed(draw, "".join(streams), 30)
    app = application(text, buffer, disorder)
    with (
        LocalRun(application(None, disorder=disorder)) as first,
        LocalRun(app, max_train_rows=draw.choice((3, 20, 100_000)), policy=draw.choice(("baat", "segment"))) as run,
    ):
        for push in pushes[:20]:
            first.push(push.stream, push.rows)
        first.drain()
        moved(first, run)
        assert most_remembered(run) <= SIZE
        for push in pushes[20:]:
            run.push(push.stream, push.rows)
            assert most_remembered(run) <= SIZE


@pytest.mark.parametrize("buffer", ["ram", "log", "sorted", "hybrid"])
def test_a_bound_that_comes_later_lets_go_what_it_would_have_let_go_before(buffer: str) -> None:
    """Tuples that came one by one, so that the log knows the mark after each, as it does with a bound."""
    pushes = pushed(random.Random(7), "ab", 12)
    with (
        LocalRun(application(TEXTS[0], buffer)) as whole,
        LocalRun(application(None)) as first,
        LocalRun(application(TEXTS[0], buffer)) as later,
    ):
        for push in pushes:
            for row in push.rows:
                whole.push(push.stream, [row])
                first.push(push.stream, [row])
        moved(first, later)
        assert known(later) == known(whole)
        assert known(whole)[0], "levels are raised"
        whole.drain()
        later.drain()
        assert_same(later.rows("q"), whole.rows("q"))
        again = known(later)
        later.crash()
        assert known(later) == again, "a restart reckons nothing anew"


@pytest.mark.parametrize("seed", range(4))
def test_a_query_that_comes_back_never_exceeds_its_bound(seed: int) -> None:
    """Nobody reckons for it what comes while it is out."""
    draw, text = random.Random(seed), TEXTS[seed % 3]
    pushes = pushed(draw, "ab", 36)
    with (
        LocalRun(application(text)) as first,
        LocalRun(application(None)) as without,
        LocalRun(application(text), max_train_rows=draw.choice((3, 20, 100_000))) as back,
    ):
        for push in pushes[:12]:
            first.push(push.stream, push.rows)
            assert most_remembered(first) <= SIZE
        moved(first, without)
        for push in pushes[12:24]:
            without.push(push.stream, push.rows)
        without.log.close()
        with Log.open(without.folder) as log:
            log.lapse("q.join_1")  # as the start does when it finds that a query is back
        moved(without, back)
        for push in pushes[24:]:
            assert most_remembered(back) <= SIZE
            back.push(push.stream, push.rows)
        assert most_remembered(back) <= SIZE
