"""Workloads for simulated time: streams and queries as the papers describe them."""
