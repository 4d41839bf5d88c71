"""The part of ``freshet explain`` on the paths of a query: the jobs of a step, their forms, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from freshet.app.checking import Checked
from freshet.kernels import why_not
from freshet.kernels.parting import parted_at, rows_for_parts
from freshet.kernels.pipeline import split
from freshet.model import Filter, Lookup, Network, Path, Project, Query
from freshet.model.query import PathOperator
from freshet.sql import schema_before
from freshet.sql.describe import operator_lines

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
    operators: tuple[PathOperator, ...]


def explain_paths(query: Query, checked: Checked) -> Iterator[str]:
    """The lines on all paths; operators are named only where the graph does not show them as they run."""
    network = Network()
    jobs = [jobs_of(path, query, checked) for path in query.paths]
    # A path of several jobs makes jobs of their own of all paths of its query: they may share what is remembered.
    together = len(jobs) > 1 and all(len(each) == 1 for each in jobs)
    for place, (numbers, path) in enumerate(zip(network.add(query), query.paths, strict=True)):
        first = network.nodes[numbers[0]]
        alone = len(jobs[place]) == 1
        yield f"path {path.stream} -> {query.name}: reader {first.name}, {_how(jobs[place], together)}"
        if (parts := _parts(jobs[place])) is not None:
            yield f"  {parts}"
        if query.lowered is None:
            continue
        above = _tail_above(path, query.paths[:place])
        left = len(path.operators) - above
        for number, job in enumerate(jobs[place], start=1):
            if not alone and left > 0:
                yield f"  job {number}: {_form(job)}"
            for operator in job.operators[: max(left, 0)]:
                yield from (f"  {'' if alone else '  '}{line}" for line in operator_lines(operator))
            left -= len(job.operators)
        if above:
            yield f"  then as above from {path.operators[-above].name} on"


def jobs_of(path: Path, query: Query, checked: Checked) -> list[Job]:
    """The jobs in which a step runs a path: what is compiled together, what only Spark can do by itself."""
    jobs: list[Job] = []
    place = 0
    for piece in split(path.operators):
        operators = piece if isinstance(piece, tuple) else (piece,)
        job = Job("vectorised", "", operators)
        if isinstance(piece, tuple):
            schema = schema_before(place, path, query.paths, checked.schemas)
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
    if all(isinstance(operator, Filter | Project | Lookup) for operator in job.operators):
        return form
    return f"{form}; in one task{' with the other paths' if together else ''}, because it remembers"


def _parts(jobs: Sequence[Job]) -> str | None:
    """From which size on the first job of a path runs in parts up to an aggregate; None: it never does."""
    if jobs[0].form != "vectorised" or parted_at(jobs[0].operators) is None:
        return None
    quicker = ", ".join(f"{(rows_for_parts(cores) or 0) / 1e6:.2g} million on {cores} cores" for cores in _CORES)
    return f"merges a train on all cores where it has so many tuples that this is quicker ({quicker})"


def _tail_above(path: Path, earlier: Sequence[Path]) -> int:
    """How many of the last operators of a path were shown with one before it; not worth saying of a single one."""
    most = 0
    for other in earlier:
        pairs = zip(reversed(path.operators), reversed(other.operators), strict=False)
        same = next((place for place, (one, two) in enumerate(pairs) if one != two), len(path.operators))
        most = max(most, min(same, len(path.operators), len(other.operators)))
    return most if most > 1 else 0
