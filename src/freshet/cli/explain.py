"""``freshet explain``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.app import App
    from freshet.app.checking import Checked
    from freshet.app.endpoints import NamedSink
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

    For each query its operators and windows, what it remembers, the physical form of each part and why, its columns,
    its readers and its sinks; then what a step does once for several queries. It starts no Spark.
    """
    from freshet.app import App
    from freshet.app.problems import did_you_mean
    from freshet.model import UserError

    made = App.from_toml(app)
    checked = made.checked()
    if query is not None and query not in checked.queries:
        kind = "stream" if query in made.streams else "table" if query in made.tables else None
        hint = did_you_mean(query, checked.queries)
        wrong = f"{query} is a {kind}, and explain shows queries" if kind else f"there is no query {query!r}{hint}"
        raise UserError(f"{app}: {wrong}; it has: {', '.join(checked.queries)}")
    chosen = [query] if query else list(checked.queries)
    parts = ["\n".join(_lines(checked.queries[name], made, checked)) for name in chosen]
    from freshet.cli.explain_steps import common_steps

    parts += ["\n".join(lines) for lines in common_steps(checked, chosen)]
    from freshet.app.sharing import read_figures
    from freshet.cli.explain_shared import shared_work

    shared = shared_work(checked, chosen, made.settings.share, read_figures(made.state))
    parts += ["\n".join(lines) for lines in shared]
    print("\n\n".join(parts))


def _lines(query: Query, app: App, checked: Checked) -> Iterator[str]:
    from freshet.app.endpoints import named_sinks
    from freshet.cli.explain_jobs import explain_jobs
    from freshet.cli.explain_state import explain_joins, explain_times
    from freshet.sql import describe

    wrong = "gives NULL" if query.on_error == "null" else "quarantines the query"
    yield f"query {query.name} (weight {query.promises.weight:g}, starts at {query.start}, an evaluation error {wrong})"
    if query.promises.curve is not None:
        yield f"  latency curve: utility {query.promises.curve.text()}"
    yield from (f"  {line}" for line in describe(query.graph).splitlines())
    for more in (explain_times(query, app.streams, checked), explain_jobs(query, checked), explain_joins(query)):
        yield from (f"  {line}" for line in more)
    yield f"  output {query.name}: {_columns(checked.schemas[query.name])}"
    readers = [other.name for other in checked.queries.values() if query.name in other.graph.streams]
    if readers:
        yield f"  read by {', '.join(readers)}"
    for sink in named_sinks(app.queries[query.name]):
        yield f"  sink {sink.name}{_options(sink)}"


def _options(sink: NamedSink) -> str:
    """What was said of a sink besides its name, for people."""
    from freshet.model.telling import masked_value

    if not isinstance(sink.declared, Mapping):
        return ""
    told = {key: value for key, value in sink.declared.items() if key not in ("name", "kind")}
    kind = [] if sink.declared["kind"] == sink.name else [str(sink.declared["kind"])]
    words = [*kind, *(f"{key} {_value(masked_value(key, value))}" for key, value in told.items())]
    return f": {', '.join(words)}" if words else ""


def _value(value: object) -> str:
    """A value of an option, much as the file has it.

    >>> _value(["town", "day"]), _value(True), _value("a b")
    ('[town, day]', 'true', 'a b')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, list | tuple) else str(value)


def _columns(schema: pa.Schema) -> str:
    import pyarrow as pa

    from freshet.model.schema import type_text

    return ", ".join(
        f"{field.name} {'(type known at the start)' if pa.types.is_null(field.type) else type_text(field.type)}"
        for field in schema
    )
