"""Binding: from a step to a unit, that is, from operators to the trains that wait in front of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from freshet.engine.board import Board
from freshet.model import Chain, State, Step, Train, Unit, Work

Versions = Callable[[str], Train]
"""The versions of a table that are kept."""
States = Callable[[Sequence[Chain], Mapping[int, int]], tuple[State, ...]]
"""The states of the folds in chains; the trains of the chains end where the mapping says for their first operators."""


def runnable(board: Board, chain: Chain, ahead: bool = False) -> Chain | None:
    """The part of a chain that can run now, or None.

    A tuple must not overtake another one of its path. So where tuples wait in a queue inside the chain, the part
    from the last such queue on runs first, and a chain waits while one of its operators or folds is running (unless it
    is to run ``ahead``, and is committed after what is running). Where no tuple waits, the part from the first fold on
    that is closing runs over an empty train.
    """
    operators = [board.operators[number] for number in chain.operators]
    waiting = [index for index, operator in enumerate(operators) if operator.waiting]
    closing = [index for index, operator in enumerate(operators) if operator.closing]
    if not waiting and not closing:
        return None
    first = waiting[-1] if waiting else closing[0]
    rest = operators[first:]
    # The folds in the chain are those at or behind its first operator without those behind its last one.
    folds = rest[0].folds[: len(rest[0].folds) - len(rest[-1].folds) + (board.fold(chain.operators[-1]) is not None)]
    if not board.queries[rest[0].query].may_run:
        return None
    if any(operator.busy and not ahead for operator in rest) or any(fold.busy for fold in folds):
        return None
    return Chain(chain.operators[first:])


def fed_by_running(board: Board, chain: Chain) -> bool:
    """Whether an operator before the chain on its path is running: what it lets through belongs to this step."""
    path = board.operators[chain.operators[0]].path
    return any(board.operators[number].busy for number in path[: path.index(chain.operators[0])])


def next_train(board: Board, unit: Unit, rows: int) -> Step | None:
    """The chains of a running unit over full trains (of so many rows) for which another full one waits; None: none.

    Only filters and projections can work on two trains at once: they keep no state from one to the next.
    """
    full = tuple(
        chain
        for work in unit.works
        for chain in work.chains
        if work.train.rows == rows and _waits_in_front(board, chain, rows) and _is_stateless(board, chain)
    )
    return Step(full, rows) if full else None


def _waits_in_front(board: Board, chain: Chain, rows: int) -> bool:
    first, *others = (board.operators[number] for number in chain.operators)
    return first.waiting >= rows and not any(operator.waiting for operator in others)


def _is_stateless(board: Board, chain: Chain) -> bool:
    return all(board.fold(number) is None for number in chain.operators)


def bind(
    board: Board,
    step: Step,
    unit: str,
    most_rows: int,
    train: Callable[[str, int, int], Train],
    states: States = lambda chains, ends: (),
    ahead: bool = False,
    versions: Versions | None = None,
) -> Unit | None:
    """The unit of a step: its chains, grouped by the train that they read. None where nothing can run now."""
    limit = most_rows if step.rows is None else min(step.rows, most_rows)
    groups: dict[tuple[str, int, int], list[Chain]] = {}
    ends: dict[int, int] = {}
    # Two chains of a step may come down to overlapping parts of one path: the first one has them.
    taken: set[int] = set()
    for chain in _runnable(board, step, ahead):
        if not taken.isdisjoint(chain.operators):
            continue
        taken.update(chain.operators)
        operator = board.operators[chain.operators[0]]
        first = operator.head
        ends[chain.operators[0]] = end = first + min(operator.waiting, limit)
        groups.setdefault((operator.node.reads, first, end), []).append(chain)
    if not groups:
        return None
    works = tuple(Work(train(*place), tuple(chains)) for place, chains in groups.items())
    chosen = [chain for work in works for chain in work.chains]
    # Not before the trains: the version that each of their tuples meets came into the log before the tuple.
    tables = tuple(map(versions, _tables(board, chosen))) if versions is not None and board.lookups else ()
    return Unit(unit, works, states(chosen, ends), tables)


def _tables(board: Board, chains: Sequence[Chain]) -> list[str]:
    numbers = (number for chain in chains for number in chain.operators if number in board.lookups)
    return list(dict.fromkeys(board.lookups[number] for number in numbers))


def _runnable(board: Board, step: Step, ahead: bool) -> list[Chain]:
    chains = [chain for wanted in step.chains if (chain := runnable(board, wanted, ahead)) is not None]
    # Tuples take the event time along that a fold behind them waits for, so they come first.
    return sorted(chains, key=lambda chain: not board.operators[chain.operators[0]].waiting)
