"""Folds compiled to NumPy and Arrow: aggregates at boundaries, moving aggregates and joins, without Spark.

A compiled fold has no memory of its own. With the rows of its state streams it becomes a live fold. A live fold takes
tuples in, and says what it outputs, what it appends to the state, and how much of the state it drops.
"""

from freshet.kernels.folds.compile import compile_fold, compile_rows
from freshet.kernels.folds.folded import CompiledFold, CompiledRows, Folded, LiveFold

__all__ = ["CompiledFold", "CompiledRows", "Folded", "LiveFold", "compile_fold", "compile_rows"]
