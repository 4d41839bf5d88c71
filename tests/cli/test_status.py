"""What a run says of parts that did not do their work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import Command

APP = """
[spark]
master = "local[1]"

[streams.packets]
schema = "id bigint"
source = {kind = "generator", rate = 4000, limit = 400, columns.id = {kind = "sequence"}}

[streams.broken]
schema = "id bigint"
source = {kind = "spark", format = "json", schema = "id bigint", options.path = "vanished"}

[queries.all]
sql = "SELECT id FROM packets"
sinks = [{kind = "callback", function = "refusing:take"}, {kind = "jsonl", path = "out.jsonl"}]

[queries.blind]
sql = "SELECT id FROM broken"

[queries.behind]
sql = "SELECT id FROM blind"
"""


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_sink_that_took_nothing_and_a_source_that_failed_are_told_and_end_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.toml").write_text(APP)
    (tmp_path / "refusing.py").write_text("def take(table, token):\n    raise ValueError('no, thanks')\n")
    done = command("run", "app.toml", "--json")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    last = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert (
        "warning: sink all/callback failed: ValueError: no, thanks (400 rows are not delivered; the next run continues "
        "with them)"
    ) in last
    assert any(line.startswith("warning: the source of stream broken failed: ") for line in last)
    report = json.loads(done.stdout)
    assert report["sinks"]["all/callback"]["waiting"] == 400
    assert report["sinks"]["all/callback"]["state"] == "failing"
    assert report["sinks"]["all/jsonl"]["rows"] == 400
    assert report["queries"]["blind"]["freshness"] < 1.0
    assert report["queries"]["behind"]["freshness"] < 1.0
    assert report["total"]["freshness"] < 1.0
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 400
