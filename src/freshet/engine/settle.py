"""Settling: from a finished unit to what is committed of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from freshet.engine.board import Board
from freshet.model import Commit, SegmentFile, UnitResult


def failures_of(result: UnitResult, board: Board) -> dict[int, str]:
    """Numbers of the queries whose chains raised, each with the reason."""
    return {
        board.operators[done.chain.operators[0]].query: done.failure
        for done in result.chains
        if done.failure is not None
    }


def commit_of(result: UnitResult, board: Board, stopped: Collection[int]) -> Commit:
    """Cursors and files of a unit without those of the stopped queries: none of their chains takes effect."""
    cursors = []
    left_out = set()
    for work in result.unit.works:
        for chain in work.chains:
            query = board.operators[chain.operators[0]].query
            first, last = board.operators[chain.operators[0]].node, board.operators[chain.operators[-1]].node
            if query in stopped:
                left_out.add(last.writes)
            else:
                cursors.append((first.name, first.reads, work.train.first, work.train.end))
    files = (_without(file, left_out) for file in result.files)
    return Commit(tuple(cursors), tuple(file for file in files if file.members))


def _without(file: SegmentFile, streams: Collection[str]) -> SegmentFile:
    if not streams:
        return file
    return replace(file, members=tuple(member for member in file.members if member[0] not in streams))
