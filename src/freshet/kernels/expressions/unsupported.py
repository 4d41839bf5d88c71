"""What the compiled subset leaves out."""

from __future__ import annotations

from freshet.model import FreshetError


class Unsupported(FreshetError):
    """The expression is outside the compiled subset; its text is the short reason. Spark runs such a chain."""
