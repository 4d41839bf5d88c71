"""Examining an application as a whole: everything that can be checked without Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from freshet.app.declared.checking import Checked, check_queries
from freshet.app.declared.endpoints import check_mirror_queries, check_sinks, check_sources
from freshet.app.declared.join_memory import check_total
from freshet.app.declared.places import check_places
from freshet.app.declared.problems import Problem, noted
from freshet.app.declared.tables import check_tables
from freshet.model.key_joins import key_joins
from freshet.spark.session.residency import why_no_start
from freshet.spark.session.settings import in_process

if TYPE_CHECKING:
    from freshet.app.app import App
    from freshet.app.declared.spec import Settings


def examine(app: App, broken: frozenset[str] = frozenset()) -> Checked:
    """The queries with all columns, and every problem; what is ``broken`` could not be read, and is taken as right."""
    checked = check_queries(app.catalog(), app.queries, broken)
    declared = {name: spec.join_memory for name, spec in app.queries.items()}
    bounded = sum(declared[name] is None and bool(key_joins(query.graph)) for name, query in checked.queries.items())
    with noted(checked.problems, "app.join_memory"):
        check_total(app.settings.join_memory, declared, bounded)
    checked.problems += check_tables(app.tables.values())
    checked.problems += check_sources(app.streams.values(), app.settings.spark)
    columns = {name: checked.schemas[name].names for name in app.queries if name in checked.schemas}
    sources: dict[str, object] = {f"streams.{name}.source": spec.source for name, spec in app.streams.items()}
    sources |= {f"tables.{name}.source": spec.source for name, spec in app.tables.items()}
    given = {name: spec.stream.schema.names for name, spec in app.streams.items()}
    checked.problems += check_mirror_queries(sources, {*app.queries, *broken}, given | columns)
    checked.problems += check_sinks(app.queries.values(), columns)
    checked.problems += check_places(app.state, app.report)
    if not app.streams and not broken:
        checked.problems.append(Problem("streams", "there is none: declare at least one, as [streams.NAME]"))
    return checked


def check_residents(settings: Settings) -> Iterator[Problem]:
    """Residents that are declared although settings exclude them. A start may have another master, and looks again."""
    local = in_process(settings.master or os.environ.get("SPARK_MASTER") or "local")
    if (reason := why_no_start(settings.spark, local, settings.resident)) is not None:
        yield Problem("spark.resident", reason)
