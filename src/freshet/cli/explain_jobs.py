"""The part of ``freshet explain`` on how the operators of a query run: its readers, the jobs of a step, their forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freshet.app.checking import Checked
from freshet.app.forms import inputs_of
from freshet.kernels import why_not
from freshet.kernels.parting import parted_at, rows_for_parts
from freshet.model import Filter, Operator, Project, Query, QueryGraph
from freshet.sql import SqlTyper

_CORES = (2, 8, 64)


@dataclass(frozen=True, slots=True)
class Job:
    """Operators that run together.

    Args:
        form: ``vectorised``, ``catalyst``, or that it is chosen at the start.
        why: Why it is not ``vectorised``.
        operators: The operators.
    """

    form: str
    why: str
    operators: tuple[Operator, ...]


def explain_jobs(query: Query, checked: Checked) -> Iterator[str]:
    """The lines on what a query reads, and on the jobs in which a step runs all of it."""
    for each in inputs_of(query.graph):
        if not each.is_queue:
            yield f"reads {each.stream}: reader {each.reader}"
    jobs = jobs_of(query.graph, query.graph.schemas(checked.schemas, SqlTyper()))
    if len(jobs) == 1:
        yield f"one job a step: {_form(jobs[0])}"
    else:
        yield f"{len(jobs)} jobs a step, because not all its expressions are compiled"
        for number, job in enumerate(jobs, start=1):
            yield f"  job {number}: {', '.join(operator.name for operator in job.operators)}: {_form(job)}"
    if jobs[0].form == "vectorised" and _has_parts(query.graph, {each.name for each in jobs[0].operators}):
        quicker = ", ".join(f"{(rows_for_parts(cores) or 0) / 1e6:.2g} million on {cores} cores" for cores in _CORES)
        yield f"merges a train on all cores where it has so many tuples that this is quicker ({quicker})"


def jobs_of(graph: QueryGraph, schemas: Mapping[str, pa.Schema]) -> list[Job]:
    """The jobs in which a step runs a graph: what is compiled together, what only Spark can do by itself.

    Args:
        graph: It.
        schemas: Columns of each operator, and of what it reads.
    """
    pieces = [_piece([graph.operators[name] for name in names], schemas[graph.inputs[names[0]][0]])
              for names in _runs(graph)]  # fmt: skip
    place = {operator.name: number for number, piece in enumerate(pieces) for operator in piece.operators}
    levels: list[int] = []
    jobs: dict[tuple[int, object], Job] = {}
    for number, piece in enumerate(pieces):
        sources = [place[each] for each in graph.inputs[piece.operators[0].name] if each in place]
        apart = [levels[each] + (not piece.form == pieces[each].form == "vectorised") for each in sources]
        levels.append(max(apart, default=0))
        key = (levels[-1], "vectorised" if piece.form == "vectorised" else number)
        before = jobs[key].operators if key in jobs else ()
        jobs[key] = Job(piece.form, piece.why, (*before, *piece.operators))
    return [jobs[key] for key in sorted(jobs, key=lambda key: key[0])]


def chains_of(graph: QueryGraph) -> Iterator[tuple[str, tuple[Operator, ...]]]:
    """What a query does with each thing that it reads, up to where several inputs come together."""
    readers = {source: name for name in graph.order for source in graph.inputs[name]}
    for name in graph.order:
        for source in graph.inputs[name]:
            if source not in graph.operators:
                yield source, tuple(_onwards(graph, readers, name))


def _onwards(graph: QueryGraph, readers: Mapping[str, str], name: str | None) -> Iterator[Operator]:
    while name is not None and len(graph.inputs[name]) == 1:
        yield graph.operators[name]
        name = readers.get(name)


def _runs(graph: QueryGraph) -> list[list[str]]:
    """Filters and projections that follow each other, and all other operators by themselves; each after what it
    reads."""
    runs: dict[str, list[str]] = {}
    for name in graph.order:
        source = graph.inputs[name][0]
        if _is_stateless(graph, name) and _is_stateless(graph, source):
            runs[name] = runs[source]
            runs[name].append(name)
        else:
            runs[name] = [name]
    return list({id(run): run for run in runs.values()}.values())


def _is_stateless(graph: QueryGraph, name: str) -> bool:
    return isinstance(graph.operators.get(name), Filter | Project)


def _piece(operators: Sequence[Operator], schema: pa.Schema) -> Job:
    stateless = tuple(each for each in operators if isinstance(each, Filter | Project))
    unknown = [field.name for field in schema if pa.types.is_null(field.type)]
    if stateless and unknown:
        return Job("form chosen at the start", f"only Spark knows the type of {', '.join(unknown)}", stateless)
    reason = why_not(stateless, schema) if stateless else None
    if reason is not None:
        return Job("catalyst", f"{reason} is not compiled", stateless)
    return Job("vectorised", "", tuple(operators))


def _form(job: Job) -> str:
    if job.why:
        return f"{job.form}, because {job.why}"
    form = f"{job.form}, because all its expressions are compiled"
    return f"{form}; in one task, because it remembers" if any(each.remembers for each in job.operators) else form


def _has_parts(graph: QueryGraph, names: set[str]) -> bool:
    """Whether the tuples of a large train are merged in parts up to an aggregate."""
    chains = [operators for _, operators in chains_of(graph)]
    places = [parted_at(operators) for operators in chains]
    return all(
        place is not None and {each.name for each in operators[: place + 1]} <= names
        for place, operators in zip(places, chains, strict=True)
    )
