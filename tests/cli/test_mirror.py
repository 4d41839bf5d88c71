"""``freshet mirror`` and ``freshet explain`` on what a real mirror has left in its state folder."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.sources.mirror.feeding import PRICES, feeding
from tests.sources.mirror.web import serving
from typer.testing import CliRunner

from freshet.cli.main import app
from freshet.cli.mirrors.mirror import mirror
from freshet.model import UserError

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    with serving() as web:
        web.pages = {"/a": b'{"price": 1}', "/b": b'{"price": 2}'}
        url = f"{web.address}/{{element}}"
        options = {"elements": ["a", "b", "lost"], "http": {"url": url}, "budget": 50.0, "change_every": 0.5}
        with feeding(folder / "state", options) as fed:
            fed.until(lambda: fed.log.records("prices").get("a", {"polls": 0})["polls"] > 5)
            fed.until(lambda: fed.log.records("prices")["lost"]["failures"] > 0)
    path = folder / "shop.toml"
    path.write_text(
        f'[streams.prices]\nschema = "{PRICES}"\n[streams.prices.source]\nkind = "mirror"\nbudget = 50\n'
        f'elements = ["a", "b", "lost"]\nhttp = {{url = "{url}"}}\nchange_every = "500 ms"\n'
        'worth = "queries"\n'
        '[queries.q]\nsql = "SELECT element, price FROM prices"\n'
        "[queries.one]\nsql = \"SELECT price FROM prices WHERE element = 'a'\"\nweight = 0.5\n"
    )
    return path


def test_rates(file: Path) -> None:
    shown = RUNNER.invoke(mirror, ["rates", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "mirror prices: 3 elements, budget 50 polls/s" in shown.output
    assert "failing: 404 Not Found" in shown.output


def test_rates_as_json(file: Path) -> None:
    told = json.loads(RUNNER.invoke(mirror, ["rates", str(file), "--json"]).output)
    rates = {each["element"]: each for each in told["prices"]}
    assert rates["a"]["polls"] > 5
    assert rates["a"]["changes"] == 0
    assert 0.0 < rates["a"]["changes_per_s"] < 2.0
    assert rates["lost"]["failures"] >= 1


def test_budget_with_a_picture(file: Path, tmp_path: Path) -> None:
    picture = tmp_path / "budget.png"
    shown = RUNNER.invoke(mirror, ["budget", str(file), "--plot", str(picture)])
    assert shown.exit_code == 0, shown.output
    assert "(now)" in shown.output
    assert "95% of the present freshness" in shown.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = json.loads(RUNNER.invoke(mirror, ["budget", str(file), "prices", "--json"]).output)
    fresh = [point["perceived"] for point in told["prices"]["points"]]
    assert fresh == sorted(fresh)
    assert 0.0 < told["prices"]["enough"] < told["prices"]["now"]["budget"] == 50.0
    assert told["prices"]["failing"] == 1
    assert "without 1 element that fails" in shown.output


def test_an_unknown_mirror_is_named(file: Path) -> None:
    shown = RUNNER.invoke(mirror, ["rates", str(file), "price"])
    assert isinstance(shown.exception, UserError)
    assert "mirrors: prices" in str(shown.exception)


def test_explain_tells_what_is_known(file: Path) -> None:
    shown = RUNNER.invoke(app, ["explain", str(file)])
    assert shown.exit_code == 0, shown.output
    assert "mirror prices: polls addresses by HTTP, at most 50 polls/s" in shown.output
    assert "worth by the weights of queries: q 1 (all elements), one 0.5 (1 of 3 elements)" in shown.output
    assert re.search(r"so far \d+ polls, 0 changes, [\d,]+ bytes", shown.output)
    assert "1 element fails; freshet mirror rates says why" in shown.output


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_fits_the_screen(file: Path, width: int) -> None:
    shown = RUNNER.invoke(mirror, ["rates", str(file)], env={"COLUMNS": str(width)})
    assert max(map(len, shown.output.splitlines())) <= width


def test_a_picture_without_a_folder_is_refused(file: Path, tmp_path: Path) -> None:
    shown = RUNNER.invoke(mirror, ["budget", str(file), "--plot", str(tmp_path / "nowhere/budget.png")])
    assert isinstance(shown.exception, UserError)
    assert "there is no such folder for the picture" in str(shown.exception)


def test_wrong_options_are_told_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "app.toml"
    source = 'source = {kind = "mirror", budget = 0, elements = ["a"], http = {}}'
    path.write_text(f'[streams.prices]\nschema = "{PRICES}"\n{source}\n')
    shown = RUNNER.invoke(mirror, ["rates", str(path)])
    assert str(shown.exception) == f"{path}: streams.prices.source.budget: must be above 0, not 0"
