"""Benchmarks: what Freshet costs, what it can take, and what it survives, on this machine."""

from freshet.bench.command import app

__all__ = ["app"]
