import pyarrow as pa

from freshet.log import read_segment
from freshet.model import ARRIVAL, Segment, Stream, parse_schema
from freshet.spark.driver import ingest
from freshet.spark.driver.ingest import Judge, Part, Reading

STREAM = Stream("s", parse_schema("ts timestamp, v int"), event_time="ts", lateness=10.0)


def rows(*pairs: tuple[int | None, int]) -> pa.Table:
    times = pa.array([None if t is None else t * 1_000_000 for t, _ in pairs], pa.int64())
    return pa.table(
        {
            "ts": times.cast(pa.timestamp("us", tz="UTC")),
            "v": pa.array([v for _, v in pairs], pa.int32()),
            "__row": pa.array(['{"ts": "soon"}' if t is None else None for t, _ in pairs], pa.string()),
        }
    )


def test_a_part_writes_what_is_in_time_and_sets_the_rest_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(ingest, "_FILE_BYTES", 100)
    judge = Judge(tmp_path, "source-s-1-4", STREAM, 77, newest=100_000_000, bar=90_000_000)
    part = Part(judge, 3, 9)
    part.take(rows((95, 1), (None, 2), (89, 3), (90, 4)))
    part.take(rows((120, 5), *((110, v) for v in range(6, 20))))
    part.take(rows((91, 20)))
    report = part.finish()
    assert (report["part"], report["newest"]) == (3, 120_000_000)
    assert report["dead"] == [
        {"arrival": 77, "reason": "column ts: the event time is NULL", "row": {"ts": "soon"}},
    ]
    [late] = report["late"]
    assert late["reason"] == "11 s behind the newest event time; the lateness is 10 s"
    assert late["row"]["v"] == 3
    assert [name for name, _, _ in report["files"]] == ["source-s-1-4-3-9-0.arrows", "source-s-1-4-3-9-1.arrows"]
    found = []
    for name, _, [member] in report["files"]:
        stream, count, position, length, first, last = member
        table = read_segment(tmp_path, Segment(stream, 0, count, 0, first, last, name, position, length), 0, count)
        assert set(table[ARRIVAL].to_pylist()) == {77}
        found += table["v"].to_pylist()
    assert found == [1, 4, 5, *range(6, 20), 20]


def test_a_part_without_event_time_and_without_rows(tmp_path):
    judge = Judge(tmp_path, "x", Stream("s", parse_schema("v int")), 77, None, None)
    part = Part(judge, 0, 0)
    part.take(pa.table({"v": pa.array([], pa.int32())}))
    assert part.finish() == {"part": 0, "files": [], "newest": None, "dead": [], "late": []}
    assert list(tmp_path.iterdir()) == []


def test_columns_are_cast_as_try_cast_does():
    reading = Reading("rate", {}, None, {"v": "value % 10"}, 1.0)
    assert ingest.cast_expressions(reading, STREAM) == [
        "try_cast(`ts` AS timestamp) AS `ts`",
        "try_cast(value % 10 AS int) AS `v`",
        "CASE WHEN try_cast(`ts` AS timestamp) IS NULL THEN to_json(struct(*)) END AS __row",
    ]
