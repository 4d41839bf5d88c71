"""Segment files: written, summed, read, rewritten and deleted."""
