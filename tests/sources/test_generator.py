import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from freshet.model import Stream, UserError, parse_schema
from freshet.sources import Generator, GeneratorOptions, create

SCHEMA = (
    "id bigint, src string, port int, v double, t float, level double, ts timestamp, flag boolean, price decimal(8,2)"
)
COLUMNS = {
    "id": {"kind": "sequence", "start": 100},
    "src": {"kind": "choice", "values": ["a", "b", "c"], "weights": [8, 1, 1], "nulls": 0.05},
    "port": {"kind": "zipf", "ranks": 50, "exponent": 1.2},
    "v": {"kind": "normal", "mean": 10, "deviation": 2},
    "t": {"kind": "exponential", "mean": 3},
    "level": {"kind": "walk", "start": 5, "step": 0.5, "low": 0, "high": 10},
    "ts": {"kind": "event_time", "delay": "2 s", "fraction": 0.3, "start": "2024-01-01T00:00:00Z"},
}


def make(schema: str = SCHEMA, **options) -> Generator:
    source = {"arrival": {"kind": "constant", "rate": 1000.0}, "columns": COLUMNS, "seed": 3} | options
    return Generator(GeneratorOptions.model_validate(source), Stream("s", parse_schema(schema)))


def drawn(source: Generator, moments, start: float = 1000.0):
    batches = [source.poll(start), *(source.poll(start + moment) for moment in moments)]
    return [batch for batch in batches if batch is not None]


def together(batches) -> pa.Table:
    return pa.concat_tables([batch.rows for batch in batches]).combine_chunks()


def values(table: pa.Table, name: str) -> np.ndarray:
    return np.asarray(table.column(name).drop_null().to_numpy())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=6), st.integers(1, 5000))
def test_tuples_do_not_depend_on_batches_or_restarts(gaps, max_rows):
    whole = together(drawn(make(max_rows=10**6), [20.0]))
    source, batches, now = make(max_rows=max_rows), [], 50_000.0
    for gap in gaps:
        source.poll(now)
        now += gap
        batch = source.poll(now)
        if batch is None:
            continue
        batches.append(batch)
        # The process dies here; it comes back 777 s later.
        source, now = make(max_rows=max_rows), now + 777.0
        source.restore(json.loads(json.dumps(batch.position)))
    if batches:
        parts = together(batches)
        assert parts.equals(whole.slice(0, parts.num_rows))


def test_values_have_the_distribution_that_was_asked_for():
    table = together(drawn(make(max_rows=10**6), [40.0]))
    n = table.num_rows
    assert n == 40_000
    assert table["id"].to_pylist() == list(range(100, 100 + n))
    counts = {row["values"]: row["counts"] for row in table["src"].value_counts().to_pylist()}
    assert abs(counts[None] / n - 0.05) < 0.01
    assert abs(counts["a"] / (n - counts[None]) - 0.8) < 0.02
    assert abs(values(table, "v").mean() - 10) < 0.1
    assert abs(values(table, "v").std() - 2) < 0.1
    assert abs(values(table, "t").mean() - 3) < 0.1
    ranks = np.bincount(values(table, "port"), minlength=51)
    assert ranks[0] == 0
    assert abs(ranks[1] / ranks[2] - 2**1.2) < 0.2
    level = values(table, "level")
    assert level.min() >= 0
    assert level.max() <= 10
    assert np.abs(np.diff(level)).max() < 5
    assert set(table["flag"].to_pylist()) == {True, False}
    assert 0 <= min(table["price"].to_pylist()) < max(table["price"].to_pylist()) <= 1


def test_event_times_lie_before_arrivals_by_the_delay():
    source = make(columns={"ts": {"kind": "event_time", "delay": "2 s", "fraction": 0.25}}, max_rows=10**6)
    (batch,) = drawn(source, [20.0])
    delays = (batch.arrivals - batch.rows["ts"].cast(pa.int64()).to_numpy()) / 1e6
    assert delays.min() == 0
    late = delays[delays > 0]
    assert abs(len(late) / len(delays) - 0.25) < 0.02
    assert abs(late.mean() - 2) < 0.2


def test_time_zero_is_the_first_poll_and_downtime_is_a_pause():
    source = make(arrival={"kind": "constant", "rate": 10.0})
    assert source.next_due() == 0.0
    assert source.poll(1000.0) is None
    assert source.next_due() == pytest.approx(1000.1)
    batch = source.poll(1000.35)
    assert batch is not None
    assert batch.arrivals.tolist() == [1000_100_000, 1000_200_000, 1000_300_000]
    again = make(arrival={"kind": "constant", "rate": 10.0})
    again.restore(batch.position)
    assert again.poll(5000.0) is None
    after = again.poll(5000.1001)
    assert after is not None
    assert after.arrivals.tolist() == [5000_100_000]
    assert together([after])["id"].to_pylist() == [103]


def test_the_limit_ends_it_also_over_a_restart():
    source = make(limit=25, max_rows=10)
    sizes, positions = [], []
    source.poll(0.0)
    while source.next_due() is not None:
        batch = source.poll(100.0)
        assert batch is not None
        sizes.append(len(batch.arrivals))
        positions.append(batch.position)
        assert batch.more == (sum(sizes) < 25)
    assert sizes == [10, 10, 5]
    again = make(limit=25, max_rows=10)
    again.restore(positions[-1])
    assert again.next_due() is None
    assert again.poll(200.0) is None


def test_a_changed_arrival_process_starts_anew_and_the_tuples_go_on():
    (batch,) = drawn(make(), [1.0])
    source = make(arrival={"kind": "b-model", "rate": 500, "span": "1 s", "burst": 2})
    source.restore(batch.position)
    following = together(drawn(source, [1.0], start=0.0))
    assert following["id"].to_pylist()[0] == 100 + batch.rows.num_rows


def test_every_simple_type_has_a_default():
    schema = "a tinyint, b smallint, c int, d bigint, e float, f double, g string, h binary, i date, j timestamp,"
    schema += "k timestamp_ntz, l boolean, m decimal(5,3)"
    (batch,) = drawn(make(schema, columns={}), [1.0])
    assert batch.rows.schema.equals(parse_schema(schema))
    assert sum(column.null_count for column in batch.rows.columns) == 0


def test_numbers_are_held_within_an_integer_type():
    (batch,) = drawn(make("k tinyint", columns={"k": {"kind": "exponential", "mean": 500}}), [1.0])
    assert batch.rows["k"].to_numpy().max() == 127


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rate": 0}, "rate"),
        ({}, "either rate or arrival"),
        ({"rate": 1, "arrival": {"kind": "poisson", "rate": 1}}, "either rate or arrival"),
        ({"rate": 1, "sed": 1}, "sed is not a known key"),
        ({"arrival": {"kind": "possion", "rate": 1}}, "arrival"),
        ({"arrival": {"kind": "schedule", "pieces": [["10 parsecs", 1]]}}, "parsecs"),
        ({"rate": 1, "columns": {"nope": {"kind": "uniform"}}}, "columns.nope is not a column of stream s"),
        ({"rate": 1, "columns": {"flag": {"kind": "uniform"}}}, "column flag: uniform does not fit"),
        ({"rate": 1, "columns": {"port": {"kind": "choice", "values": ["x"]}}}, "column port: choice does not fit"),
        ({"rate": 1, "columns": {"src": {"kind": "choice", "values": ["x"], "weights": [1, 2]}}}, "2 weights for 1"),
        ({"rate": 1, "columns": {"v": {"kind": "uniform", "low": 2, "high": 1}}}, "above high"),
        ({"rate": 1, "columns": {"v": {"kind": "walk", "start": -1, "low": 0}}}, "outside"),
        ({"rate": 1, "columns": {"v": {"kind": "uniform", "nulls": 2}}}, "columns.v.*nulls"),
    ],
)
def test_mistakes_are_named(options, says):
    with pytest.raises(UserError, match=f"stream s: source generator: .*{says}"):
        create("generator", options, Stream("s", parse_schema(SCHEMA)))


def test_unknown_kind():
    known = "use one of files, generator, mirror, push, spark, trace"
    with pytest.raises(UserError, match=f"'generater' is not known: {known}"):
        create("generater", {}, Stream("s", parse_schema("k int")))
