"""What was seen, in words."""

from __future__ import annotations

from collections.abc import Iterator

from freshet.demo.monitor import PACKETS
from freshet.demo.seen import Figures, Seen, mean_fresh, mean_response
from freshet.demo.worth import ALERTS
from freshet.model import duration_text


def paragraphs(seen: Seen) -> list[str]:
    """The story of a run in a few sentences each: what came, how it was answered, what it cost."""
    return [" ".join(part(seen)) for part in (_came, _answered, _recovered, _cost)]


def _came(seen: Seen) -> Iterator[str]:
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
        f" (a packet counts once for each query that has still to see it)."
    )


def _answered(seen: Seen) -> Iterator[str]:
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
        as_meant = slow[waited]["weight"] < slow[quick]["weight"]
        yield (
            f"Longest waited {_one(waited, slow[waited])}, least {_one(quick, slow[quick])}"
            f"{': that is what weights are for' if as_meant else ''}."
        )


def _one(name: str, query: Figures) -> str:
    response = query["response"]
    return f"{name} (weight {query['weight']:g}; {_time(response['mean_s'])}, p95 {_time(response['p95_s'])})"


def _recovered(seen: Seen) -> Iterator[str]:
    story = seen.story
    times = {name: seen.course.recovered(name, story.flood_start, story.flood_end) for name in seen.groups()}
    if all(time == 0.0 for time in times.values()):
        yield "When the flood ended, no more waited than before it: it was not too much for this machine after all."
        return
    told = [f"{_after(time)} for the {name}" for name, time in times.items()]
    yield f"From the end of the flood until no more waited than before it, it took {_listed(told)}."
    alerts, rest = times.get(ALERTS), [time for name, time in times.items() if name != ALERTS]
    if alerts is not None and all(time is None or time > alerts for time in rest):
        yield "What mattered most was back first."


def _listed(parts: list[str]) -> str:
    """Parts of a sentence.

    >>> _listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([*filter(None, [", ".join(parts[:-1])]), *parts[-1:]])


def _after(time: float | None) -> str:
    if time is None:
        return "longer than could be seen"
    return "no time" if time == 0.0 else _time(time)


def _cost(seen: Seen) -> Iterator[str]:
    report = seen.report
    steps, read = report["workers"]["units"], report["total"]["tuples_in"]
    yield (
        f"It took {steps:,} steps of {read / max(1, steps):,.0f} tuples on average"
        f" ({seen.jobs:,} Spark jobs, those that warm up included);"
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
    return "no time that is known" if seconds is None else duration_text(seconds)


def _percent(share: float) -> str:
    """A share for people.

    >>> _percent(0.987), _percent(0.0004), _percent(1.0)
    ('98.7 %', '0.04 %', '100 %')
    """
    if 0.0 < share < 0.01:
        return f"{100 * share:.2g} %"
    return "100 %" if share >= 1.0 else f"{min(99.9, 100 * share):.1f} %"
