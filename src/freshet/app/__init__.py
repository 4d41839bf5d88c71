"""Applications: declared in Python or in a file, checked without Spark, run on it."""

from freshet.app.app import App
from freshet.app.problems import InvalidApp, Problem
from freshet.app.run import Run

__all__ = ["App", "InvalidApp", "Problem", "Run"]
