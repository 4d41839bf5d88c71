from __future__ import annotations

import json
from collections import defaultdict, deque
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from freshet.bench.crash.application import (
    LAST,
    PUSH_ROWS,
    QUERIES,
    SLIDE,
    STATEFUL,
    WINDOW,
    acknowledged,
    jsonl,
    pushed_rows,
)
from freshet.bench.crash.audit import Audit, audit, audit_generator, audit_pushes, first_ids
from freshet.log import Log, Retention
from freshet.model import ARRIVAL

BEGIN, MARK = 1_700_000_000, 1_700_000_200
"""Event time of the first tuple, and the watermark, in seconds."""
ROWS = st.lists(st.integers(0, 5), max_size=30)


@given(ROWS, ROWS)
def test_an_audit_counts_the_difference_of_multisets(expected, actual):
    found = Audit.of(expected, actual)
    assert found.checked == len(expected)
    assert len(expected) - found.lost + found.doubled == len(actual)
    assert (found.lost == found.doubled == 0) == (sorted(expected) == sorted(actual))


def test_a_gap_and_a_repetition_of_the_generator_are_seen():
    assert audit_generator(pa.table({"id": [0, 1, 2]})) == Audit(3, 0, 0)
    assert audit_generator(pa.table({"id": [0, 2, 2]})) == Audit(3, 1, 1)


def _pushed(*firsts: int) -> list[int]:
    return [first + row for first in firsts for row in range(PUSH_ROWS)]


def test_an_acknowledged_push_must_be_there_and_another_one_may():
    firsts = [0, 100 * PUSH_ROWS]
    assert audit_pushes(pa.table({"id": _pushed(*firsts)}), firsts) == Audit(2 * PUSH_ROWS, 0, 0)
    assert audit_pushes(pa.table({"id": _pushed(*firsts, 7 * PUSH_ROWS)}), firsts).lost == 0
    assert audit_pushes(pa.table({"id": _pushed(0)}), firsts).lost == PUSH_ROWS
    assert audit_pushes(pa.table({"id": _pushed(0, 0, *firsts[1:])}), firsts).doubled == PUSH_ROWS


def test_a_push_is_there_as_a_whole_or_not_at_all():
    half = _pushed(0)[: PUSH_ROWS // 2]
    assert audit_pushes(pa.table({"id": half}), []).lost == PUSH_ROWS - len(half)


def test_a_note_that_was_cut_is_none(tmp_path):
    (tmp_path / "notes").write_text("20\n40\n6")
    assert first_ids(tmp_path / "notes") == [20, 40]


def _write_state(folder: Path, spoil: str | None) -> None:
    """What a crash application leaves behind, computed with NumPy and Python; ``spoil`` names an output to spoil."""
    keep = Retention(None, None, None)
    ids = np.arange(400)
    # Numbers in front of the join's keys of pushed rows, so that one in three has partners.
    j = np.where(ids < 60, ids * 7919 % 10_000, 10_000).astype(np.int32)
    times = pa.array((BEGIN + ids) * 1_000_000).cast(pa.timestamp("us", tz="UTC"))
    k = (ids % 100).astype(np.int32)
    made = pa.table({"id": ids, "k": k, "v": ids % 10 / 10, "j": j, "ts": times, ARRIVAL: 1000 + ids})
    now = datetime.fromtimestamp(BEGIN + 70, UTC)
    given = [row for first in (0, PUSH_ROWS, 100) for row in pushed_rows(first, now)]
    pushed = pa.Table.from_pylist(
        [row | {ARRIVAL: 5000 + place} for place, row in enumerate(given)], schema=made.schema
    )
    k, v = made["k"].to_numpy(), made["v"].to_numpy()
    low_rows = (k < 60) & (v > 0.2)
    low = pa.table({"id": ids, "k": made["k"], "x": v * 2, ARRIVAL: made[ARRIVAL]}).filter(low_rows)
    lower = low.filter(low["k"].to_numpy() < 30)
    lower = pa.table({"id": lower["id"], "y": lower["x"].to_numpy() + 1, ARRIVAL: lower[ARRIVAL]})
    columns = ["id", "k", ARRIVAL]
    both = pa.concat_tables(
        [made.filter(k >= 50).select(columns), pushed.filter(pushed["k"].to_numpy() != 7).select(columns)]
    )
    label = pa.table({"id": pushed["id"], "name": [f"K{k}" for k in pushed["k"].to_pylist()], ARRIVAL: pushed[ARRIVAL]})
    outputs = {"low": low, "lower": lower, "both": both, "label": label, **_remembering(made, pushed)}
    with Log.open(folder / "state") as log:
        for name, table in {"made": made, "pushed": pushed, **outputs}.items():
            log.declare(name, keep)
            rows = table.slice(1) if name == spoil else table
            log.append(name, rows, watermark=MARK * 1_000_000 if name == "made" else None)
    for name, table in outputs.items():
        jsonl(folder, name).write_text("".join(json.dumps(row, default=_text) + "\n" for row in table.to_pylist()))
    acknowledged(folder).write_text(f"0\n{PUSH_ROWS}\n100\n")


def _text(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")


def _remembering(made: pa.Table, pushed: pa.Table) -> dict[str, pa.Table]:
    """The answers of the queries with a state, row by row."""
    sums, met, last = [], [], []
    # Windows end at multiples of the slide; those behind the watermark are still open.
    for end in range(BEGIN // SLIDE * SLIDE, MARK + 1, SLIDE):
        inside = [row for row in made.to_pylist() if end - WINDOW <= row["ts"].timestamp() < end]
        for key in sorted({row["k"] for row in inside}):
            ids = [row["id"] for row in inside if row["k"] == key]
            closed = datetime.fromtimestamp(end, UTC)
            sums.append({"k": key, "n": len(ids), "ids": sum(ids), "window_end": closed, ARRIVAL: 1})
    for one in made.to_pylist():
        for other in pushed.to_pylist():
            if one["j"] == other["j"] and abs((one["ts"] - other["ts"]).total_seconds()) < WINDOW:
                met.append({"one": one["id"], "other": other["id"], ARRIVAL: 1})
    before: dict[int, deque[int]] = defaultdict(lambda: deque(maxlen=LAST))
    for row in pushed.to_pylist():
        before[row["k"]].append(row["id"])
        ids = list(before[row["k"]])
        last.append({"k": row["k"], "n": len(ids), "ids": sum(ids), ARRIVAL: 1})
    return {"sums": pa.Table.from_pylist(sums), "met": pa.Table.from_pylist(met), "last": pa.Table.from_pylist(last)}


@pytest.mark.spark
def test_the_batch_answers_are_those_of_the_queries_and_a_lost_row_is_seen(spark, tmp_path):
    for spoil in (None, "lower", *STATEFUL):
        folder = tmp_path / str(spoil)
        folder.mkdir()
        _write_state(folder, spoil)
        found = audit(spark, folder)
        assert found.keys() >= {f"output of {name}" for name in (*QUERIES, *STATEFUL)}
        wrong = {what for what, each in found.items() if each.lost or each.doubled}
        assert wrong == ({f"output of {spoil}"} if spoil else set())
