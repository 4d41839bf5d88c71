"""``freshet explain``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.app.checking import Checked
    from freshet.app.making import NamedSink
    from freshet.app.spec import QuerySpec
    from freshet.model import Path, Query


EXAMPLES: Final = """\b
Examples:
  freshet explain app.toml
  freshet explain app.toml hot
"""


def explain(
    app: AppPath,
    query: Annotated[str | None, typer.Argument(help="One query; all, if not given.", show_default=False)] = None,
) -> None:
    """Show how queries run.

    For each query its operators, the physical form of each path and why, its columns, its readers and its sinks. It
    starts no Spark.
    """
    from freshet.app import App
    from freshet.app.problems import did_you_mean
    from freshet.model import UserError

    made = App.from_toml(app)
    checked = made.checked()
    if query is not None and query not in checked.queries:
        hint = did_you_mean(query, checked.queries)
        raise UserError(f"{app}: there is no query {query!r}{hint}; it has: {', '.join(checked.queries)}")
    chosen = [query] if query else list(checked.queries)
    parts = ["\n".join(_lines(checked.queries[name], made.queries[name], checked)) for name in chosen]
    if made.settings.share:
        from freshet.cli.explain_shared import shared_work

        parts += ["\n".join(lines) for lines in shared_work(checked, chosen)]
    print("\n\n".join(parts))


def _lines(query: Query, spec: QuerySpec, checked: Checked) -> Iterator[str]:
    from freshet.app.making import named_sinks
    from freshet.model import Network
    from freshet.sql import describe, describe_paths

    wrong = "gives NULL" if query.on_error == "null" else "quarantines the query"
    yield f"query {query.name} (weight {query.weight:g}, starts at {query.start}, an evaluation error {wrong})"
    if query.curve is not None:
        yield f"  latency curve: utility {query.curve.text()}"
    yield from (f"  {line}" for line in describe(query.graph).splitlines())
    if query.lowered is not None:
        yield from (f"  {line}" for line in describe_paths(query).splitlines())
    network = Network()
    for numbers, path in zip(network.add(query), query.paths, strict=True):
        first = network.nodes[numbers[0]]
        yield f"  path {first.reads} -> {query.name}: reader {first.name}, {_form(query, path, checked)}"
    yield f"  output {query.name}: {_columns(checked.schemas[query.name])}"
    readers = [other.name for other in checked.queries.values() if query.name in other.graph.streams]
    if readers:
        yield f"  read by {', '.join(readers)}"
    for sink in named_sinks(spec):
        yield f"  sink {sink.name}{_options(sink)}"


def _options(sink: NamedSink) -> str:
    """What was said of a sink besides its name, for people."""
    if not isinstance(sink.declared, Mapping):
        return ""
    told = {key: value for key, value in sink.declared.items() if key not in ("name", "kind")}
    kind = [] if sink.declared["kind"] == sink.name else [str(sink.declared["kind"])]
    words = [*kind, *(f"{key} {value}" for key, value in told.items())]
    return f": {', '.join(words)}" if words else ""


def _form(query: Query, path: Path, checked: Checked) -> str:
    """The form of a path: of its filters and projections, before and behind what remembers or joins with tables."""
    import pyarrow as pa

    from freshet.kernels import why_not
    from freshet.kernels.pipeline import split
    from freshet.sql import schema_before

    place, pieces = 0, split(path.operators)
    for piece in pieces:
        if isinstance(piece, tuple):
            schema = schema_before(place, path, query.paths, checked.schemas)
            unknown = [field.name for field in schema if pa.types.is_null(field.type)]
            if unknown:
                return f"form chosen at the start: only Spark knows the type of {', '.join(unknown)}"
            reason = why_not(piece, schema)
            if reason is not None and len(pieces) == 1:
                return f"catalyst, because {reason}"
            if reason is not None:
                return f"in stages, because {piece[0].name} needs Spark's own form: {reason}"
        place += len(piece) if isinstance(piece, tuple) else 1
    return "vectorised"


def _columns(schema: pa.Schema) -> str:
    import pyarrow as pa

    from freshet.model.schema import type_text

    return ", ".join(
        f"{field.name} {'?' if pa.types.is_null(field.type) else type_text(field.type)}" for field in schema
    )
