"""Tuple-based scheduling: which waiting tuples are worth their time before they expire (WU ch. 4)."""
