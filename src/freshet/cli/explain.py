"""``freshet explain``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.app.checking import Checked
    from freshet.model import Query


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

    For each query its operators, the physical form of each path and why, its readers and its columns. It starts no
    Spark.
    """
    from freshet.app import App
    from freshet.app.problems import did_you_mean
    from freshet.model import UserError

    checked = App.from_toml(app).checked()
    if query is not None and query not in checked.queries:
        hint = did_you_mean(query, checked.queries)
        raise UserError(f"{app}: there is no query {query!r}{hint}; it has: {', '.join(checked.queries)}")
    chosen = [query] if query else list(checked.queries)
    print("\n\n".join("\n".join(_lines(checked.queries[name], checked)) for name in chosen))


def _lines(query: Query, checked: Checked) -> Iterator[str]:
    from freshet.model import Network
    from freshet.sql import describe

    yield f"query {query.name} (weight {query.weight:g}, starts at {query.start}, an error gives {query.on_error})"
    yield from (f"  {line}" for line in describe(query.graph).splitlines())
    network = Network()
    for numbers in network.add(query):
        nodes = [network.nodes[number] for number in numbers]
        first = nodes[0]
        yield f"  path {first.reads} -> {query.name}: reader {first.name}, {_form(query, first.reads, checked)}"
    yield f"  output {query.name}: {_columns(checked.schemas[query.name])}"
    readers = [other.name for other in checked.queries.values() if query.name in other.graph.streams]
    if readers:
        yield f"  read by {', '.join(readers)}"


def _form(query: Query, stream: str, checked: Checked) -> str:
    import pyarrow as pa

    from freshet.kernels import why_not

    schema = checked.schemas[stream]
    unknown = [field.name for field in schema if pa.types.is_null(field.type)]
    if unknown:
        return f"form chosen at the start: only Spark knows the type of {', '.join(unknown)}"
    reasons = [why_not(path.operators, schema) for path in query.paths if path.stream == stream]
    reason = next((reason for reason in reasons if reason), None)
    return "vectorised" if reason is None else f"catalyst, because {reason}"


def _columns(schema: pa.Schema) -> str:
    import pyarrow as pa

    from freshet.model.schema import type_text

    return ", ".join(
        f"{field.name} {'?' if pa.types.is_null(field.type) else type_text(field.type)}" for field in schema
    )
