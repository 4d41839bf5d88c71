"""Application files and SQL texts with mistakes of every kind, drawn by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Final

QUERIES: Final = (
    "SELECT k, v FROM s WHERE v > 1 AND t <> 'a'",
    "SELECT k, count(*) AS n, avg(d) AS m FROM s [RANGE 1 MINUTE SLIDE 10 SECONDS] GROUP BY k HAVING count(*) > 2",
    "SELECT s.k, r.w FROM s [RANGE 10 SECONDS] JOIN r [RANGE 10 SECONDS] ON s.k = r.k AND s.v > r.w",
    "SELECT k FROM s UNION ALL SELECT k FROM r",
    "WITH a AS (SELECT k, v * 2 AS w FROM s) SELECT k, CASE WHEN w > 5 THEN 'x' ELSE 'y' END AS c FROM a",
    "SELECT count(*) AS n FROM s GROUP BY window(ts, '1 minute', '10 seconds')",
    "SELECT DISTINCT k FROM s [ROWS 10]",
    "SELECT transform(a, x -> x + 1) AS b, m['q'] AS q, p.f AS f, k::string || t AS g FROM s WHERE k IN (1, 2, 3)",
    "SELECT max(v) AS big FROM s [PARTITION BY k ROWS 3] WHERE d BETWEEN -1.5e3 AND 0.25 OR t LIKE 'a%' ESCAPE '!'",
    "SELECT k FROM s [RANGE 1 MINUTE SLIDE 1 MINUTE] EXCEPT SELECT k FROM r [RANGE 1 MINUTE SLIDE 1 MINUTE]",
    "SELECT CAST(t AS decimal(10, 2)) AS c, coalesce(v, 0) AS z, DATE '2026-01-31' AS day FROM s",
    "SELECT q.k, h.owner FROM s AS q LEFT JOIN hosts AS h ON q.t = h.host -- a comment\nWHERE NOT q.v IS NULL",
)
FILE: Final = """
[app]
name = "fuzz"
policy = "everything"
workers = 2
[spark]
master = "local[2]"
settings = {"spark.ui.enabled" = "false"}
[streams.s]
schema = "k bigint, v int, t string, d double, ts timestamp, a array<int>, m map<string,int>, p struct<f:int>"
event_time = "ts"
lateness = "10 seconds"
retention = {history = "1 hour", bound = "512 MB"}
[streams.r]
schema = "k bigint, w int"
source = {kind = "generator", rate = 100, columns = {k = {kind = "uniform", low = 0, high = 9}}}
[tables.hosts]
file = "hosts.csv"
schema = "host string, owner string"
[queries.q]
sql = %s
weight = 0.5
curve = [[0, 1.0], ["500 ms", 0.5], [2, 0.0]]
sinks = [{kind = "jsonl", path = "out.jsonl"}]
[queries.over]
sql = "SELECT * FROM q"
"""
SHORT: Final = """
[streams.s]
schema = "k bigint, v int, t string, d double, ts timestamp, a array<int>, m map<string,int>, p struct<f:int>"
event_time = "ts"
lateness = "10 seconds"
[streams.r]
schema = "k bigint, w int"
[streams.hosts]
schema = "host string, owner string"
[queries.q]
sql = %s
"""
_WORDS: Final = """
SELECT FROM WHERE GROUP BY HAVING UNION ALL JOIN LEFT ON AS AND OR NOT NULL CASE WHEN THEN ELSE END IN IS
LIKE BETWEEN DISTINCT WITH CAST INTERVAL [ROWS 5] [RANGE PERIOD DEADLINE EMIT CHANGES ORDER LIMIT OVER
( ) [ ] , . ; ' ` " -- /* */ + - * / % || :: -> => = <> < > <=> ! ~ ^ & | @ : ? $ # { } \\ \\u0000
k v t d ts s r q count(*) 1 1.5 1e400 0x 99999999999999999999 'a' `a b` __arrival x'zz' N'q' 1L 2BD 3e
explode( window( tumble( named_struct( struct< array< decimal(99,1) lateral pivot tablesample qualify
"""
WORDS: Final = tuple(_WORDS.split())
ODD: Final = (
    "\x00",
    "\x1b",
    "\u2028",
    "\ufeff",
    "é",
    "ß",
    "İ",
    "１",
    "²",
    "\U0001f600",
    "\u202e",
    "\u0301",
    "\x7f",
    "\t",
)


def mutated(seed: int, count: int) -> Iterator[bytes]:
    """Files of which some are right; the same for the same seed."""
    draw = random.Random(seed)
    for _ in range(count):
        text = draw.choice(QUERIES)
        if draw.random() < 0.6:
            for _ in range(draw.choice((1, 1, 1, 2, 4))):
                text = _changed(text, draw)
            content = (SHORT % json.dumps(text)).encode()
        else:
            content = (FILE % json.dumps(text)).encode()
            for _ in range(draw.choice((1, 1, 1, 2, 4))):
                content = _damaged(content, draw)
        yield content


def _changed(text: str, draw: random.Random) -> str:
    """A text with one mistake in its words."""
    words = text.split(" ")
    place, other = draw.randrange(len(words)), draw.randrange(len(words))
    match draw.randrange(9):
        case 0:
            del words[place]
        case 1:
            words.insert(place, words[other])
        case 2:
            words[place], words[other] = words[other], words[place]
        case 3 | 4:
            words.insert(place, draw.choice(WORDS))
        case 5:
            words[place] = draw.choice(WORDS)
        case 6:
            words[place : place + 1] = [words[place]] * draw.choice((2, 10, 60, 300))
        case 7:
            donor = draw.choice(QUERIES).split(" ")
            words[place:] = donor[draw.randrange(len(donor)) :]
        case _:
            words[place] = draw.choice(ODD).join((words[place], draw.choice(("", "x"))))
    return " ".join(words) or "SELECT"


def _damaged(content: bytes, draw: random.Random) -> bytes:
    """A content with one damage in its bytes or lines."""
    at = draw.randrange(len(content) or 1)
    until = at + draw.randint(1, 20)
    match draw.randrange(8):
        case 0:
            flipped = content[at] ^ (1 << draw.randrange(8)) if content else 0
            return content[:at] + bytes([flipped]) + content[at + 1 :]
        case 1:
            return content[:at] + content[until:]
        case 2:
            return content[:until] + content[at:]
        case 3:
            return content[:at] + draw.choice(WORDS).encode() + content[at:]
        case 4:
            lines = content.split(b"\n")
            draw.shuffle(lines)
            return b"\n".join(lines)
        case 5:
            lines = content.split(b"\n")
            lines.insert(draw.randrange(len(lines)), draw.choice(lines))
            return b"\n".join(lines)
        case 6:
            return content[:at] + content[at:until] * draw.choice((3, 50, 500)) + content[until:]
        case _:
            return content[:at] + draw.choice(ODD).encode() + content[at:]
