"""Pages for a browser: each is one file that needs nothing else."""

from freshet.pages.run_page import run_page

__all__ = ["run_page"]
