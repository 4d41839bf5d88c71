"""Published claims, measured again: ``freshet reproduce``. One package per paper, one function per claim."""

from freshet.reproduce.registry import Claim, Measured, claim, claims, papers, run
from freshet.reproduce.trial import Trial

__all__ = ["Claim", "Measured", "Trial", "claim", "claims", "papers", "run"]
