"""``freshet explain``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Final

import typer

from freshet.cli.check import AppPath

if TYPE_CHECKING:
    import pyarrow as pa

    from freshet.app import App
    from freshet.app.declared.checking import Checked
    from freshet.app.declared.endpoints import NamedSink
    from freshet.model import Query


EXAMPLES: Final = """\b
Examples:
  freshet explain app.toml
  freshet explain app.toml hot
  freshet explain app.toml --decisions   what the optimizer saw and did
  freshet explain app.toml --feasible    can the promises be kept?
  freshet explain app.toml --feasible --load 1.5   ... with half as much again?
  freshet explain app.toml --misses      which deadlines were missed, and why?
"""


def explain(
    app: AppPath,
    query: Annotated[str | None, typer.Argument(help="One query; all if left out.", show_default=False)] = None,
    decisions: Annotated[bool, typer.Option("--decisions", help="Show what the optimizer saw and did.")] = False,
    feasible: Annotated[
        bool, typer.Option("--feasible", help="Show whether promises can be kept, by the figures of the last report.")
    ] = False,
    load: Annotated[float, typer.Option(metavar="FACTOR", help="With --feasible: at other rates.")] = 1.0,
    misses: Annotated[
        bool, typer.Option("--misses", help="Show why instances of PERIOD queries were late, by the last report.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print decisions, verdicts or misses as JSON.")] = False,
) -> None:
    """Show how queries run.

    It shows for each query its operators and windows, what it remembers, the physical form of each part and why, its
    columns, its readers and its sinks. Then it shows what a step does once for several queries, what queries would
    share if the application were started now, and how many residents there are to be. It does not start Spark.

    With --decisions it shows every look of the optimizer that is kept, also while the application runs: what was
    measured and expected with which weight, all scores, and what was done by which rule.

    With --feasible it says of each promise whether it can be kept: by the rates and costs in the report of the
    application, while it runs or after it, and by the promises in the file as it is now. It says what to expect, how
    much rates may grow, what is overloaded, and which promise to loosen or which query to move.

    With --misses it shows the last instances of PERIOD queries that were late: how long they waited and took, what was
    predicted, which share of their tuples was left out, and which instances ran meanwhile.
    """
    from freshet.app import App
    from freshet.app.declared.problems import did_you_mean
    from freshet.model import UserError

    made = App.from_toml(app)
    checked = made.checked()
    if query is not None and query not in checked.queries:
        kind = "stream" if query in made.streams else "table" if query in made.tables else None
        hint = did_you_mean(query, checked.queries)
        wrong = f"{query} is a {kind}, and explain shows queries" if kind else f"there is no query {query!r}{hint}"
        raise UserError(f"{app}: {wrong}; it has: {', '.join(checked.queries)}")
    if json and not (decisions or feasible or misses):
        raise UserError("--json is for --decisions, --feasible and --misses: use one of them, too")
    if load != 1.0 and not feasible:
        raise UserError("--load is for --feasible: use both")
    if feasible:
        from freshet.cli.explaining.feasible import feasible_text
        from freshet.quality.feasibility import ALL

        if not 0.0 < load < float("inf"):
            raise UserError(f"--load is a factor above 0, such as 1.5, not {load:g}")
        promises = {name: each.promises for name, each in checked.queries.items()}
        names = [query] if query else [*promises, ALL]
        told = feasible_text(made.report, promises, names, load, json, made.settings.reserve, made.settings.balance)
        print(told)
        return
    if misses:
        from freshet.cli.explaining.misses import misses_text

        print(misses_text(made.report, [query] if query else list(checked.queries), json))
        return
    if decisions:
        from freshet.cli.explaining.decisions import decisions_text

        print(decisions_text(made.state, [query] if query else list(checked.queries), json))
        return
    from freshet.cli.explaining.mirrors import explain_mirrors
    from freshet.cli.explaining.residents import planned_residents
    from freshet.cli.explaining.shared import SharedWork
    from freshet.cli.explaining.steps import common_steps

    chosen, shared = [query] if query else list(checked.queries), SharedWork.of(made, checked)
    forms = [shared.form(checked.queries[name]) for name in chosen]
    parts = ["\n".join([*_lines(form, made, checked), *shared.of_query(form.name)]) for form in forms]
    parts += ["\n".join(lines) for lines in common_steps(checked, chosen)]
    parts += ["\n".join(lines) for lines in shared.operators(chosen)]
    parts += ["\n".join(lines) for lines in explain_mirrors(made, chosen, checked.queries)]
    parts.append(planned_residents(made.settings))
    print("\n\n".join(parts))


def _lines(query: Query, app: App, checked: Checked) -> Iterator[str]:
    from freshet.app.declared.endpoints import named_sinks
    from freshet.app.remembered.sharing import read_figures
    from freshet.cli.explaining.jobs import explain_jobs
    from freshet.cli.explaining.keys import explain_keys
    from freshet.cli.explaining.overload import explain_overload
    from freshet.cli.explaining.paths import explain_paths
    from freshet.cli.explaining.periodic import explain_periodic
    from freshet.cli.explaining.residents import why_no_residents
    from freshet.cli.explaining.state import explain_joins, explain_times
    from freshet.sql import describe

    no_residents = why_no_residents(app.settings)
    wrong = "gives NULL" if query.on_error == "null" else "quarantines the query"
    weighing = app.queries[query.name].weighing
    weight = weighing.plan.text() + (" by its followers" if weighing.subscribers else "")
    yield f"query {query.name} (weight {weight}, starts at {query.start}, an evaluation error {wrong})"
    if query.promises.curve is not None:
        yield f"  latency curve: utility {query.promises.curve.text()}"
    yield from (f"  expects {wish.text()}" for wish in query.promises.expected)
    if (strategy := app.queries[query.name].strategy) is not None:
        yield f"  strategy {strategy}, as declared"
    if strategy is not None or query.promises.expected:
        yield from (f"  {line}" for line in explain_paths(query, read_figures(app.state)))
    yield from (f"  {line}" for line in describe(query.graph).splitlines())
    for more in (
        explain_times(query, app.streams, checked),
        explain_keys(query, app.streams, app.state),
        explain_jobs(query, checked, no_residents),
        explain_joins(query, app.settings.kept_state),
        explain_overload(query, checked.schemas),
        explain_periodic(query, app.settings.periodic),
    ):
        yield from (f"  {line}" for line in more)
    yield f"  output {query.name}: {_columns(checked.schemas[query.name])}"
    readers = [other.name for other in checked.queries.values() if query.name in other.graph.streams]
    if readers:
        yield f"  read by {', '.join(readers)}"
    for sink in named_sinks(app.queries[query.name]):
        yield f"  sink {sink.name}{sink_options(sink)}"


def sink_options(sink: NamedSink) -> str:
    """What was declared of a sink besides its name, for people."""
    from freshet.model.messages import masked_value

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
