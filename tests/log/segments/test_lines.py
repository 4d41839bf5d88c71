from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from freshet.log import DurableLines, json_line


def test_lines_beyond_the_kept_length_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    lines = DurableLines(path)
    assert not path.exists()
    assert lines.write([]) == 0
    kept = lines.write(["a", "ü"])
    assert kept == len("a\nü\n".encode())
    lines.write(["lost"])
    lines.reset(kept)
    assert lines.write(["b"]) == kept + 2
    lines.close()
    lines = DurableLines(path, kept)
    lines.write(["c"])
    lines.close()
    assert path.read_text() == "a\nü\nc\n"


def test_a_file_that_somebody_shortened_goes_on_at_its_end(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    lines = DurableLines(path)
    lines.write(["a", "b", "c"])
    path.write_text("a\n")
    assert lines.write(["d"]) == 4
    lines.close()
    path.unlink()
    lines = DurableLines(path, 4)
    assert lines.write(["e"]) == 2
    lines.close()
    assert path.read_text() == "e\n"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES))
def test_every_row_is_one_line_of_strict_json(row: dict[str, object]) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(text)

    line = json_line(row)
    assert "\n" not in line
    assert list(json.loads(line, parse_constant=refuse)) == list(row)


def test_what_json_has_no_word_for_becomes_text() -> None:
    row = {
        "t": datetime(2024, 1, 2, 3, tzinfo=UTC),
        "d": date(2024, 1, 2),
        "n": Decimal("1.50"),
        "i": timedelta(seconds=2),
        "b": b"\x01",
        "inf": float("-inf"),
        "m": [(1, {2})],
    }
    assert json.loads(json_line(row)) == {
        "t": "2024-01-02T03:00:00+00:00",
        "d": "2024-01-02",
        "n": "1.50",
        "i": "2.0",
        "b": "01",
        "inf": "-inf",
        "m": [[1, [2]]],
    }
