"""The part of ``freshet explain`` on time and joins: when windows close, and in which form each join runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from freshet.app.declared.checking import Checked, timed_streams
from freshet.app.declared.spec import StreamSpec
from freshet.kernels.shuffling import MOST_BYTES, most_kept, rows_that_pay
from freshet.model import Join, Lookup, Query
from freshet.model.units import duration_text

_CORES = (8, 16, 64)


def explain_times(query: Query, streams: Mapping[str, StreamSpec], checked: Checked) -> Iterator[str]:
    """Yields a line for each stream: by which time its windows go, and up to when that time is complete."""
    for name in () if query.is_periodic else timed_streams(query.graph):
        time = checked.times.get(name) or "its arrival"
        yield f"time of {name} is {time}{_complete(streams.get(name))}"


def _complete(spec: StreamSpec | None) -> str:
    """Up to when the tuples of a stream are complete. For a query's output that depends on what it reads."""
    if spec is None:
        return ", complete as far as what it is made of"
    if spec.stream.event_time is None:
        return ""
    behind = f"{duration_text(spec.stream.lateness)} behind" if spec.stream.lateness else "that of"
    return f", complete up to {behind} the newest tuple; windows close by that"


def explain_joins(query: Query, kept: int) -> Iterator[str]:
    """In which form each join runs, and why.

    Args:
        query: With its joins.
        kept: Memory in which a worker keeps states.
    """
    for name, operator in query.graph.operators.items():
        if isinstance(operator, Join):
            yield f"join {name}: {_join(operator, kept)}"
    for name, operator in query.graph.operators.items():
        if isinstance(operator, Lookup):
            met = "by an index of its keys" if operator.keys[0] else "every row of it, as there are no equal columns"
            yield f"join {name} with table {operator.table}: vectorised, each task over its part; finds rows {met}"


def _join(join: Join, kept: int) -> str:
    reason = join.why_one_task
    if reason is not None:
        return f"vectorised, in one task at any size, because {reason}"
    new, remembered = _quicker(kept=True), _quicker(kept=False)
    kept_mib, most_mib = most_kept(kept) / 2**20, MOST_BYTES / 2**20
    return (
        "vectorised, in one task; shuffled, because its equal columns allow it, in steps with enough new tuples to "
        f"make that quicker ({new}), or, if they look at more than {kept_mib:.0f} MiB, which a worker cannot keep "
        f"(kept_state), at enough remembered tuples ({remembered}) or more than {most_mib:.0f} MiB"
    )


def _quicker(kept: bool) -> str:
    """From how many tuples on a shuffle is quicker."""
    found = ((cores, rows_that_pay(cores, kept)) for cores in _CORES)
    return ", ".join(f"{rows / 1e6:.2g} million on {cores} cores" for cores, rows in found if rows is not None)
