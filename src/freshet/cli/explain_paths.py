"""The part of ``freshet explain`` on the paths of a query: the jobs of a step, their forms, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freshet.app.checking import Checked
from freshet.kernels import why_not
from freshet.kernels.parting import parted_at, rows_for_parts
from freshet.kernels.pipeline import split
from freshet.model import Network, Operator, Path, Query
from freshet.sql import query_schemas

_CORES = (2, 8, 64)


@dataclass(frozen=True, slots=True)
class Job:
    """Operators of a path that run together.

    Args:
        form: ``vectorised``, ``catalyst``, or that it is chosen at the start.
        why: Why it is not ``vectorised``.
        operators: The operators.
    """

    form: str
    why: str
    operators: tuple[Operator, ...]


def explain_paths(query: Query, checked: Checked) -> Iterator[str]:
    """The lines on all paths; where one runs as several jobs, on each of them."""
    network = Network()
    schemas = query_schemas(query, checked.schemas)
    jobs = [jobs_of(path, schemas) for path in query.paths]
    # A path of several jobs makes jobs of their own of all paths of its query: they may share what is remembered.
    together = len(jobs) > 1 and all(len(each) == 1 for each in jobs)
    for numbers, path, mine in zip(network.add(query), query.paths, jobs, strict=True):
        first = network.nodes[numbers[0]]
        yield f"path {path.stream} -> {query.name}: reader {first.name}, {_how(mine, together)}"
        if (parts := _parts(mine)) is not None:
            yield f"  {parts}"
        for number, job in enumerate(mine if len(mine) > 1 else (), start=1):
            yield f"  job {number}: {', '.join(operator.name for operator in job.operators)}: {_form(job)}"


def jobs_of(path: Path, schemas: Mapping[str, pa.Schema]) -> list[Job]:
    """The jobs in which a step runs a path: what is compiled together, what only Spark can do by itself.

    Args:
        path: It.
        schemas: Columns of each operator of its query, and of what it reads.
    """
    jobs: list[Job] = []
    place = 0
    for piece in split(path.operators):
        operators = piece if isinstance(piece, tuple) else (piece,)
        job = Job("vectorised", "", operators)
        if isinstance(piece, tuple):
            schema = schemas[path.nodes[place - 1] if place else path.stream]
            unknown = [field.name for field in schema if pa.types.is_null(field.type)]
            reason = None if unknown else why_not(piece, schema)
            if unknown:
                job = Job("form chosen at the start", f"only Spark knows the type of {', '.join(unknown)}", operators)
            elif reason is not None:
                job = Job("catalyst", f"{reason} is not compiled", operators)
        if jobs and jobs[-1].form == job.form == "vectorised":
            jobs[-1] = Job("vectorised", "", jobs[-1].operators + operators)
        else:
            jobs.append(job)
        place += len(operators)
    return jobs


def _how(jobs: Sequence[Job], together: bool) -> str:
    if len(jobs) > 1:
        return f"{len(jobs)} jobs a step, because not all its expressions are compiled"
    return _form(jobs[0], together)


def _form(job: Job, together: bool = False) -> str:
    if job.why:
        return f"{job.form}, because {job.why}"
    form = f"{job.form}, because all its expressions are compiled"
    if not any(operator.remembers for operator in job.operators):
        return form
    return f"{form}; in one task{' with the other paths' if together else ''}, because it remembers"


def _parts(jobs: Sequence[Job]) -> str | None:
    """From which size on the first job of a path runs in parts up to an aggregate; None: it never does."""
    if jobs[0].form != "vectorised" or parted_at(jobs[0].operators) is None:
        return None
    quicker = ", ".join(f"{(rows_for_parts(cores) or 0) / 1e6:.2g} million on {cores} cores" for cores in _CORES)
    return f"merges a train on all cores where it has so many tuples that this is quicker ({quicker})"
