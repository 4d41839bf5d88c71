"""Looking at a run: its meters and its report."""

from __future__ import annotations

from dataclasses import asdict

from freshet.app.app import App
from freshet.app.parts import Parts
from freshet.app.report import build
from freshet.app.report_types import Report
from freshet.quality import StreamCounts
from freshet.quality.snapshots import EngineSnapshot


def meters_of(app: App, parts: Parts) -> EngineSnapshot:
    """All meters now; see :meth:`freshet.quality.Meters.snapshot`."""
    return parts.loop.ask(lambda: _snapshot(app, parts))


def _snapshot(app: App, parts: Parts) -> EngineSnapshot:
    for name, stream in parts.log.meters().streams.items():
        if name in app.streams:
            counts = StreamCounts(stream.end, stream.late, stream.dead, stream.heartbeats, stream.bytes)
            parts.engine.meters.count(name, counts)
    for name, feeder in parts.feeders.items():
        if feeder.status.failed_at is not None:
            parts.engine.meters.source_failed(name, feeder.status.failed_at)
    return parts.engine.snapshot()


def report_of(app: App, parts: Parts, status: str) -> Report:
    """The report now; see :func:`freshet.app.report.build`."""
    meters, logged = meters_of(app, parts), parts.log.meters().streams
    streams = {
        name: meters["streams"][name]
        | {"waiting_bytes": logged[name].waiting_bytes, "held_back": logged[name].held_back}
        for name in app.streams
    }
    error = parts.loop.error
    return build(
        app=app.name,
        status=status,
        policy=parts.policy,
        meters=meters,
        streams=streams,
        sources={name: asdict(feeder.status) for name, feeder in parts.feeders.items()},
        sinks=parts.outlets.states(),
        tables=parts.tables.states(),
        changes=parts.installer.changes,
        notes=parts.installer.notes,
        settings={
            "state": str(app.state),
            "master": parts.master,
            "workers": app.settings.workers,
            "max_train_rows": app.settings.max_train_rows,
            "unit_timeout": app.settings.unit_timeout,
            "max_rows_out_per_row": app.settings.max_rows_out_per_row,
            "share": app.settings.share,
            "spark": dict(app.settings.spark),
        },
        error=None if error is None else str(error),
    )
