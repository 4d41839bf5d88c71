from __future__ import annotations

import stat
from pathlib import Path

import pyarrow as pa
import pytest
from tests.spark.kit import query

from freshet.model import Network, Union, parse_schema
from freshet.spark.worker.spec import Spec, load_spec


def _spec(*texts: str) -> Spec:
    network = Network()
    for number, text in enumerate(texts):
        network.add(query(f"q{number}", "s", text, [("a", "v + 1"), ("b", "'x'")]))
    schema = parse_schema("v bigint")
    return Spec(tuple(node.operator for node in network.nodes), tuple((schema,) for _ in network.nodes))


def test_a_stored_spec_is_read_back(tmp_path: Path):
    spec = _spec("v > 1", "v < 1")
    assert load_spec(tmp_path, spec.store(tmp_path)) == spec


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([("a`b", pa.int32())]),
        pa.schema([("s", pa.struct([("odd name", pa.int32()), ("a:b,c>", pa.list_(pa.string()))]))]),
        pa.schema([("m", pa.map_(pa.string(), pa.decimal128(38, 10)))]),
        pa.schema([("n", pa.null()), ("d", pa.duration("us"))]),
        pa.schema([("__from", pa.int64()), ("x", pa.timestamp("us", "UTC")), ("X", pa.timestamp("us"))]),
    ],
)
def test_whatever_the_columns_are_workers_read_what_was_written(tmp_path: Path, schema: pa.Schema):
    union = Union("q.union")
    spec = Spec((union, union), ((schema, parse_schema("v int")), (schema, schema)), 7)
    assert load_spec(tmp_path, spec.store(tmp_path)) == spec


def test_the_name_is_the_content(tmp_path: Path):
    first, again, other = (_spec(text).store(tmp_path) for text in ("v > 1", "v > 1", "v > 2"))
    assert first == again != other
    assert {file.stem for file in tmp_path.iterdir()} == {first, other}


def test_a_chain_is_a_range_of_operators():
    spec = _spec("v > 1", "v < 1")
    assert [operator.name for operator in spec.chain((2, 3))] == ["q1.0_0", "q1.0_1"]


@pytest.mark.parametrize(("folder", "file"), [(0o700, 0o600), (0o770, 0o660)])
def test_executors_with_another_account_of_the_group_can_read_it(tmp_path: Path, folder: int, file: int):
    tmp_path.chmod(folder)
    name = _spec("v > 1").store(tmp_path / "specs")
    assert stat.S_IMODE((tmp_path / "specs" / f"{name}.json").stat().st_mode) == file
