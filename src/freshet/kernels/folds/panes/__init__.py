"""Aggregates at boundaries, from panes."""
