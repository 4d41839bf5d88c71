"""Settling: from a finished unit to what is committed of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from freshet.engine.binding import trains_of
from freshet.engine.board import Board
from freshet.engine.states import EdgeState
from freshet.model import Chain, Commit, SegmentFile, Unit, UnitResult


def failures_of(result: UnitResult, board: Board) -> dict[int, str]:
    """Numbers of the queries whose chains raised, each with the reason."""
    return {
        query: done.failure
        for done in result.chains
        if done.failure is not None
        for query in board.operators[done.chain.nodes[0]].queries
    }


def effective(unit: Unit, board: Board, stopped: set[int]) -> Sequence[Chain]:
    """The chains that take effect: those that a query needs which is not stopped."""
    if not stopped:
        return unit.chains
    return [chain for chain in unit.chains if not stopped.issuperset(board.operators[chain.nodes[0]].queries)]


def is_torn(unit: Unit, board: Board, stopped: set[int]) -> bool:
    """Whether what a chain that takes effect has given out went to one that does not: it would be lost."""
    chains = effective(unit, board, stopped)
    if len(chains) == len(unit.chains):
        return False
    kept = set(map(id, chains))
    return any(
        isinstance(source, int) and id(unit.chains[source]) in kept
        for chain in unit.chains
        if id(chain) not in kept
        for source in chain.inputs
    )


def commit_of(result: UnitResult, board: Board, chains: Sequence[Chain]) -> Commit:
    """Cursors and files of the chains that take effect; no state of the others changes."""
    cursors = tuple(
        (edge.edge.reader, train.stream, train.first, train.end)
        for chain in chains
        for edge, train in trains_of(board, chain)
        if train.rows
    )
    if len(chains) == len(result.unit.chains):
        return Commit(cursors, result.files)
    kept = {stream for chain in chains for stream in chain.writes}
    for fold in board.folds(number for chain in chains for number in chain.nodes):
        kept.update(fold.lows)
    files = (_only(file, kept) for file in result.files)
    return Commit(cursors, tuple(file for file in files if file.members))


def _only(file: SegmentFile, streams: Collection[str]) -> SegmentFile:
    return replace(file, members=tuple(member for member in file.members if member[0] in streams))


def suspects(unit: Unit, board: Board) -> list[EdgeState]:
    """The fused edges between chains of different queries: with queues there, each can fail by itself."""
    found: list[EdgeState] = []
    for chain in unit.chains:
        operator = board.operators[chain.nodes[0]]
        for edge, source in zip(operator.edges, chain.inputs, strict=True):
            if isinstance(source, int) and board.operators[unit.chains[source].nodes[-1]].queries != operator.queries:
                found.append(edge)
    return found
