"""What is wrong with a mirror is told in one line that names the place, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshet.app.declared.problems import InvalidApp
from freshet.cli.main import app as commands
from freshet.model import UserError

GOOD = """
[streams.prices]
schema = "element string, price double, polled timestamp, changed timestamp"

[streams.prices.source]
kind = "mirror"
budget = 20
elements = ["tea", "coffee", {element = "cocoa", worth = 5}]
http = {url = "https://shop.example.org/items/{element}"}

[queries.cheap]
sql = "SELECT element, price FROM prices WHERE price < 10"
"""
ELEMENTS = 'elements = ["tea", "coffee", {element = "cocoa", worth = 5}]'
HTTP = 'http = {url = "https://shop.example.org/items/{element}"}'
CASES = {
    "kind": ('"mirror"', '"miror"', ".kind: must be one of files, generator, mirror, "),
    "address": ("https:", "ftp:", ": ftp://shop.example.org/items/tea is not an address of HTTP"),
    "no address": (HTTP, "http = {}", ": tea is not an address of HTTP"),
    "host": (HTTP, 'http = {url = "https://{element}/"}', ": host tea is not allowed: name it in hosts"),
    "one address": ("/{element}", "/tea", ": http.url has no {element}: every element would be the same"),
    "budget": ("budget = 20", "budget = 0", ".budget: must be above 0, not 0"),
    "no budget": ("budget = 20", "", ": needs either budget, polls a second, or budget_bytes, bytes a second"),
    "explore": ("budget = 20", "budget = 20\nexplore = 2", ".explore: must be below 1, not 2"),
    "key": ("budget = 20", "budget = 20\nexplorer = 0", ".explorer: unknown key (did you mean 'explore'?)"),
    "no file": (ELEMENTS, 'elements = {file = "items.csv"}', "items.csv does not exist"),
    "no column": (ELEMENTS, 'elements = {file = "urls.csv"}', "urls.csv has no column element: it has url"),
    "no query": (ELEMENTS, 'elements = {query = "chep"}', ".elements.query: there is no query 'chep' (did you mean"),
    "no such output": (ELEMENTS, 'elements = {query = "cheap", column = "url"}', "cheap has no column url: it has"),
    "both": (ELEMENTS, 'elements = {query = "cheap", file = "x.csv"}', ".elements: needs either file or query"),
    "worth": ("worth = 5", "worth = -5", ".elements[2].worth: must be at least 0, not -5"),
    "large worth": ("worth = 5", "worth = 1e60", ".elements[2].worth: must be 0, or between 1e-50 and 1e+50"),
    "key of an element": ("worth = 5", "wort = 5", ".elements[2].wort: unknown key (did you mean 'worth'?)"),
    "floor": ("worth = 5", "least_freshness = 1", ".elements[2].least_freshness: must be below 1, not 1"),
    "age": ("worth = 5", 'greatest_age = "soon"', ".elements[2].greatest_age: 'soon' is not a duration"),
    "floors": ("worth = 5", "rate = 100, least_freshness = 0.9", "need a budget of at least 480.4, and it is 20"),
    "column": ("budget = 20", 'budget = 20\ncolumns = {cost = "x"}', ": columns.cost is not a column of stream prices"),
    "no way": (HTTP, "", ": needs one of http, file and sql: how its elements are polled"),
    "no folder": (HTTP, 'file = {path = "nowhere"}', ": file.path: there is no folder "),
    "no database": (HTTP, 'sql = {database = "x.db", query = "SELECT ?"}', ": sql.database: there is no file "),
    "no place": (HTTP, 'sql = {database = "x.db", query = "SELECT 1"}', ".sql: query has no ? where the element goes"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_is_one_line(tmp_path: Path, case: str) -> None:
    (tmp_path / "urls.csv").write_text("url\nhttp://localhost/a\n")
    old, new, text = CASES[case]
    assert GOOD.count(old) == 1
    file = tmp_path / "app.toml"
    file.write_text(GOOD.replace(old, new))
    told = CliRunner().invoke(commands, ["check", str(file)])
    assert isinstance(told.exception, InvalidApp | UserError), told.output
    (line,) = str(told.exception).splitlines()
    assert line.startswith(f"{file}: streams.prices.source")
    assert text in line


def test_what_is_right_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "app.toml"
    file.write_text(GOOD)
    assert CliRunner().invoke(commands, ["check", str(file)]).exit_code == 0
