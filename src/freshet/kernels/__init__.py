"""The vectorised form of filters, projections and folds: compiled to NumPy and Arrow, without Spark.

The answers are exactly Spark's in ANSI mode, except that an evaluation error gives NULL and is counted. Expressions
outside the compiled subset raise :class:`Unsupported`; chains with such expressions run as Spark plans.
"""

from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.folds import CompiledFold, Folded, compile_fold
from freshet.kernels.superbox.chain import ChainOutput
from freshet.kernels.superbox.program import Program, why_not

__all__ = ["ChainOutput", "CompiledFold", "Folded", "Program", "Unsupported", "compile_fold", "why_not"]
