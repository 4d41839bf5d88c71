"""The command ``freshet explain``."""
