"""What elements are worth, by the queries that read them and by accesses; and floors, which hold in any case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.app.monitor import wait_for
from tests.sources.mirror.feeding import Fed, feeding
from tests.sources.mirror.test_mirror import options, price
from tests.sources.mirror.web import Web

import freshet
from freshet.app.declared.mirror_readers import readers_of
from freshet.app.declared.problems import InvalidApp
from freshet.model import ARRIVAL

PRICES = "element string, price double"
QUERIES = {
    "all_of_them": ("SELECT element, price FROM prices WHERE price > 0", 0.1),
    "two": ("SELECT price FROM prices WHERE element IN ('a', 'b') AND price < 5", 0.5),
    "over_two": ("SELECT price * 2 AS twice FROM two", 0.4),
}


def worths(fed: Fed) -> dict[str, float]:
    return {each.element: round(each.worth, 6) for each in fed.source.rates()}


def shop(web: Web, state: Path, *names: str, **more: Any) -> freshet.App:
    app = freshet.App("shop", state=state, report=None, master="local[2]")
    app.stream("orders", "item string")
    app.stream("prices", PRICES, source={"kind": "mirror", **options(web, *names, **more)})
    for name, (sql, weight) in QUERIES.items():
        app.query(name, sql, weight=weight)
    return app


def test_weights_of_the_queries_that_read_an_element(tmp_path: Path, web: Web) -> None:
    web.pages = {f"/{name}": price(1) for name in "abc"}
    queries = shop(web, tmp_path / "app", "a", worth="queries").checked().queries
    with feeding(tmp_path, options(web, "a", "b", "c", worth="queries")) as fed:
        fed.source.read_by(readers_of("prices", queries))
        fed.until(lambda: worths(fed) == {"a": 1.0, "b": 1.0, "c": 0.1})
        fed.source.read_by(readers_of("prices", {"two": queries["two"]}))
        fed.until(lambda: worths(fed) == {"a": 0.5, "b": 0.5, "c": 0.0})
        fed.until(lambda: fed.log.records("prices")["c"]["worth"] == 0.0)
        polls = {each.element: each.polls for each in fed.source.rates()}
        fed.until(lambda: fed.source.status.polls >= sum(polls.values()) + 20)
        assert {each.element: each.polls for each in fed.source.rates()}["c"] <= polls["c"] + 1, "nobody reads it"


def test_the_given_worth_counts_as_well(tmp_path: Path, web: Web) -> None:
    web.pages = {f"/{name}": price(1) for name in "abc"}
    queries = shop(web, tmp_path / "app", "a").checked().queries
    listed = ["a", {"element": "b", "worth": 4}, "c"]
    with feeding(tmp_path, options(web, elements=listed, worth="queries")) as fed:
        fed.source.read_by(readers_of("prices", queries))
        fed.until(lambda: worths(fed) == {"a": 1.0, "b": 4.0, "c": 0.1})


def test_accesses_count_less_the_older_they_are(tmp_path: Path, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freshet.sources.mirror.worth._PAUSE", 0.5)
    web.pages = {f"/{name}": price(1) for name in "abc"}
    worth = {"accesses": "clicks", "column": "item", "weight": "points", "half_life": "1000 h"}
    given = options(web, "a", "b", "c", worth=worth)

    def click(fed: Fed, *items: tuple[str, float | None]) -> None:
        rows = {"item": [item for item, _ in items], "points": [points for _, points in items]}
        fed.log.append("clicks", pa.table({**rows, ARRIVAL: [1] * len(items)}))

    def told(fed: Fed) -> dict[str, float]:
        return {name: round(value, 2) for name, value in worths(fed).items()}

    with feeding(tmp_path, given) as fed:
        fed.log.declare("clicks")
        click(fed, ("a", 1.0), ("a", 2.0), ("b", 1.0), ("nothing", 9.0), ("c", None))
        fed.until(lambda: told(fed) == {"a": 3.5, "b": 1.5, "c": 0.5})
        fed.until(lambda: fed.log.records("prices")["a"]["accesses"] > 2.9)
    with feeding(tmp_path, given) as fed:
        fed.until(lambda: told(fed) == {"a": 3.5, "b": 1.5, "c": 0.5})
        click(fed, ("c", 2.0))
        fed.until(lambda: told(fed) == {"a": 3.5, "b": 1.5, "c": 2.5})


def test_a_floor_is_kept(tmp_path: Path, web: Web) -> None:
    web.pages = {f"/{name}": price(1) for name in "ab"}
    listed = [{"element": "a", "rate": 30.0}, {"element": "b", "worth": 1e-6, "rate": 200.0, "greatest_age": "500 ms"}]
    with feeding(tmp_path, options(web, elements=listed, learn=False)) as fed:
        fed.until(lambda: len(fed.rows()) == 2)
        every = {each.element: each.polls_per_s or 0.0 for each in fed.source.rates()}
        assert every["b"] == pytest.approx(1.0, rel=0.02), "half a second is half of the time between polls"
        need = fed.source.status.floors_need_per_s
        assert need is not None
        assert need == pytest.approx(every["b"] / 0.99)


def test_floors_that_need_more_than_the_budget_are_refused_with_what_they_need(tmp_path: Path, web: Web) -> None:
    listed = [{"element": "a", "rate": 100.0, "least_freshness": 0.9}]
    app = shop(web, tmp_path, elements=listed)
    with pytest.raises(InvalidApp, match=r"the floors need a budget of at least 470\.8, and it is 50"):
        app.check()


def test_a_file_gives_floors(tmp_path: Path, web: Web) -> None:
    web.pages = {"/a": price(1)}
    (tmp_path / "items.csv").write_text("element,greatest_age,least_freshness\na,2 s,\nb,,1.5\n")
    with feeding(tmp_path / "state", options(web, elements={"file": str(tmp_path / "items.csv")})) as fed:
        fed.until(lambda: fed.source.status.refused == 1 and len(fed.rows()) == 1)
        fed.until(lambda: fed.log.records("prices")["a"]["greatest_age"] == 2.0)


@pytest.mark.parametrize(
    ("worth", "text"),
    [
        ({"accesses": "click"}, "there is no stream or query 'click'"),
        ({"accesses": "orders"}, "orders has no column element: it has item"),
        ({"accesses": "orders", "column": "item", "weight": "points"}, "orders has no column points"),
        ("reader", "worth"),
    ],
)
def test_a_worth_that_cannot_be_is_refused(tmp_path: Path, web: Web, worth: object, text: str) -> None:
    with pytest.raises(InvalidApp, match=text) as raised:
        shop(web, tmp_path, "a", worth=worth).check()
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_application_tells_its_mirrors_who_reads_them(tmp_path: Path, web: Web) -> None:
    web.pages = {f"/{name}": price(1) for name in "abc"}
    app = shop(web, tmp_path, "a", "b", "c", worth="queries")
    app.table("list_prices", schema=PRICES, source={"kind": "mirror", **options(web, "a", "b")})
    app.query("priced", "SELECT o.item, p.price FROM orders o JOIN list_prices p ON o.item = p.element")
    with app.start() as run:
        source = run._parts.mirrors["prices"]

        def told() -> dict[str, float]:
            return {each.element: round(each.worth, 6) for each in source.rates()}

        wait_for(lambda: told() == {"a": 1.0, "b": 1.0, "c": 0.1}, run)
        run.set_weight("two", 0.25)
        wait_for(lambda: told() == {"a": 0.75, "b": 0.75, "c": 0.1}, run)
        run.add_query("one", "SELECT price FROM prices WHERE element = 'c'")
        wait_for(lambda: told() == {"a": 0.75, "b": 0.75, "c": 1.1}, run)
        # A tuple meets the version of a mirrored table that was there when it came.
        wait_for(lambda: run.read("list_prices").num_rows == 2, run)
        run.push("orders", [{"item": "a"}])
        run.drain()
        web.pages["/a"] = price(2)
        wait_for(lambda: {"element": "a", "price": 2.0} in run.read("list_prices").to_pylist(), run)
        run.push("orders", [{"item": "a"}])
        run.drain()
        assert [row["price"] for row in run.read("priced").to_pylist()] == [1.0, 2.0]
