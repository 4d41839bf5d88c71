"""Isolation: if a job fails, find what made it fail, so that the other results stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from freshet.spark.driver.failures import Retry, message, retry_reason

Part = TypeVar("Part")
Result = TypeVar("Result")


def isolate(
    parts: Sequence[Part], run: Callable[[Sequence[Part]], Result], suspect: Callable[[], None]
) -> Iterator[tuple[Sequence[Part], Result | str]]:
    """Runs parts; if that fails, runs each half by itself, down to single parts.

    After the first failure it calls ``suspect``, which raises if not even an empty job runs: then no part is to blame,
    and bisecting would quarantine them all.

    Yields:
        Parts with their result, or a single part with the text of its failure.

    Raises:
        Retry: The failure is no part's fault.

    >>> def run(parts):
    ...     return 1 // (0 if 2 in parts else 1) + len(parts)
    >>> [result for _, result in isolate(range(4), run, lambda: None)]
    [3, 'integer division or modulo by zero', 2]
    """
    try:
        yield parts, run(parts)
        return
    except Exception as error:
        if isinstance(error, Retry):
            raise  # as it is: it may name the places of chains
        if reason := retry_reason(error):
            raise Retry(reason) from error
        failure = message(error)
    suspect()
    if len(parts) == 1:
        yield parts, failure
        return
    middle = len(parts) // 2
    for half in (parts[:middle], parts[middle:]):
        yield from isolate(half, run, lambda: None)
