"""The command ``freshet read``."""
