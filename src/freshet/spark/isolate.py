"""Isolation: where a job fails, find the chains that made it fail, so that the others' results stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from freshet.model import Chain, Train, Work
from freshet.spark.failures import Retry, message, retry_reason

Works = tuple[Work, ...]
Result = TypeVar("Result")


def isolate(
    works: Works,
    run: Callable[[Works], Result],
    suspect: Callable[[], None],
    together: Callable[[Chain], object] = lambda chain: chain,
) -> Iterator[tuple[Works, Result | str]]:
    """Runs works; where that fails, runs each half by itself, down to single chains.

    Args:
        works: What to run.
        run: Runs works as one job.
        suspect: Called after the first failure; raises where not even an empty job runs, because then no chain is
            to blame and bisecting would quarantine them all.
        together: Chains for which it gives the same run together or not at all: they share a state.

    Yields:
        Works with their result, or those of one chain (of chains that go together) with the text of the failure.

    Raises:
        Retry: The failure is no chain's fault.

    >>> def run(works):
    ...     numbers = [chain.operators[0] for work in works for chain in work.chains]
    ...     return 1 // (0 if 2 in numbers else 1) + len(numbers)
    >>> works = (Work(Train("s", 0, 9), tuple(Chain((number,)) for number in range(4))),)
    >>> [result for _, result in isolate(works, run, lambda: None)]
    [3, 'integer division or modulo by zero', 2]
    """
    try:
        yield works, run(works)
        return
    except Exception as error:
        if reason := retry_reason(error):
            raise Retry(reason) from error
        failure = message(error)
    suspect()
    groups: dict[object, list[tuple[Train, Chain]]] = {}
    for work in works:
        for chain in work.chains:
            groups.setdefault(together(chain), []).append((work.train, chain))
    if len(groups) == 1:
        yield works, failure
        return
    each = list(groups.values())
    middle = len(each) // 2
    for half in (each[:middle], each[middle:]):
        yield from isolate(_works([pair for group in half for pair in group]), run, lambda: None, together)


def _works(chains: list[tuple[Train, Chain]]) -> Works:
    groups: dict[Train, list[Chain]] = {}
    for train, chain in chains:
        groups.setdefault(train, []).append(chain)
    return tuple(Work(train, tuple(group)) for train, group in groups.items())
