"""The report of a run: what ``report.json`` says, while it runs and at its end."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from freshet.app.reports.joins import joins_of
from freshet.app.reports.types import JoinsReport, Report
from freshet.model import Promises
from freshet.model.messages import masked_value
from freshet.quality import StreamCounts
from freshet.quality.snapshots import BalanceSnapshot, EngineSnapshot, ResidentsSnapshot

if TYPE_CHECKING:
    from freshet.app.app import App
    from freshet.app.running.run_parts import Parts

_PACKAGES: Final = ("pyspark", "pyarrow", "numpy", "sqlglot")
FORMAT: Final = 1
"""Version of the report's keys; new keys do not change it."""


def snapshot(app: App, parts: Parts) -> EngineSnapshot:
    """The present values of all meters. Only on the engine's thread."""
    for name, stream in parts.log.meters().streams.items():
        if name in app.streams:
            counts = StreamCounts(stream.end, stream.late, stream.dead, stream.heartbeats, stream.bytes)
            parts.engine.meters.count(name, counts)
    for name, feeder in parts.feeders.items():
        if feeder.status.failed_at is not None:
            parts.engine.meters.source_failed(name, feeder.status.failed_at)
    return parts.engine.snapshot()


class _Moment(NamedTuple):
    """What the engine knows at one moment."""

    meters: EngineSnapshot
    promises: dict[str, Promises]
    balance: BalanceSnapshot | None
    joins: dict[str, JoinsReport]
    residents: ResidentsSnapshot


def _moment(app: App, parts: Parts) -> _Moment:
    """All figures of the engine in one go: on a busy machine much happens from one question to the next. Only on the
    engine's thread."""
    return _Moment(
        snapshot(app, parts),
        parts.engine.promises(),
        None if parts.balance is None else parts.balance.snapshot(),
        joins_of(parts.engine, parts.log, {name: spec.stream for name, spec in app.streams.items()}),
        parts.residents(),
    )


def report_of(app: App, parts: Parts, status: str) -> Report:
    """The report now."""
    meters, promises, balance, joins, residents = parts.loop.ask(lambda: _moment(app, parts))
    logged, error, latest = parts.log.meters().streams, parts.loop.error, parts.decisions.latest
    streams = {
        name: meters["streams"][name]
        | {"waiting_bytes": logged[name].waiting_bytes, "held_back": logged[name].held_back}
        for name in app.streams
    }
    settings = {"state": str(app.state)} | asdict(app.settings) | {"master": parts.master}
    del settings["policy"], settings["looks"], settings["balance"]
    looks, bound, levels = app.settings.looks, app.settings.balance, app.settings.levels
    settings |= {"levels": levels.mode, "aim": levels.aim, "ahead": levels.ahead, "admission": levels.admission}
    settings["expect"] = None if bound is None else bound.text()
    settings |= {"look_every": looks.every, "look_ahead": looks.ahead, "least_stay": looks.stay}
    settings["classes"] = {name: each.weight for name, each in app.settings.classes.items()}
    return build(
        app=app.name,
        status=status,
        error=None if error is None else str(error),
        policy=parts.policy,
        **meters | {"streams": streams},
        feasible=parts.judgement.of(meters, promises),
        balance=balance,
        latest_decision=str(latest[-1][1]) if latest else None,
        sources={name: asdict(feeder.status) for name, feeder in parts.feeders.items()},
        mirrors={name: asdict(mirror.status) for name, mirror in parts.mirrors.items()},
        sinks=parts.outlets.states(),
        tables=parts.tables.states(),
        changes=dict(parts.installer.changes),
        notes=parts.installer.notes,
        joins=joins,
        residents=residents,
        settings=settings,
    )


def build(**told: Any) -> Report:
    """The report as plain values without secrets; its types say what each of them means."""
    shown = {
        key: masked_value("", told[key])
        for key in ("error", "sources", "mirrors", "sinks", "tables", "notes", "settings")
    }
    made = {
        "format": FORMAT,
        **told,
        **shown,
        "written": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "versions": versions(),
    }
    return cast(Report, made)


def versions() -> dict[str, str]:
    """Versions of what runs."""
    import freshet

    found = {"freshet": freshet.__version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "?"
    return found


def history_path(report: Path) -> Path:
    """The file with the history of a run, beside its report.

    >>> history_path(Path("night/report.json")).name
    'report.history.json'
    """
    return report.with_suffix(".history.json")


def write(report: Mapping[str, Any], path: Path, indent: int | None = 2) -> None:
    """Writes the report so that the file is complete whenever somebody reads it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_text(json.dumps(report, indent=indent, allow_nan=False) + "\n")
    part.replace(path)
