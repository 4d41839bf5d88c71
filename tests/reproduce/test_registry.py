"""Claims: registered once, measured over seeds, judged by their band."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from freshet.model import UserError
from freshet.reproduce import Claim, Measured, Trial, claims, papers, run
from freshet.reproduce import kept as kept_module
from freshet.reproduce import registry as registry_module
from freshet.reproduce.command import reproduce
from freshet.reproduce.kept import KeptRuns
from freshet.reproduce.page import page_of
from freshet.reproduce.registry import claim
from freshet.reproduce.table import verdict


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Claim]]:
    known: dict[str, list[Claim]] = {}
    monkeypatch.setattr(registry_module, "CLAIMS", known)
    monkeypatch.setattr(registry_module, "import_module", lambda name: None)
    return known


def made(values: list[float], low: float | None, high: float | None, **readings: list[float]) -> Claim:
    return Claim("x.y", "X §1", 0.4, "counts", low, high, lambda trial: Measured(values, readings))


def test_the_mean_over_seeds_decides() -> None:
    result = made([0.1, 0.3], 0.0, 0.25, other=[1.0, 2.0]).check(Trial())
    assert result["ours"] == pytest.approx(0.2)
    assert result["spread"] == [0.1, 0.3]
    assert result["ok"] is True
    assert result["readings"] == {"other": 1.5}


@pytest.mark.parametrize(("low", "high"), [(0.21, None), (None, 0.19), (0.0, 0.1)])
def test_outside_of_the_band_a_claim_fails(low: float | None, high: float | None) -> None:
    assert made([0.2], low, high).check(Trial())["ok"] is False


def test_what_cannot_be_measured_neither_holds_nor_fails() -> None:
    skipped = Claim("x.y", "X §1", "a", "b", 0.0, None, lambda trial: Measured((), skipped="no data"))
    result = skipped.check(Trial())
    assert (result["ok"], result["ours"], result["skipped"]) == (None, None, "no data")
    json.dumps(result)


def test_a_claim_that_fails_says_why() -> None:
    known = Claim("x.y", "X §1", 0.4, "counts", 0.3, None, lambda trial: Measured([0.2]), reason="too small")
    assert known.check(Trial())["reason"] == "too small"
    held = Claim("x.y", "X §1", 0.4, "counts", 0.1, None, lambda trial: Measured([0.2]), reason="too small")
    assert "reason" not in held.check(Trial())


@pytest.mark.parametrize(("grid", "hangs"), [(0.05, False), (0.15, True)])
def test_a_claim_says_that_it_hangs_on_one_step_of_its_grid(grid: float, hangs: bool) -> None:
    result = Claim("x.y", "X §1", 0.4, "counts", 0.1, None, lambda trial: Measured([0.2], grid=grid)).check(Trial())
    assert (result["ok"], result["grid"], result["hangs_on_a_step"]) == (True, grid, hangs)


def test_one_claim_is_measured_alone_and_checks_are_not_counted(own: dict[str, list[Claim]]) -> None:
    for kind in ("claim", "check"):
        for name, value in (("good", 1.0), ("bad", -1.0)):
            register = claim(f"fas.{kind}.{name}", source="X", published=1, how="so", low=0.0, kind=kind)
            register(lambda trial, value=value: Measured([value]))  # type: ignore[misc]
    every = run("fas")
    assert (every["held"], every["failed"], len(every["claims"])) == (1, 1, 4)
    assert [each["id"] for each in run("fas", "claim.bad")["claims"]] == ["fas.claim.bad"]
    assert [each["id"] for each in run("fas", "fas.check.good")["claims"]] == ["fas.check.good"]
    with pytest.raises(UserError, match=r"did you mean fas\.claim\.bad"):
        run("fas", "claim.baad")


def test_the_page_has_every_claim_and_every_plot(tmp_path: Path) -> None:
    (tmp_path / "fas_fig3.png").write_bytes(b"\x89PNG picture")
    (tmp_path / "mirror_fig1.png").write_bytes(b"\x89PNG other")
    bad = Claim("fas.a", "X <1>", 0.4, "counts", 0.3, None, lambda trial: Measured([0.2], {"r": [7.0]}), reason="b&c")
    result = {"paper": "fas", "mode": "quick", "seeds": 3, "runs": 9, "held": 0, "failed": 1}
    page = page_of([result | {"claims": [bad.check(Trial())]}], tmp_path)
    assert "X &lt;1&gt;" in page
    assert "NO: b&amp;c" in page
    assert "r: 7" in page
    assert page.count("data:image/png") == 1
    assert 'src="http' not in page


def test_the_command_measures_one_claim_and_writes_a_page(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(reproduce)
    page = tmp_path / "page.html"
    result = CliRunner().invoke(app, ["aurora", "table3.1.min-cost", "--json", "--html", str(page)])
    assert result.exit_code == 0
    [found] = json.loads(result.stdout)["claims"]
    assert (found["id"], found["ok"]) == ("aurora.table3.1.min-cost", True)
    assert "aurora.table3.1.min-cost" in page.read_text()
    wrong = CliRunner().invoke(app, ["aurora", "--all"])
    assert isinstance(wrong.exception, UserError)


def test_names_are_those_that_tables_print_and_figures_have_several(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(reproduce)

    def listed(*arguments: str) -> list[str]:
        result = CliRunner().invoke(app, [*arguments, "--list", "--json"])
        assert result.exit_code == 0, result.output
        return [each["id"] for each in json.loads(result.stdout)["claims"]]

    assert listed("aurora", "table4.1.slacks") == listed("aurora.table4.1.slacks") == ["aurora.table4.1.slacks"]
    assert len(listed("aurora", "table4.6")) == 3
    assert all(name.startswith("fas.fig3.") for name in listed("fas.fig3"))
    assert isinstance(CliRunner().invoke(app, ["aurora", "table4.1.slack", "--list"]).exception, UserError)


def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(reproduce)
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "page.html"):
        result = CliRunner().invoke(app, ["aurora", "table3.1.min-cost", "--html", str(place)])
        assert isinstance(result.exception, UserError)
        assert "claims hold" not in result.output
    page = tmp_path / "new" / "page.html"
    assert CliRunner().invoke(app, ["aurora", "table3.1.min-cost", "--html", str(page)]).exit_code == 0
    assert page.exists()


def test_a_claim_must_be_able_to_fail(own: dict[str, list[Claim]]) -> None:
    with pytest.raises(ValueError, match="accepts everything"):
        claim("x.y", source="X", published=1.0, how="so")
    claim("x.y", source="X", published=1.0, how="so", low=0.0)(lambda trial: Measured([1.0]))
    assert [each.id for each in own["x"]] == ["x.y"]


def test_a_claim_of_an_effect_says_how_much_of_it_came_out(own: dict[str, list[Claim]]) -> None:
    claim("fas.half", source="X", published=1.4, how="so", low=1.0, neutral=1.0)(lambda trial: Measured([1.1]))
    claim("fas.none", source="X", published=1.4, how="so", low=1.0)(lambda trial: Measured([1.1]))
    half, none = run("fas")["claims"]
    assert half["of_published"] == pytest.approx(0.25)
    assert "of_published" not in none
    assert verdict(half) == "yes, with 0.25 of the published effect"
    assert verdict(half | {"ok": False}) == "NO, with 0.25 of the published effect"
    with pytest.raises(ValueError, match="no published effect"):
        claim("fas.words", source="X", published="rises", how="so", low=1.0, neutral=1.0)


def test_every_paper_has_claims_with_ids_of_their_own() -> None:
    for paper in papers():
        ids = [each.id for each in claims(paper)]
        assert len(ids) == len(set(ids)) > 0
        assert all(name.startswith(f"{paper}.") for name in ids)


def test_an_unknown_paper_is_said() -> None:
    with pytest.raises(UserError, match="there are no claims of 'fass'"):
        run("fass")


def test_a_trial_runs_nothing_twice() -> None:
    calls = []

    def square(number: int) -> int:
        calls.append(number)
        return number * number

    trial = Trial()
    assert trial.map(square, [2, 3, 2]) == [4, 9, 4]
    assert trial.map(square, [3]) == [9]
    assert calls == [2, 3]


def test_a_trial_uses_processes_where_allowed() -> None:
    with Trial(jobs=2) as trial:
        assert trial.map(abs, [-1, -2, -3]) == [1, 2, 3]
        places = {place for first in (0, 2, 4) for place in trial.map(process, range(first, first + 2))}
    assert os.getpid() not in places
    assert len(places) <= 2, "it starts processes once"


def process(number: int) -> int:
    """The process that computes it."""
    return os.getpid()


def test_what_was_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def square(number: int) -> int:
        asked.append(number)
        if number == 3 and len(asked) < 4:
            raise KeyboardInterrupt
        return number * number

    with pytest.raises(KeyboardInterrupt):
        Trial(kept=KeptRuns(tmp_path)).map(square, [1, 2, 3])
    again = Trial(kept=KeptRuns(tmp_path))
    assert again.map(square, [1, 2, 3]) == [1, 4, 9]
    assert asked == [1, 2, 3, 3]
    assert again.runs == 3
    monkeypatch.setattr(kept_module, "version", lambda: "another")
    assert Trial(kept=KeptRuns(tmp_path)).map(square, [1]) == [1]
    assert asked[-1] == 1


def test_a_version_changes_with_the_code(tmp_path: Path) -> None:
    seen = set()
    for name, text in (("a.py", "1"), ("a.py", "2"), ("b.py", "2")):
        (tmp_path / name).write_text(text)
        seen.add(kept_module.version(tmp_path))
    (tmp_path / "notes.txt").write_text("not code")
    assert len(seen | {kept_module.version(tmp_path)}) == 3
