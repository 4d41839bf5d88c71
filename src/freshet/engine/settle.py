"""Settling: from a finished unit to what is committed of it.

A chain takes effect unless all queries that need it are stopped. What it gave to a reader that takes no effect goes to
the queue of that reader, in the same transaction. For that the unit's files must hold it: because it goes to a stream
anyway, or because the runner saw the reader fail. Otherwise the unit is *torn*, and runs again with a queue there. The
query may have been stopped while the unit ran, or the reader may have failed beyond the task that ran the chain.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from freshet.engine.binding import trains_of
from freshet.engine.board import Board
from freshet.engine.states import EdgeState
from freshet.model import Chain, Commit, Edge, Keep, Missing, SegmentFile, Train, Unit, UnitResult
from freshet.model.scheduling.unit import given_by


def failures_of(result: UnitResult, board: Board) -> dict[int, str]:
    """Numbers of the queries whose chains raised, each with the reason."""
    return {
        query: done.failure
        for done in result.chains
        if done.failure is not None
        for query in board.operators[done.chain.nodes[0]].queries
    }


def effects(results: Iterable[UnitResult], board: Board) -> dict[str, list[Chain]]:
    """The chains that take effect, by unit: those of queries that are not stopped and have not failed before them."""
    stopped = set(board.stopped)
    found: dict[str, list[Chain]] = {}
    for result in results:
        stopped.update(failures_of(result, board))
        chains = result.unit.chains
        found[result.unit.id] = [
            chain for chain in chains if not stopped.issuperset(board.operators[chain.nodes[0]].queries)
        ]
    return found


def _cut(unit: Unit, board: Board, chains: Sequence[Chain]) -> dict[int, tuple[str, ...]]:
    """The queues for readers in the unit that take no effect, by the place of the chain (in effect) that they read.

    A reader without queries needs none: they were dropped, and each left with a place of its own.
    """
    if len(chains) == len(unit.chains):
        return {}
    kept = set(map(id, chains))
    found: dict[int, tuple[str, ...]] = {}
    for chain in unit.chains:
        reader = board.operators[chain.nodes[0]]
        if id(chain) not in kept and reader.queries:
            for edge, source in zip(reader.edges, chain.inputs, strict=True):
                if isinstance(source, int) and id(unit.chains[source]) in kept:
                    found[source] = (*found.get(source, ()), edge.edge.stream)
    return found


def is_torn(result: UnitResult, board: Board, chains: Sequence[Chain]) -> bool:
    """Whether a unit's files lack something that these chains, which take effect, gave to chains that do not."""
    for place in _cut(result.unit, board, chains):
        name = _held_as(result.unit, place)
        held = sum(member[1] for file in result.files for member in file.members if member[0] == name)
        if held != result.chains[place].rows_out:
            return True
    return False


def _held_as(unit: Unit, place: int) -> str:
    """Name under which the files of a unit hold the output of a chain, if they do."""
    return next(iter(unit.chains[place].writes), given_by(unit.id, place))


def with_queues(unit: Unit, board: Board, chains: Sequence[Chain]) -> Sequence[Chain]:
    """The chains that take effect, which now also write to the queues of readers that take none."""
    cut = _cut(unit, board, chains)
    if not cut:
        return chains
    more = {id(unit.chains[place]): queues for place, queues in cut.items()}
    return [replace(chain, writes=(*chain.writes, *more.get(id(chain), ()))) for chain in chains]


def commit_of(result: UnitResult, board: Board, chains: Sequence[Chain]) -> Commit:
    """Cursors and files of the chains that take effect; no state of the others changes."""
    cursors = tuple(
        (edge.edge.reader, train.stream, train.first, train.end)
        for chain in chains
        for edge, train in trains_of(board, chain)
        if train.rows and edge.window is None
    )
    missing = tuple(missing_of(result, board, chains))
    if len(chains) == len(result.unit.chains):
        return Commit(cursors, result.files, missing=missing)
    kept = [stream for chain in chains for stream in chain.writes]
    for fold in board.folds(number for chain in chains for number in chain.nodes):
        kept += fold.lows
    streams: dict[str, tuple[str, ...]] = {stream: (stream,) for stream in kept}
    for place, queues in _cut(result.unit, board, chains).items():
        name = _held_as(result.unit, place)
        streams[name] = (*streams.get(name, ()), *queues)
    files = (_members_for(streams, file) for file in result.files)
    return Commit(cursors, tuple(file for file in files if file.members), missing=missing)


def missing_of(result: UnitResult, board: Board, chains: Sequence[Chain]) -> Iterator[Missing]:
    """What the ledger gets of the chains that take effect: the trains of which not all tuples were kept."""
    effect = set(map(id, chains))
    for chain, done in zip(result.unit.chains, result.chains, strict=True):
        if id(chain) in effect and chain.is_thinned:
            for edge, train in trains_of(board, chain):
                if train.keep is not None and (keep := train.keep.read(done.share)).thins and train.rows:
                    yield _thinned(board, edge.edge, train, keep, done.entered[edge.edge.port])
                if train.keep is not None and train.keep.past:
                    yield from _past_mark(board, edge.edge, train, train.keep.past)
                if train.keep is not None and train.keep.let_go:
                    yield _let_go(board, edge, train, train.keep.let_go)


def _thinned(board: Board, edge: Edge, train: Train, keep: Keep, entered: int) -> Missing:
    query, rows = board.operators[edge.node].node.query, train.rows - entered - len(keep.past) - len(keep.let_go)
    where = query, edge.reader, train.stream
    return Missing(*where, "thinned", train.first, train.end, rows, keep.ratio, keep.rule, keep.reason)


def _past_mark(board: Board, edge: Edge, train: Train, past: Sequence[int]) -> Iterator[Missing]:
    operator = board.operators[edge.node]
    reason = f"at or below the mark of {operator.node.operator.ordered_by}"
    for query in (board.queries[number].name for number in operator.queries):
        where = query, edge.reader, train.stream
        yield Missing(*where, "past-mark", train.first, train.end, len(past), reason=reason)


def _let_go(board: Board, edge: EdgeState, train: Train, gone: Sequence[int]) -> Missing:
    query = board.operators[edge.edge.node].node.query
    where = query, edge.edge.reader, train.stream
    reason = f"{edge.join} had no memory for what they join with"
    return Missing(*where, "let-go", train.first, train.end, len(gone), rule=edge.join, reason=reason)


def _members_for(streams: Mapping[str, Sequence[str]], file: SegmentFile) -> SegmentFile:
    """A file with a member for each stream that it goes to; ``streams`` has these by the names in the file."""
    members = ((stream, *member[1:]) for member in file.members for stream in streams.get(member[0], ()))
    return replace(file, members=tuple(members))


def suspects(unit: Unit, board: Board, places: Collection[int]) -> list[EdgeState]:
    """The fused edges to chains at some places from chains of other queries. With queues there, each can fail alone."""
    found: list[EdgeState] = []
    for chain in (unit.chains[place] for place in places):
        operator = board.operators[chain.nodes[0]]
        for edge, source in zip(operator.edges, chain.inputs, strict=True):
            if isinstance(source, int) and board.operators[unit.chains[source].nodes[-1]].queries != operator.queries:
                found.append(edge)
    return found
