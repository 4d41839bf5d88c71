"""Segment files: how they are written, summed, read, rewritten and deleted."""
