"""What workers are told of joins with tables, and what a task does where a version cannot be read; without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from freshet.model import Chain, Filter, Lookup, Project, Segment, Train, parse_schema
from freshet.spark.driver.failures import Retry
from freshet.spark.worker.assignment import Assignment
from freshet.spark.worker.spec import Spec
from freshet.spark.worker.vectorised import TaskVersion

LOOKUP = Lookup(
    "q.join_1",
    "hosts",
    (("host", "string"), ("vip", "boolean")),
    (Filter("q.join_1.on_2", "vip"), Project("q.join_1.table", (("host", "host"),))),
    "left",
    (("host",), ("host",)),
    (("size", 0, "size"), ("host", 1, "host")),
)
SEGMENT = Segment("table:hosts", 3, 1, 9, 50, 50, "append-1-2.arrows", 0, 600)


def test_a_lookup_survives_the_spec() -> None:
    spec = Spec((LOOKUP,), ((parse_schema("host string, size int"),),))
    assert Spec.parse(spec.text()) == spec


def test_versions_survive_the_assignment() -> None:
    chain = Chain((0,), (Train("s", 0, 10),), ("q",))
    assignment = Assignment(Path("/state"), "u1", "5bec", 2, (chain,), (), (Train("table:hosts", 3, 4, (SEGMENT,)),))
    assert Assignment.parse(assignment.text()) == assignment


def test_a_version_that_cannot_be_read_is_nobodys_fault(tmp_path: Path) -> None:
    with pytest.raises(Retry, match="a version of table:hosts cannot be read"):
        TaskVersion(tmp_path, SEGMENT).read()
