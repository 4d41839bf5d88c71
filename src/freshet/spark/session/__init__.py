"""Spark sessions: how one is found, set up, started and ended."""
