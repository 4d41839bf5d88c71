"""The vectorised form of filters and projections: SQL expressions compiled to NumPy and Arrow, without Spark.

The answers are exactly Spark's in ANSI mode, where an evaluation error gives NULL and is counted. What the
compiled subset leaves out raises :class:`Unsupported`; such chains run as Spark plans.
"""

from freshet.kernels.chain import ChainOutput
from freshet.kernels.program import Program, why_not
from freshet.kernels.unsupported import Unsupported

__all__ = ["ChainOutput", "Program", "Unsupported", "why_not"]
