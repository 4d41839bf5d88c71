"""Policies that rank queries by value over cost, one at a time or in sets."""
