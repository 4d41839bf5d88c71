"""Stored forms: what state folders and workers get by name, so that a field that comes later breaks neither."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, fields

import pytest

from freshet.model import Keep
from freshet.model.operators import Join, Lifetime, Marked
from freshet.model.operators.codec import KINDS, fields_of, operator_of
from freshet.model.plain_values import later, named

MOMENT = Lifetime("__from", until="__until")


def test_folders_from_before_a_field_came_read_as_they_did() -> None:
    join = Join("j", "inner", (MOMENT, MOMENT), (("k",), ("k",)), ())
    assert "sorted" not in fields_of(join)
    assert "join" not in fields_of(Marked("m", "k"))
    for each in (join, Marked("m", "k"), Marked("m", "k", "j")):
        assert operator_of(json.loads(json.dumps(fields_of(each)))) == each


def test_a_later_field_is_stored_where_it_says_something() -> None:
    join = Join("j", "inner", (MOMENT, MOMENT), (("k",), ("k",)), (), sorted=True)
    assert fields_of(join)["sorted"] is True
    assert operator_of(json.loads(json.dumps(fields_of(join)))) == join


def test_records_inside_of_records_have_names_too() -> None:
    @dataclass(frozen=True)
    class Inner:
        size: int
        unit: str = later("s")

    @dataclass(frozen=True)
    class Outer:
        each: tuple[Inner, ...]

    assert named(Outer((Inner(1), Inner(2, "rows")))) == {"each": ({"size": 1}, {"size": 2, "unit": "rows"})}


def _all_fields() -> dict[str, list[str]]:
    return {
        tag: [each.name for each in fields(kind) if not each.metadata.get("later")]
        for tag, kind in {**KINDS, "validity": Lifetime}.items()
    }


EVERY = {
    "filter": ["name", "predicate"],
    "project": ["name", "columns"],
    "union": ["name"],
    "lookup": ["name", "table", "schema", "operators", "kind", "keys", "columns", "conditions"],
    "own": ["name", "key", "arguments", "carried"],
    "own_fold": ["name", "key", "arguments", "by_time"],
    "panes": ["name", "validity", "slide", "keys", "calls", "emit", "offset"],
    "moving": ["name", "time", "size", "rows", "partition", "keys", "calls", "carried"],
    "join": ["name", "kind", "validity", "keys", "columns", "behind"],
    "last": ["name", "rows", "partition"],
    "marked": ["name", "column"],
    "validity": ["time", "size", "until"],
}
"""The fields that are always stored. A field that comes now must be declared with ``later``: else every folder that has
such an operator would restart its queries."""


def test_no_kind_has_got_a_field_that_old_folders_lack() -> None:
    assert {tag: names for tag, names in _all_fields().items() if names != EVERY[tag]} == {}


@pytest.mark.parametrize("missing", [each.name for each in fields(Keep) if each.default is not MISSING])
def test_what_is_kept_reads_without_any_field_that_has_a_default(missing: str) -> None:
    stored = Keep(0.5, "q.edge", "amount", 2.0, 0.25, "load", (3, 7), (5,), weighed=True).stored()
    stored.pop(missing, None)
    found = Keep.restored(json.loads(json.dumps(stored)))
    assert getattr(found, missing) == next(each.default for each in fields(Keep) if each.name == missing)
