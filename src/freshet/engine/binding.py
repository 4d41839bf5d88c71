"""Binding: from a step to a unit, that is, from operators to the trains that wait in front of them."""

from __future__ import annotations

from collections.abc import Callable

from freshet.engine.board import Board
from freshet.model import Chain, Step, Train, Unit, Work


def runnable(board: Board, chain: Chain) -> Chain | None:
    """The part of a chain that can run now, or None.

    A tuple must not overtake another one of its path. So where tuples wait in a queue inside the chain, the part
    from the last such queue on runs first, and a chain waits while one of its operators is running.
    """
    operators = chain.operators
    waiting = [index for index, number in enumerate(operators) if board.operators[number].pending]
    if not waiting:
        return None
    rest = operators[waiting[-1] :]
    state = board.queries[board.operators[rest[0]].query]
    if not state.may_run or any(board.operators[number].busy for number in rest):
        return None
    return Chain(rest)


def fed_by_running(board: Board, chain: Chain) -> bool:
    """Whether an operator before the chain on its path is running: what it lets through belongs to this step."""
    path = board.operators[chain.operators[0]].path
    return any(board.operators[number].busy for number in path[: path.index(chain.operators[0])])


def bind(board: Board, step: Step, unit: str, most_rows: int, train: Callable[[str, int, int], Train]) -> Unit | None:
    """The unit of a step: its chains, grouped by the train that they read. None where nothing can run now."""
    limit = most_rows if step.rows is None else min(step.rows, most_rows)
    groups: dict[tuple[str, int, int], list[Chain]] = {}
    # Two chains of a step may come down to overlapping parts of one path: the first one has them.
    taken: set[int] = set()
    for wanted in step.chains:
        chain = runnable(board, wanted)
        if chain is None or not taken.isdisjoint(chain.operators):
            continue
        taken.update(chain.operators)
        operator = board.operators[chain.operators[0]]
        first = operator.head
        end = first + min(operator.pending, limit)
        groups.setdefault((operator.node.reads, first, end), []).append(chain)
    works = tuple(Work(train(*place), tuple(chains)) for place, chains in groups.items())
    return Unit(unit, works) if works else None
