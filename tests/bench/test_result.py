from __future__ import annotations

import json
import math

import pytest
from rich.console import Console

from freshet.bench.figures import Spread
from freshet.bench.result import Result


def test_the_document_has_exactly_the_keys_of_the_contract():
    result = Result.of({"a_ms": Spread(2.0, 1.0, 3.0), "n": 7}, {"cores": 2})
    document = json.loads(result.json("name"))
    assert list(document) == ["bench", "figures", "spread", "conditions"]
    assert document["figures"] == {"a_ms": 2.0, "n": 7}
    assert document["spread"] == {"a_ms": [1.0, 3.0]}
    assert "\n" not in result.json("name")


@pytest.mark.parametrize("value", [math.nan, math.inf, True])
def test_a_figure_is_a_number(value):
    with pytest.raises(ValueError, match="no number"):
        Result({"x": value})


def test_a_spread_belongs_to_a_figure():
    with pytest.raises(ValueError, match="no figure"):
        Result({"x": 1.0}, {"y": (0.0, 1.0)})


def test_the_table_shows_every_figure_and_condition():
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(Result.of({"step_ms": Spread(20.5, 18.0, 25.0), "rows": 1_000_000}, {"cores": 2}).table("overhead"))
    text = console.export_text()
    for part in ("overhead", "step_ms", "20.5", "18 to 25", "1,000,000", "cores", "2"):
        assert part in text
