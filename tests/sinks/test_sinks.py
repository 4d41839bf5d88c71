import pyarrow as pa
import pytest

from freshet.model import UserError
from freshet.sinks import CallbackSink, JsonlSink, MemorySink, Token, create


def remember(table, token):
    raise RuntimeError("called by name")


def table(*values: int) -> pa.Table:
    return pa.table({"v": pa.array(values, pa.int64())})


def test_jsonl_keeps_what_was_there_and_cuts_off_what_was_not_committed(tmp_path):
    path = tmp_path / "deep" / "out.jsonl"
    path.parent.mkdir()
    path.write_text("mine\n")
    sink = create("jsonl", {"path": str(path), "append": True})
    state = sink.open({})
    sink.write(table(0), Token("q", 0, 1))
    sink.close()
    # The process died before the cursor was moved: the row comes again.
    sink = create("jsonl", {"path": str(path)})
    sink.open(state)
    state = sink.write(table(0, 1), Token("q", 0, 2))
    sink.write(table(2), Token("q", 2, 3))
    sink.open(state)
    sink.write(table(2, 3), Token("q", 2, 4))
    sink.close()
    assert path.read_text() == "mine\n" + "".join(f'{{"v": {v}}}\n' for v in range(4))


@pytest.mark.parametrize(
    ("kind", "name", "more"), [("jsonl", "out.jsonl", {}), ("parquet", "out", {}), ("table", "out.db", {"table": "t"})]
)
def test_a_folder_that_a_path_names_is_made(kind, name, more, tmp_path):
    path = tmp_path / "not" / "there" / name
    sink = create(kind, {"path": str(path), **more})
    sink.open({})
    sink.close()
    assert path.parent.is_dir()


def test_jsonl_moves_to_another_file(tmp_path):
    sink = create("jsonl", {"path": str(tmp_path / "a.jsonl")})
    sink.open({})
    state = sink.write(table(1, 2, 3), Token("q", 0, 3))
    sink.close()
    sink = create("jsonl", {"path": str(tmp_path / "b.jsonl")})
    sink.open(state)
    sink.write(table(4), Token("q", 3, 4))
    sink.close()
    assert (tmp_path / "b.jsonl").read_text() == '{"v": 4}\n'


def test_jsonl_refuses_lines_that_it_did_not_write(tmp_path):
    path = tmp_path / "out.jsonl"
    path.write_text("x\n")
    elsewhere = {"path": str(tmp_path / "other.jsonl"), "length": 7}
    for state in ({}, elsewhere):
        sink = create("jsonl", {"path": str(path)})
        with pytest.raises(UserError, match=r"out\.jsonl holds lines already, and this sink did not write them: move"):
            sink.open(state)
        assert path.read_text() == "x\n"
    path.write_text("")
    sink.open({})
    sink.close()


def test_jsonl_knows_its_file_in_a_folder_that_was_moved(tmp_path):
    (tmp_path / "here").mkdir()
    sink = create("jsonl", {"path": str(tmp_path / "here" / "out.jsonl")})
    sink.open({})
    state = sink.write(table(1), Token("q", 0, 1))
    sink.close()
    (tmp_path / "here").rename(tmp_path / "there")
    path = tmp_path / "there" / "out.jsonl"
    sink = create("jsonl", {"path": str(path)})
    sink.open(state)
    sink.write(table(2), Token("q", 1, 2))
    sink.close()
    assert path.read_text() == '{"v": 1}\n{"v": 2}\n'
    # Behind what counts there is something now, and in a moved file nobody can tell what it is.
    path.rename(tmp_path / "out.jsonl")
    sink = create("jsonl", {"path": str(tmp_path / "out.jsonl")})
    assert isinstance(sink, JsonlSink)
    assert sink.refusal(state) is not None


def test_two_sinks_cannot_share_a_file(tmp_path):
    first, second = (create("jsonl", {"path": str(tmp_path / "a.jsonl")}) for _ in range(2))
    first.open({})
    with pytest.raises(UserError, match="another sink"):
        second.open({})
    first.close()
    second.open({})
    second.close()


def test_jsonl_in_an_impossible_place(tmp_path):
    (tmp_path / "file").write_text("")
    sink = create("jsonl", {"path": str(tmp_path / "file" / "out.jsonl")})
    with pytest.raises(UserError, match="cannot be written"):
        sink.open({})
    assert isinstance(sink, JsonlSink)


def test_memory_leaves_out_what_it_has(tmp_path):
    sink = create("memory", {"limit": 3})
    assert isinstance(sink, MemorySink)
    sink.write(table(0, 1), Token("q", 0, 2))
    sink.write(table(0, 1, 2, 3), Token("q", 0, 4))
    assert [row["v"] for row in sink.rows()] == [1, 2, 3]
    assert sink.total == 4
    assert sink.wait(4, timeout=0)
    assert not sink.wait(5, timeout=0)


def test_console_lines_and_tables(capsys):
    create("console", {}).write(table(7, 8), Token("big", 10, 12))
    assert capsys.readouterr().out == 'big 10 {"v": 7}\nbig 11 {"v": 8}\n'
    sink = create("console", {"format": "table"})
    sink.write(table(7), Token("big", 0, 1))
    sink.write(table(8), Token("big", 1, 2))
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines] == ["big", "v", "-" * 12, "7", "8"]


def test_a_callback_may_be_named():
    sink = create("callback", {"function": "os.path:join"})
    assert isinstance(sink, CallbackSink)
    with pytest.raises(TypeError):
        sink.write(table(1), Token("q", 0, 1))


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("jsonl", {}, "sink jsonl: path: field required"),
        ("jsonl", {"path": "x", "arival": True}, "arival is not a known key"),
        ("memory", {"limit": 0}, "sink memory: limit"),
        ("console", {"format": "tables"}, "sink console: format"),
        ("callback", {"function": "no_such_module:f"}, "sink callback: function"),
        ("callback", {"function": "os:sep"}, "sink callback: function"),
        ("jsonlines", {}, "'jsonlines' is not known: use one of callback, console, jsonl, memory, parquet, table"),
    ],
)
def test_mistakes_are_named(kind, options, says):
    with pytest.raises(UserError, match=says):
        create(kind, options)
