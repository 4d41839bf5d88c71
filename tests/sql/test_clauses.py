"""What the parser takes and nobody looks at is refused by its name, with what to write instead."""

from __future__ import annotations

import pytest

from freshet.model import UserError, parse_schema
from freshet.sql import SqlError, build_query

STREAMS = {
    "s": parse_schema("k bigint, v int, t string, ts timestamp, ok boolean, a array<int>, `select` int"),
    "r": parse_schema("k bigint, w int"),
}
COMMAS = [
    "SELECT k, FROM s",
    "SELECT k,, v FROM s",
    "SELECT , k FROM s",
    "SELECT k FROM s WHERE k IN (1,)",
    "SELECT k FROM s WHERE k IN (,1)",
    "SELECT coalesce(k,) AS c FROM s",
    "SELECT coalesce(,k) AS c FROM s",
    "SELECT k FROM s [ROWS 3] GROUP BY k,",
    "SELECT DISTINCT k, FROM s [ROWS 3]",
    "SELECT k FROM s, WHERE k = 1",
    "SELECT k FROM s,",
    "SELECT * EXCEPT (k,) FROM s",
]
REFUSED = {
    "SELECT s.k FROM s JOIN r JOIN r AS q ON r.k = q.k ON s.k = r.k": "ON is not expected here",
    "SELECT FROM s": "names no column",
    "SELECT k FROM s WHERE k IN ()": "at least one value",
    "SELECT /*+ BROADCAST(s) */ k FROM s": "hints are not supported",
    "SELECT k FROM s WITH (NOLOCK)": "only a window",
    "SELECT AS STRUCT k FROM s": "KIND is not supported",
    "SELECT DISTINCT ON (k) k, v FROM s [ROWS 3]": "DISTINCT ON",
    "WITH a(z) AS (SELECT k FROM s) SELECT k FROM a": "cannot rename columns",
    "WITH a AS MATERIALIZED (SELECT k FROM s) SELECT k FROM a": "MATERIALIZED",
    "WITH a AS (SELECT k FROM s), A AS (SELECT v AS k FROM s) SELECT k FROM a": "twice",
    "(SELECT k FROM s) LIMIT 5": "LIMIT has no meaning",
    "(SELECT k FROM s) ORDER BY k": "ORDER BY has no meaning",
    "SELECT k FROM (SELECT k FROM s) TABLESAMPLE (5 ROWS)": "TABLESAMPLE is not supported: filter",
    "SELECT k FROM (SELECT k FROM s) PIVOT (sum(k) FOR k IN (1, 2))": "PIVOT is not supported: write",
    "SELECT k FROM s UNION ALL BY NAME SELECT k FROM r": "BY NAME",
    "SELECT * ILIKE 'a' FROM s": "ILIKE is not supported",
    "SELECT k FROM s [ROWS 3] GROUP BY DISTINCT k": "leave out DISTINCT",
    "SELECT CAST(t AS DATE FORMAT 'YYYY') AS x FROM s": "to_date",
    "SELECT CAST(t AS DATE DEFAULT NULL ON CONVERSION ERROR) AS x FROM s": "TRY_CAST",
    "SELECT abs(v) IGNORE NULLS AS x FROM s": "IGNORE NULLS",
    "SELECT abs(v ORDER BY k) AS x FROM s": "ORDER BY within a call",
    "SELECT abs(v LIMIT 3) AS x FROM s": "LIMIT within a call",
    "SELECT ts AT TIME ZONE 'UTC' AS x FROM s": "from_utc_timestamp",
    "SELECT k FROM s WHERE t SIMILAR TO 'a'": "write RLIKE",
    "SELECT k FROM s WHERE t GLOB 'a'": "write LIKE",
    "SELECT t -> 'a' AS x FROM s": "get_json_object",
    "SELECT k := 2 AS x FROM s": "write =",
    "SELECT k FROM s WHERE v IN a": "array_contains",
    "SELECT k FROM s WHERE v IN UNNEST(a)": "array_contains",
    "SELECT k AS `` FROM s": "a name is empty",
    "SELECT k AS _arrival FROM s": "keeps for itself",
    "COMMENT ON TABLE s IS 'x'": "begins with SELECT",
    "SELECT count(*) AS n FROM s GROUP BY session_window(ts, '1 minute')": "write GROUP BY window",
}


@pytest.mark.parametrize("text", COMMAS)
def test_a_comma_next_to_nothing_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="a comma has nothing next to it"):
        build_query("q", text, STREAMS)


@pytest.mark.parametrize("text", REFUSED)
def test_nothing_is_dropped_in_silence(text: str) -> None:
    with pytest.raises(UserError) as caught:
        build_query("q", text, STREAMS)
    assert REFUSED[text] in str(caught.value)


def test_words_of_sql_in_back_quotes_are_names_of_columns() -> None:
    assert build_query("q", "SELECT `select` + 1 AS `from` FROM s", STREAMS).columns == ("from",)
