"""Queries that join streams with tables: the graphs they become, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from freshet.model import Lookup, Operator, Query, parse_schema
from freshet.sql import SqlError, SqlTyper, build_query, describe

SCHEMAS = {
    "packets": parse_schema("ts timestamp, host string, size int"),
    "logins": parse_schema("ts timestamp, host string, who string"),
    "hosts": parse_schema("host string, owner string, vip boolean, least bigint"),
    "owners": parse_schema("name string, town string"),
}
TABLES = ("hosts", "owners")
AS_OF = ", as of each tuple's arrival"
ON = "ON packets.host = hosts.host"


def build(text: str) -> Query:
    return build_query("q", text, SCHEMAS, times={"packets": "ts", "logins": "ts"}, tables=TABLES)


CASES = {
    # what the stream alone decides comes first, what needs the table behind it
    f"SELECT ts, owner FROM packets JOIN hosts {ON} AND size > least WHERE size > 10 AND vip": """
packets -> q
  q.filter_1: size > 10
  q.join_1.input: ts, size, host
  q.join_1: JOIN (SELECT owner, vip, least, host FROM hosts) ON host = hosts.host
  q.join_1.on_2: size > least
  q.filter_2: vip
  q.project: ts, owner""",
    # the table may stand first
    f"SELECT size, owner FROM hosts JOIN packets {ON}": """
packets -> q
  q.join_1.input: size, host
  q.join_1: JOIN (SELECT owner, host FROM hosts) ON host = hosts.host
  q.project: size, owner""",
    # which rows of the table count is known before a tuple can be alone
    f"SELECT size, owner FROM packets LEFT JOIN hosts {ON} AND vip WHERE owner IS NULL AND size > 1": """
packets -> q
  q.filter_2: size > 1
  q.join_1.input: size, host
  q.join_1: LEFT JOIN (SELECT owner, host FROM hosts WHERE vip) ON host = hosts.host
  q.filter_1: owner IS NULL
  q.project: size, owner""",
    # a condition on both sides, or on the stream, decides which tuples are alone
    f"SELECT owner FROM packets LEFT JOIN hosts {ON} AND size > least AND size < 9 WHERE size <> 5": """
packets -> q
  q.filter_1: size <> 5
  q.join_1.input: size, host
  q.join_1: LEFT JOIN (SELECT owner, least, host FROM hosts) ON host = hosts.host AND size > least AND size < 9
  q.project: owner""",
    # expressions and sub-queries of the table
    "SELECT size, o FROM packets p JOIN (SELECT upper(owner) AS o, host FROM hosts WHERE vip) h "
    "ON lower(p.host) = lower(h.host)": """
packets -> q
  q.join_1.input: size, LOWER(host) AS __c1
  q.join_1: JOIN (SELECT UPPER(owner) AS o, LOWER(host) AS __c1 FROM hosts WHERE vip) ON __c1 = hosts.__c1
  q.project: size, o""",
    # a window of the stream goes on behind the join
    f"SELECT owner, sum(size) AS s FROM packets [RANGE 1 MINUTE SLIDE 10 SECONDS] JOIN hosts {ON} GROUP BY owner": """
packets -> q
  q.join_1.input: size, ts AS __time, host
  q.join_1: JOIN (SELECT owner, host FROM hosts) ON host = hosts.host
  q.aggregate.input: owner, size, __time
  q.aggregate: every 10 s over 1 min of __time, for each owner: sum(size) AS __a1
    remembers a partial answer of each owner for every 10 s, for 1 min
  q.project: owner, __a1 AS s""",
    # behind an aggregate, and a table behind a table
    "SELECT c.host, n, town "
    "FROM (SELECT host, count(*) AS n FROM packets [RANGE 1 MINUTE SLIDE 1 MINUTE] GROUP BY host) c "
    "JOIN hosts h ON c.host = h.host LEFT JOIN owners ON owner = name": """
packets -> q
  q.c.aggregate.input: host, ts AS __time
  q.c.aggregate: every 1 min over 1 min of __time, for each host: count(*) AS __a1
    remembers a partial answer of each host for every 1 min, for 1 min
  q.join_1.input: host, __a1 AS n
  q.join_1: JOIN (SELECT owner, host FROM hosts) ON host = hosts.host
  q.join_2.input: c_host, n, owner
  q.join_2: LEFT JOIN (SELECT town, name FROM owners) ON owner = owners.name
  q.project: c_host AS host, n, town""",
    # every row
    "SELECT size FROM packets CROSS JOIN hosts": """
packets -> q
  q.join_1.input: size
  q.join_1: JOIN (SELECT 1 AS __row FROM hosts) ON any
  q.project: size""",
}


def _lines(operator: Operator) -> Iterator[str]:
    yield f"  {operator.name}: {operator.text()}"
    if operator.state_text() is not None:
        yield f"    remembers {operator.state_text()}"


@pytest.mark.parametrize(("text", "expected"), CASES.items())
def test_query_becomes_graph(text: str, expected: str) -> None:
    graph = build(text).graph
    [stream] = graph.streams
    operators = [graph.operators[name] for name in graph.order]
    told = "\n".join([f"{stream} -> q", *(line for operator in operators for line in _lines(operator))])
    assert told.count(AS_OF) == told.count("JOIN (SELECT") > 0
    assert told.replace(AS_OF, "") == expected.removeprefix("\n")


def test_both_sides_of_a_join_of_streams_lead_to_the_table() -> None:
    query = build(
        "SELECT size, who, owner "
        "FROM packets [RANGE 1 MINUTE] JOIN logins [RANGE 1 MINUTE] ON packets.host = logins.host "
        "JOIN hosts ON hosts.host = logins.host"
    )
    assert query.graph.streams == ("packets", "logins")
    assert query.graph.tables == ("hosts",)
    [lookup] = [each for each in query.graph.operators.values() if isinstance(each, Lookup)]
    place = query.graph.order.index
    assert place("q.join_1") < place(lookup.name)


def test_a_lookup_names_only_the_columns_that_it_reads() -> None:
    query = build(f"SELECT size FROM packets JOIN hosts {ON} WHERE vip")
    [lookup] = [each for each in query.graph.operators.values() if isinstance(each, Lookup)]
    assert lookup.schema == (("host", "string"), ("vip", "boolean"))


def test_event_time_and_types_go_through() -> None:
    query = build(f"SELECT ts AS t, owner, least + 1 AS more FROM packets LEFT JOIN hosts {ON}")
    assert query.event_time == "t"
    assert query.graph.output(SCHEMAS, SqlTyper()).types == [pa.timestamp("us", tz="UTC"), pa.string(), pa.int64()]


def test_the_graph_says_what_is_a_table() -> None:
    assert "    hosts (table)" in describe(build(f"SELECT size FROM packets JOIN hosts {ON}").graph).splitlines()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("SELECT owner FROM hosts", "hosts is a table: a continuous query reads a stream; join one with it"),
        ("SELECT owner FROM (SELECT owner FROM hosts WHERE vip)", "hosts is a table: a continuous query reads"),
        ("SELECT count(*) AS n FROM hosts", "hosts is a table: join a stream with it, and compute over that"),
        ("SELECT DISTINCT owner FROM hosts", "hosts is a table: join a stream with it, and compute over that"),
        (
            f"SELECT owner FROM packets JOIN hosts [RANGE 1 MINUTE] {ON}",
            "hosts is a table: no window is written for it",
        ),
        ("SELECT host FROM packets UNION ALL SELECT host FROM hosts", "hosts is a table: it has no part in UNION"),
        (f"SELECT owner FROM hosts LEFT JOIN packets {ON}", "put the stream first, as in FROM packets LEFT JOIN hosts"),
        ("SELECT town FROM hosts JOIN owners ON owner = name", "hosts and owners are tables: join the stream"),
        (
            f"SELECT count(*) AS n FROM packets [ROWS 3] JOIN hosts {ON}",
            "join in a sub-query and put the window behind",
        ),
        (f"SELECT ownr FROM packets JOIN hosts {ON}", "unknown column ownr of packets and hosts; did you mean owner?"),
        ("SELECT size FROM packets JOIN hots ON true", "unknown stream or table hots; did you mean hosts?"),
        ("SELECT size FROM p", "unknown stream or table p (there are: packets, logins, hosts, owners)"),
    ],
)
def test_what_is_wrong_is_said(text: str, problem: str) -> None:
    with pytest.raises(SqlError) as caught:
        build(text)
    assert problem in str(caught.value)
    assert caught.value.line == 1
