"""Settling: from a finished unit to what is committed of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from freshet.engine.board import Board
from freshet.model import Commit, SegmentFile, UnitResult, is_state_of


def failures_of(result: UnitResult, board: Board) -> dict[int, str]:
    """Numbers of the queries whose chains raised, each with the reason."""
    return {
        board.operators[done.chain.operators[0]].query: done.failure
        for done in result.chains
        if done.failure is not None
    }


def commit_of(result: UnitResult, board: Board, stopped: Collection[int]) -> Commit:
    """Cursors and files of a unit without those of the stopped queries: none of their chains takes effect, and no
    state of theirs changes."""
    cursors = []
    streams: set[str] = set()
    folds: set[str] = set()
    for work in result.unit.works:
        for chain in work.chains:
            query = board.operators[chain.operators[0]].query
            first, last = board.operators[chain.operators[0]].node, board.operators[chain.operators[-1]].node
            if query in stopped:
                streams.add(last.writes)
                folds |= {fold.fold for number in chain.operators if (fold := board.fold(number)) is not None}
            elif work.train.rows:
                cursors.append((first.name, first.reads, work.train.first, work.train.end))

    def is_left_out(stream: str) -> bool:
        return stream in streams or any(is_state_of(stream, fold) for fold in folds)

    files = (_without(file, is_left_out) for file in result.files)
    return Commit(tuple(cursors), tuple(file for file in files if file.members))


def _without(file: SegmentFile, is_left_out: Callable[[str], bool]) -> SegmentFile:
    members = tuple(member for member in file.members if not is_left_out(member[0]))
    return file if len(members) == len(file.members) else replace(file, members=members)
