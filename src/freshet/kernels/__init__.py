"""The vectorised form of filters, projections and folds: compiled to NumPy and Arrow, without Spark.

The answers are exactly Spark's in ANSI mode, where an evaluation error gives NULL and is counted. What the
compiled subset leaves out raises :class:`Unsupported`; such chains run as Spark plans.
"""

from freshet.kernels.expressions.unsupported import Unsupported
from freshet.kernels.folds import CompiledFold, Folded, compile_fold
from freshet.kernels.superbox.chain import ChainOutput
from freshet.kernels.superbox.program import Program, why_not

__all__ = ["ChainOutput", "CompiledFold", "Folded", "Program", "Unsupported", "compile_fold", "why_not"]
