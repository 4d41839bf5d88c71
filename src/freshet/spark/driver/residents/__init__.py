"""Resident workers as the driver sees them: their slots, their jobs, their connections, and the units that they run."""
