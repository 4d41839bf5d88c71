"""Rules that compile SQL expressions: one file for each family of functions and operators."""
