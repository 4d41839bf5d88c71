"""The part of ``freshet explain`` about mirrors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshet.app import App
    from freshet.cli.mirrors.known import KnownMirror
    from freshet.model import Query


def explain_mirrors(app: App, queries: Sequence[Query]) -> Iterator[list[str]]:
    """Yields the lines of each mirror that queries read."""
    from freshet.cli.mirrors.known import mirrors_of

    read = {name for query in queries for name in (*query.graph.streams, *query.graph.tables)}
    for known in mirrors_of(app):
        if known.name in read:
            yield list(_lines(known))


def _lines(known: KnownMirror) -> Iterator[str]:
    options = known.options
    unit = "polls/s" if options.budget is not None else "bytes/s"
    how = "HTTP" if options.http is not None else "files" if options.file is not None else "a database"
    yield f"mirror {known.name}: polled by {how}, at most {options.rate:g} {unit}"
    shares = f"{options.audit:.0%} of it for audits"
    learned = f"{options.explore:.0%} of it to explore, {shares}" if options.learn else f"rates as given, {shares}"
    yield f"  {learned}; time-out {options.timeout:g} s, at most {options.connections} polls of a host at once"
    if not known.records:
        yield "  nothing is known of its elements yet"
        return
    yield from _known(known)


def _known(known: KnownMirror) -> Iterator[str]:
    from freshet.mirror import plan
    from freshet.sources.mirror.remembered import remembered_elements

    elements = remembered_elements(known.options, known.records, known.learned)
    made = plan(elements, known.options.rate)
    polled = int((made.frequencies > 0.0).sum())
    failing = sum(record["failures"] > 0 for record in known.records.values())
    yield f"  {len(elements)} elements with {elements.rates.sum():.3g} changes/s in all, as far as polls have told"
    yield f"  the plan polls {polled} of them, and {made.perceived:.1%} of the worth is fresh on average"
    if failing:
        yield f"  {failing} elements fail; freshet mirror rates says why"
