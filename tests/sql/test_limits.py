"""Large texts: what runs, what is refused, and that the refusal names the limit."""

from __future__ import annotations

import sys

import pytest
from sqlglot import exp

from freshet.model import Filter, UserError, parse_schema
from freshet.sql import SqlError, build_query, error_count, safe
from freshet.sql.parse.limits import MOST_FILTERS, MOST_LEVELS, as_filters, balance, conjuncts
from freshet.sql.parse.text import parse_expression, to_sql

STREAMS = {"s": parse_schema("k bigint, v int, t string, d double, ts timestamp, ok boolean, a array<int>")}


def test_three_thousand_conditions_are_few_filters() -> None:
    conditions = [f"k <> {number}" for number in range(3000)]
    query = build_query("q", f"SELECT k FROM s WHERE {' AND '.join(conditions)}", STREAMS)
    filters = [one.predicate for one in query.graph.operators.values() if isinstance(one, Filter)]
    assert len(filters) == MOST_FILTERS
    assert " AND ".join(filters) == " AND ".join(conditions)


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_a_long_chain_has_few_levels_and_the_same_text(word: str) -> None:
    text = f" {word} ".join(["d / v > 1", "k = 1", "(ok AND NOT ok)"] * 100)
    tree = parse_expression(text)
    assert to_sql(tree) == text
    assert max(node.depth for node in tree.walk()) < 20


def test_short_chains_stay_as_they_are() -> None:
    tree = parse_expression("a AND b AND c")
    assert isinstance(tree.this, exp.And)
    balance(tree)
    assert isinstance(tree.this, exp.And)


def test_conditions_that_share_a_filter_keep_their_brackets() -> None:
    conditions = conjuncts(parse_expression(" AND ".join(["(ok OR k = 1)"] * 100)))
    last = as_filters(conditions)[-1]
    assert to_sql(last) == " AND ".join(["(ok OR k = 1)"] * (100 - MOST_FILTERS + 1))


HUGE = {
    "additions": f"SELECT {' + '.join(['k'] * 5000)} AS x FROM s",
    "texts joined": f"SELECT {' || '.join(['t'] * 5000)} AS x FROM s",
    "brackets": f"SELECT {'(' * 60}k{')' * 60} AS x FROM s",
    "sub-queries": f"SELECT k FROM {'(SELECT k FROM ' * 100}s{')' * 100}",
    "calls": f"SELECT {'abs(' * 100}k{')' * 100} AS x FROM s",
    "guards": f"SELECT {'ceil(' * 20}d{')' * 20} AS x FROM s",
    "remainders": f"SELECT {'mod(d, ' * 25}d{')' * 25} AS x FROM s",
    "whole divisions": f"SELECT {'k div (' * 25}k{')' * 25} AS x FROM s",
    "cases": f"SELECT {'CASE WHEN ok THEN ' * 100}1{' END' * 100} AS x FROM s",
    "nots": f"SELECT k FROM s WHERE {'NOT ' * 3000} ok",
    "casts": f"SELECT k{'::int' * 2000} AS x FROM s",
    "elements": f"SELECT a{'[0]' * 2000} AS x FROM s",
    "types": f"SELECT CAST(k AS {'array<' * 300}int{'>' * 300}) AS x FROM s",
    "aliases": f"SELECT k + k AS a0, {', '.join(f'a{i} + a{i} AS a{i + 1}' for i in range(40))} FROM s",
    "inlining": f"SELECT k + k AS k FROM {'(SELECT k + k AS k FROM ' * 30}s{')' * 30}",
    "common tables": "WITH a0 AS (SELECT k FROM s [RANGE 1 MINUTE]), "
    + ", ".join(f"a{i + 1} AS (SELECT x.k FROM a{i} x JOIN a{i} y ON x.k = y.k)" for i in range(30))
    + " SELECT k FROM a30",
    "joins": "SELECT s.k FROM s" + "".join(f" JOIN s AS s{i} ON s.k = s{i}.k" for i in range(100)),
    "joins without conditions": f"SELECT s.k FROM s LEFT{' JOIN r' * 100}",
    "words": f"SELECT k FROM s WHERE k IN ({', '.join(['1'] * 15_000)})",
    "characters": f"SELECT k FROM s WHERE t = '{'a' * 300_000}'",
    "digits": f"SELECT {'9' * 5000} AS x FROM s",
    "exponent": "SELECT 1e999999 AS x FROM s",
    "rows": f"SELECT count(*) AS n FROM s [ROWS {10**30}]",
    "range": f"SELECT count(*) AS n FROM s [RANGE {10**30} SECONDS]",
    "period": f"SELECT k FROM s PERIOD {10**30} SECONDS",
    "window": "SELECT count(*) AS n FROM s GROUP BY window(ts, '0.0000001 s')",
    "decimal": "SELECT CAST(t AS decimal(99, 2)) AS x FROM s",
    "decimal of words": "SELECT CAST(t AS decimal(x, y)) AS x FROM s",
}


@pytest.mark.parametrize("name", HUGE)
def test_what_is_too_large_is_refused_by_its_limit(name: str) -> None:
    with pytest.raises(SqlError, match=r"at most|more than|not a duration|to 2147483647|has 1 to 38 digits") as error:
        build_query("q", HUGE[name], STREAMS)
    assert max(map(len, str(error.value).splitlines())) < 400


def test_a_chain_of_unions_is_looked_at_once() -> None:
    # Each level was looked at twice as often as the one above it: 25 took hours.
    text = " UNION ".join(["SELECT k FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE]"] * 25)
    assert build_query("q", text, STREAMS).columns == ("k",)


def test_expressions_up_to_the_limit_pass() -> None:
    text = " + ".join(["k"] * (MOST_LEVELS - 3))
    build_query("q", f"SELECT {text} AS x FROM s", STREAMS)
    limit = sys.getrecursionlimit()
    # The form that Spark gets has a call within a call for each of them, and is parsed again.
    assert safe(safe(text)) == safe(text)
    assert error_count(text)
    assert sys.getrecursionlimit() == limit


def test_schemas_are_lists_of_columns_and_nothing_else() -> None:
    wrong = {
        "k int, 's string": "not closed",
        "k int /* ": "not closed",
        "k int) AS SELECT (1": "follows the columns",
        "k int); DROP TABLE t; --": "follows the columns",
        "k int) PARTITIONED BY (k": "follows the columns",
        "k int,": "comma",
        ", k int": "comma",
        "k int,, v int": "comma",
        "k struct<a:int,>": "comma",
        "k int NOT NULL": "NOT NULL",
        "v in int": "leave it out",
        "k bigint, w )nt": "is not Spark DDL",
        "k int DEFAULT 5": "DEFAULT",
        "k int, PRIMARY KEY (k)": "is not a column",
        "`` int": "is not a column",
        "k decimal(99, 2)": "1 to 38 digits",
        "k decimal(a, b)": "1 to 38 digits",
        "k decimal(5, 9)": "1 to 38 digits",
        "k decimal(5, 2, 1)": "1 to 38 digits",
        "k struct<a:int,A:int>": "two fields",
        "k struct<int>": "write name:type",
        f"k {'array<' * 500}int{'>' * 500}": "nested too deeply",
        ", ".join(f"k{i} int" for i in range(3000)): "at most 2,000",
        "k int " * 40_000: "at most 200,000",
        "_arrival int": "keeps for itself",
        "__arrival int": "keeps for itself",
    }
    for ddl, problem in wrong.items():
        with pytest.raises(UserError, match=problem):
            parse_schema(ddl)
