"""A damaged train fails the chains that need it, with its place; the others' results stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.spark.kit import Harness, query, with_arrivals, write_train

from freshet.log import Damaged
from freshet.model import Filter, Train, Unit, parse_schema
from freshet.spark.driver.frame import frame
from freshet.spark.worker.spec import Spec, load_spec

SCHEMA = parse_schema("k bigint, name string")


def _train(harness: Harness, stream: str) -> Train:
    rows = pa.table([list(range(100)), [f"n{number}" for number in range(100)]], schema=SCHEMA)
    return write_train(harness.state, stream, with_arrivals(rows.slice(0, 60)), with_arrivals(rows.slice(60)))


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_flip, "is damaged at byte 0: its bytes do not give its checksum"),
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "the file ends at byte 100"),
        (Path.unlink, "is missing from the state folder"),
    ],
)
def test_who_needs_a_damaged_range_is_told_and_the_others_go_on(
    harness: Harness, spark: SparkSession, harm: Callable[[Path], object], why: str
) -> None:
    harness.install(
        {"s": SCHEMA, "t": SCHEMA},
        query("compiled", "s", "k >= 0", [("k", "k")]),
        query("catalyst", "s", [("n", "soundex(name)")]),
        query("fine", "t", "k >= 0", [("k", "k")]),
    )
    bad, good = _train(harness, "s"), _train(harness, "t")
    file = bad.segments[1].file
    harm(harness.state / "segments" / file)
    trains = {"compiled": bad, "catalyst": bad, "fine": good}
    chains = tuple(harness.chain(name, train) for name, train in trains.items())
    result = harness.run(Unit(f"damage-{why[:4]}", chains))
    assert result.retry is None
    compiled, catalyst, fine = result.chains
    for chain in (compiled, catalyst):
        assert f"stream s, offsets 60 to 99: segment file {file} " in str(chain.failure)
        assert why in str(chain.failure)
    assert (fine.failure, fine.rows_out) == (None, 100)
    if harm is _flip:
        with pytest.raises(Exception, match="stream s, offsets 60 to 99: segment file"):
            frame(spark, harness.state / "segments", bad, SCHEMA).collect()


def test_a_damaged_spec_is_told_and_written_anew(tmp_path: Path) -> None:
    spec = Spec((Filter("q.filter_1", "v > 1"),), ((SCHEMA,),))
    name = spec.store(tmp_path)
    _flip(tmp_path / f"{name}.json")
    with pytest.raises(Damaged, match=f"{name}.json is damaged; stop the run and start it again"):
        load_spec(tmp_path, name)
    assert spec.store(tmp_path) == name
    assert load_spec(tmp_path, name) == spec
