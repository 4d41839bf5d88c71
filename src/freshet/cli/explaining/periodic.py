"""The part of ``freshet explain`` on periodic queries: when they are released, and what an instance sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from freshet.model import Panes, Query
from freshet.model.units import duration_text

_LATE: Final = {"finish": "one that is late is answered all the same", "abandon": "one that is late is given up"}
_MISSED: Final = {"skip": "missed ones are skipped", "catch-up": "missed ones are caught up with"}


def explain_periodic(query: Query, scheduler: str) -> Iterator[str]:
    """Releases, windows and what is kept between them; nothing for a continuous query."""
    promises = query.promises
    if promises.period is None or promises.deadline is None:
        return
    every, due = duration_text(promises.period), duration_text(promises.deadline)
    yield f"released every {every}, at multiples of {every}, by {scheduler}; due {due} later; {_LATE[promises.late]}"
    yield f"releases: {_MISSED[promises.missed]}"
    sources = {name: source for name, inputs in query.graph.inputs.items() for source in inputs}
    for name, window in query.windows.items():
        yield f"an instance sees of {sources[name]}, by arrival: {window.text()}"
    panes = [name for name, each in query.graph.operators.items() if isinstance(each, Panes) and each.slide > 1]
    if panes:
        yield f"{', '.join(panes)} keeps panes: no tuple is read twice"
    elif any(not window.passes for window in query.windows.values()):
        yield "it is a batch: what its windows hold is read again at each release"
    if "thin" in promises.overload:
        yield f"if there is too much work, it keeps a share of its tuples; worth: {promises.quality.text()}"
