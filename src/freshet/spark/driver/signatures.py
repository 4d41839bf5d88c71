"""Which arguments Spark's functions take, asked of Spark: makes ``freshet/sql/check/signatures.txt``.

``python -m freshet.spark.driver.signatures > src/freshet/sql/check/signatures.txt`` after another version of Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from freshet.sql.check.functions import IN_GRAMMAR, functions
from freshet.sql.check.signatures import LETTERS, LOOKED_AT, Signature

MOST: Final = 9
"""Arguments that are tried; a function that takes as many takes any number."""
_MISMATCH: Final = "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE"
# A letter stands for all of its types: arrays of some sort may be right where arrays of another are not.
_EXAMPLES: Final = {
    "array": ("array<int>", "array<string>", "array<array<int>>", "array<struct<a:int,b:int>>", "array<double>"),
    "map": ("map<string,int>", "map<string,string>"),
    "struct": ("struct<a:int>", "struct<a:timestamp,b:timestamp>"),
    "decimal": ("decimal(10,2)",),
}


def signature(session: SparkSession, name: str) -> Signature:
    """What a function takes."""
    conditions = [_condition(session, name, ["NULL"] * count) for count in range(MOST + 1)]
    counts = [count for count, condition in enumerate(conditions) if condition != "WRONG_NUM_ARGS"]
    # A call that is refused for the type of a NULL says nothing of the types of others.
    tried = [count for count in counts if 0 < count <= LOOKED_AT and conditions[count] != _MISMATCH]
    refused = []
    for place in range(max(tried, default=0)):
        letters = frozenset(LETTERS)
        for count in (count for count in tried if count > place):
            letters = _refused(session, name, count, place, letters)
        refused.append(letters)
    return Signature(frozenset(counts), tuple(refused), unbounded=bool({MOST, MOST - 1} & set(counts)))


def _refused(session: SparkSession, name: str, count: int, place: int, letters: frozenset[str]) -> frozenset[str]:
    """Those letters whose types cannot stand at a place, whatever stands at the others."""
    return frozenset(
        letter
        for letter in letters
        if all(
            _condition(session, name, [f"CAST(NULL AS {each})" if at == place else "NULL" for at in range(count)])
            == _MISMATCH
            for each in _EXAMPLES.get(LETTERS[letter], (LETTERS[letter],))
        )
    )


def _condition(session: SparkSession, name: str, arguments: list[str]) -> str | None:
    """Why Spark refuses a call; None: it does not."""
    try:
        # Parsing and analysis happen at once; nothing is run.
        session.sql(f"SELECT {name}({', '.join(arguments)})")
    except PySparkException as error:
        condition = error.getCondition() or ""
        return "WRONG_NUM_ARGS" if condition.startswith("WRONG_NUM_ARGS") else condition
    return None


def lines(session: SparkSession) -> Iterator[str]:
    """The file, a line for each function."""
    for name, kind in functions().items():
        if kind in ("scalar", "aggregate") and name not in (*IN_GRAMMAR, "cast"):
            yield f"{name} {signature(session, name).text()}"


if __name__ == "__main__":
    from freshet.spark.session.session import open_session

    for line in lines(open_session("signatures", "local[1]")):
        print(line, flush=True)
