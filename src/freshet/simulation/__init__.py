"""Simulated time: arrival processes, workloads and an executor that charges costs instead of working."""
