"""What was seen, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from freshet.demo.finished import Figures, FinishedDemo, mean_fresh, mean_response
from freshet.demo.monitor import PACKETS, read_directly
from freshet.demo.story import GAP
from freshet.model import duration_text
from freshet.policies import RatioPolicy, create


def paragraphs(seen: FinishedDemo) -> list[str]:
    """The story of a run, in paragraphs of a few sentences: what came, how it was answered, calm, flood, cost."""
    return [" ".join(part(seen)) for part in (_came, _answered, _calm, _weighed, _cost)]


def _came(seen: FinishedDemo) -> Iterator[str]:
    report, story = seen.report, seen.story
    streams = " and ".join(f"{counts['tuples']:,} {name}" for name, counts in report["streams"].items())
    yield f"{len(report['queries'])} queries watched {streams}, scheduled by {report['policy']}."
    yield (
        f"Calm traffic was about {_rate(story.calm_rate)}, a quarter of the {_rate(story.sustained)} that this machine"
        f" was found to sustain on two cores. From second {story.flood_start:.0f} to second {story.flood_end:.0f}"
        f" a flood of {_rate(story.flood_rate)} came: {story.flood_rate / story.sustained:.1f} times what it sustains."
    )
    when, most = seen.course.peak()
    yield (
        f"At worst, in second {when:.0f}, {most:,} tuples waited in front of the queries"
        f" (a packet counts once for each query that has yet to see it)."
    )


def _answered(seen: FinishedDemo) -> Iterator[str]:
    for name, queries in seen.groups().items():
        least, most = (pick(query["weight"] for query in queries.values()) for pick in (min, max))
        weights = f"weight {least:g}" if least == most else f"weight {least:g} to {most:g}"
        yield (
            f"The {len(queries)} {name} ({weights}) were fresh {_percent(mean_fresh(queries))} of the time and"
            f" answered after {_time(mean_response(queries))} on average."
        )
    every = {name: query for queries in seen.groups().values() for name, query in queries.items()}
    slow = {name: query for name, query in every.items() if query["response"]["mean_s"] is not None}
    if slow:
        waited = max(slow, key=lambda name: slow[name]["response"]["mean_s"])
        quick = min(slow, key=lambda name: slow[name]["response"]["mean_s"])
        yield f"{_one(waited, slow[waited])} waited longest, {_one(quick, slow[quick])} least."


def _calm(seen: FinishedDemo) -> Iterator[str]:
    """Why freshness is below 100 % in calm traffic."""
    story, workers = seen.story, seen.report["workers"]
    every = {name: query for queries in seen.groups().values() for name, query in queries.items()}
    fresh = seen.course.freshness_between(every, 0.0, story.flood_start)
    if fresh is not None:
        yield f"Before the flood the queries were fresh {_percent(fresh)} of the time."
    yield (
        f"Even calm traffic leaves no query fresh all the time: {story.burst:,} packets come together, about every"
        f" {GAP:g} s, and from their arrival until their answers are in its output a query is stale, however many"
        f" match. A step took {_time(workers['busy_s'] / max(1, workers['units']))} on average over the whole run."
    )


def _weighed(seen: FinishedDemo) -> Iterator[str]:
    """What the flood did to queries of different worth."""
    story, groups, end = seen.story, seen.groups(), _over(seen)
    yield from _recovered(seen)
    shares = {name: seen.course.freshness_between(queries, story.flood_start, end) for name, queries in groups.items()}
    told = [f"the {name} {_percent(share)}" for name, share in shares.items() if share is not None]
    if told:
        seconds = f"From second {story.flood_start:.0f} to second {end:.0f}"
        yield f"{seconds}, while it lasted, queries were fresh for this share of the time: {_listed(told)}."
    yield from _compared(seen, end)


def _over(seen: FinishedDemo) -> float:
    """When the flood and its backlog were over; the end of the run if that was not seen."""
    story = seen.story
    times = [seen.course.recovered(name, story.flood_start, story.flood_end) for name in seen.groups()]
    last = max(seen.course.times(), default=story.flood_end)
    return min(last, story.flood_end + max((last if time is None else time for time in times), default=0.0))


def _compared(seen: FinishedDemo, end: float) -> Iterator[str]:
    """The heaviest queries against the lightest, as measured; only queries with the same input are comparable."""
    direct = read_directly(PACKETS)
    groups = [
        (name, {query: figures for query, figures in queries.items() if query in direct})
        for name, queries in seen.groups().items()
    ]
    groups = [(name, queries) for name, queries in groups if queries]
    if len(groups) < 2:
        return
    policy = seen.report["policy"]
    weighs = isinstance(create(policy), RatioPolicy)
    told = "goes by weight, cost and what waits" if weighs else "does not look at weights"
    yield (
        f"{policy} {told}. Of the queries that read the packets themselves, {_measured(seen, end, *groups[0])},"
        f" {_measured(seen, end, *groups[-1])}."
    )


def _measured(seen: FinishedDemo, end: float, name: str, queries: Mapping[str, Figures]) -> str:
    fresh = seen.course.freshness_between(queries, seen.story.flood_start, end)
    share = "" if fresh is None else f"fresh {_percent(fresh)} of that time and "
    return f"the {len(queries)} {name} were {share}answered after {_time(mean_response(queries))} over the whole run"


def _one(name: str, query: Figures) -> str:
    response = query["response"]
    return f"{name} (weight {query['weight']:g}; {_time(response['mean_s'])}, p95 {_time(response['p95_s'])})"


def _recovered(seen: FinishedDemo) -> Iterator[str]:
    story = seen.story
    times = {name: seen.course.recovered(name, story.flood_start, story.flood_end) for name in seen.groups()}
    if all(time == 0.0 for time in times.values()):
        yield "When the flood ended, no more tuples waited than before: it was not too much for this machine."
        return
    told = [f"{_after(time)} for the {name}" for name, time in times.items()]
    yield f"After the flood, it took {_listed(told)} until no more tuples waited than before it."


def _listed(parts: list[str]) -> str:
    """Joins parts of a sentence.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([*filter(None, [", ".join(parts[:-1])]), *parts[-1:]])


def _after(time: float | None) -> str:
    if time is None:
        return "longer than could be seen"
    return "no time" if time == 0.0 else _time(time)


def _cost(seen: FinishedDemo) -> Iterator[str]:
    report = seen.report
    steps, read = report["workers"]["units"], report["total"]["tuples_in"]
    yield (
        f"It took {steps:,} steps of {read / max(1, steps):,.0f} tuples on average"
        f" ({report['residents']['dispatches']:,} parts of steps handed to residents, and {seen.jobs:,} Spark jobs,"
        " including those for the warm-up);"
        f" deciding what goes next took {_percent(report['decisions']['deciding_share'])} of the time."
    )
    lost = sum(max(0, rows) for rows in seen.unanswered.values())
    twice = -sum(min(0, rows) for rows in seen.unanswered.values())
    dead = sum(counts["dead"] + counts["late"] for counts in report["streams"].values())
    differ = [name for name, query in report["queries"].items() if query["tuples_out"] != seen.outputs[name]]
    if lost or twice or dead or differ:
        yield f"Not all is well: {lost:,} rows lost, {twice:,} answered twice, {dead:,} set aside" + (
            f", outputs that differ from what was counted: {', '.join(differ)}." if differ else "."
        )
        return
    yield (
        f"0 rows were lost: each query answered every tuple that came in, {read:,} in all,"
        f" and the {sum(seen.outputs.values()):,} answers are in the outputs."
    )


def _rate(rate: float) -> str:
    return f"{float(f'{rate:.2g}'):,.0f} {PACKETS}/s"


def _time(seconds: float | None) -> str:
    return "an unknown time" if seconds is None else duration_text(seconds)


def _percent(share: float) -> str:
    """A share for people.

    >>> _percent(0.987), _percent(0.0004), _percent(1.0)
    ('98.7 %', '0.04 %', '100 %')
    """
    if 0.0 < share < 0.01:
        return f"{100 * share:.2g} %"
    return "100 %" if share >= 1.0 else f"{min(99.9, 100 * share):.1f} %"
