"""Expressions of Spark SQL over NumPy and Arrow."""
