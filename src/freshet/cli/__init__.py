"""The command line."""

from freshet.cli.main import main

__all__ = ["main"]
