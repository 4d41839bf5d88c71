"""Spark: the only package that runs Spark jobs."""
