from __future__ import annotations

import functools
import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from freshet.log import Intake, Log
from freshet.log.intake.zones import CLOCK, MOMENT, moments, wall_clocks
from freshet.model import Stream, parse_schema
from freshet.sources import TraceOptions
from freshet.sources.times import seconds_of
from freshet.sources.trace import Trace

ZONES = [
    "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "America/Sao_Paulo",
    "Europe/London", "Asia/Tehran", "America/St_Johns", "Europe/Dublin", "UTC",
]  # fmt: skip
GAP = ["2024-03-10 02:10:00", "2024-03-10 02:30:00", "2024-03-10 02:50:00"]


@functools.cache
def clocks(zone: str, count: int, seed: int = 1) -> list[datetime]:
    """Wall clocks before 1900 and behind 2037, and close to every change that the zone has had."""
    rng, place = random.Random(seed), ZoneInfo(zone)
    found = [
        datetime(rng.randrange(1800, 2120), 1, 1) + timedelta(minutes=rng.randrange(500_000)) for _ in range(count)
    ]
    for year in [1883, 1893, 1911, 1918, 1945, 1969, 1981, 2011, 2024, 2040]:
        days = [datetime(year, 1, 1) + timedelta(days=day) for day in range(366)]
        for day, after in pairwise(days):
            if day.replace(tzinfo=place).utcoffset() != after.replace(tzinfo=place).utcoffset():
                found += [day + timedelta(minutes=rng.randrange(1500)) for _ in range(8)]
    return found


def expected(clock: datetime, zone: str) -> datetime:
    """What Python's own zones say."""
    return clock.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.mark.parametrize("zone", ZONES)
def test_clocks_and_moments_are_those_of_pythons_zones(zone: str) -> None:
    given = clocks(zone, 300)
    assert moments(pa.array(given, CLOCK), zone).to_pylist() == [expected(clock, zone) for clock in given]
    shown = [clock.replace(tzinfo=UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None) for clock in given]
    assert wall_clocks(pa.array(given, MOMENT), zone).to_pylist() == shown


def test_years_that_python_does_not_know_follow_the_rule() -> None:
    cycles, hour = 30 * 146_097 * 86_400_000_000, 3_600_000_000
    summer, winter = (pa.scalar(datetime(2340, month, 1, 12), CLOCK).cast(pa.int64()).as_py() for month in (7, 1))
    far = pa.array([summer + cycles, None, winter + cycles]).cast(CLOCK)
    found = moments(far, "America/New_York").cast(pa.int64()).to_pylist()
    assert found == [summer + cycles + 4 * hour, None, winter + cycles + 5 * hour]


def test_a_fold_says_the_second_moment_and_means_nothing_in_a_gap() -> None:
    twice, never = datetime(2024, 11, 3, 1, 30), datetime(2024, 3, 10, 2, 30)
    for year in (2024, 2050):
        later = [datetime(2050, 11, 6, 1, 30), datetime(2050, 3, 13, 2, 30)]
        at = pa.array([twice, never] if year == 2024 else later, CLOCK)
        first, second = (moments(at, "America/New_York", second=which).to_pylist() for which in (False, True))
        assert second[0] - first[0] == timedelta(hours=1)
        assert second[1] == first[1]


def test_all_ways_to_a_time_mean_the_same_moment(tmp_path: Path) -> None:
    """Text in a pushed row, in a trace, and as the time that a trace is played by."""
    zone, wanted = "America/New_York", [datetime(2024, 3, 10, 7, m, tzinfo=UTC) for m in (10, 30, 50)]
    stream = Stream("s", parse_schema("ts timestamp"), event_time="ts", time_zone=zone)
    with Log.open(tmp_path / "state") as log:
        log.declare("s")
        Intake(log, stream).append([{"ts": text} for text in GAP], 1)
        Intake(log, stream).append([{"ts": datetime.fromisoformat(text)} for text in GAP], 1)
        assert log.read("s", 0, 6)["ts"].to_pylist() == wanted * 2
    for texts in (GAP, [*GAP, "soon"]):
        seconds = seconds_of(pa.chunked_array([texts]), "iso", zone)
        assert seconds[:3].tolist() == [moment.timestamp() for moment in wanted]
    local = pa.chunked_array([pa.array([datetime.fromisoformat(text) for text in GAP], CLOCK)])
    assert seconds_of(local, "s", zone).tolist() == [moment.timestamp() for moment in wanted]
    file = tmp_path / "trace.csv"
    file.write_text("ts\n" + "".join(f"{text}\n" for text in GAP))
    batch = Trace(TraceOptions(path=file, time="ts", unit="iso", speed="max"), stream).poll(0.0)
    assert batch is not None
    assert isinstance(batch.rows, pa.Table)
    assert batch.rows["ts"].to_pylist() == wanted


@pytest.mark.spark
def test_clocks_mean_what_spark_says(spark) -> None:
    """Also in gaps and overlaps, in years before 1900 and behind 2037, and where a change is half an hour."""
    cases = [(zone, clock) for zone in ZONES for clock in clocks(zone, 60)]
    texts = [(f"{clock.isoformat(' ')} {zone}",) for zone, clock in cases]
    frame = spark.createDataFrame(texts, "t string").selectExpr("unix_micros(CAST(t AS TIMESTAMP))")
    found = [row[0] for row in frame.collect()]
    ours = [
        moment
        for zone in ZONES
        for moment in moments(pa.array(clocks(zone, 60), CLOCK), zone).cast(pa.int64()).to_pylist()
    ]
    wrong = [(text, ours, theirs) for (text,), ours, theirs in zip(texts, ours, found, strict=True) if ours != theirs]
    assert not wrong, f"{len(wrong)} of {len(texts)}, such as {wrong[:5]}"
