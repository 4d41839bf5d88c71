"""The part of ``freshet explain`` about mirrors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freshet.app import App
    from freshet.cli.mirrors.known import KnownMirror
    from freshet.model import Query
    from freshet.sources.mirror.readers import MirrorReader


def explain_mirrors(app: App, chosen: Collection[str], queries: Mapping[str, Query]) -> Iterator[list[str]]:
    """Yields the lines of each mirror that the chosen queries read."""
    from freshet.app.declared.mirror_readers import readers_of
    from freshet.cli.mirrors.known import mirrors_of

    for known in mirrors_of(app):
        readers = readers_of(known.name, queries)
        if any(each.query in chosen for each in readers):
            yield list(_lines(known, readers))


def _lines(known: KnownMirror, readers: Collection[MirrorReader]) -> Iterator[str]:
    options = known.options
    what = "addresses by HTTP" if options.http is not None else "files" if options.file is not None else "a database"
    yield f"mirror {known.name}: polls {what}, at most {options.rate:g} {known.unit}"
    shares = f"{options.audit:.0%} of it for audits"
    learned = f"{options.explore:.0%} of it to explore, {shares}" if options.learn else f"rates as given, {shares}"
    yield f"  {learned}; time-out {options.timeout:g} s, at most {options.connections} polls of a host at once"
    yield from _worth(known, readers)
    if not known.records:
        yield "  nothing is known of its elements yet"
        return
    yield from _known(known)


def _worth(known: KnownMirror, readers: Collection[MirrorReader]) -> Iterator[str]:
    worth = known.options.worth
    if worth == "queries":
        names = list(known.records)
        told = []
        for each in readers:
            read = each.reads(names, known.column)
            which = "all elements" if read is None else f"{len(read)} of {len(names)} elements"
            told.append(f"{each.query} {each.weight:g}{f' ({which})' if names else ''}")
        yield f"  worth by the weights of queries: {', '.join(told)}"
    elif worth != "given":
        yield f"  worth by the accesses in {worth.accesses}; one of {worth.half_life / 3600.0:g} h ago counts half"


def _known(known: KnownMirror) -> Iterator[str]:
    from freshet.sources.mirror.remembered import RememberedMirror

    mirror = RememberedMirror(known.options, known.records, known.learned)
    elements, failing = mirror.elements, mirror.failing
    yield f"  {len(elements)} elements with {elements.rates.sum():.3g} changes/s in all, as far as polls have told"
    yield f"  the plan polls {mirror.polled} of them, and {mirror.planned:.1%} of the worth is fresh on average"
    counts = known.counts
    told = (f"{counts[what]:,} {what[:-1] if counts[what] == 1 else what}" for what in ("polls", "changes", "bytes"))
    yield f"  so far {', '.join(told)}"
    yield from _audited(known)
    if failing:
        fail = "element fails" if failing == 1 else "elements fail"
        yield f"  {failing} {fail}; freshet mirror rates says why"


def _audited(known: KnownMirror) -> Iterator[str]:
    from freshet.sources.mirror.audit import Audits

    audits = Audits(0.0)
    audits.count, audits.fresh = known.counts["audits"], known.counts["audits_fresh"]
    if audits.freshness is not None and audits.error is not None:
        yield f"  {audits.count:,} audits found {audits.freshness:.1%} fresh (standard error {audits.error:.1%})"
