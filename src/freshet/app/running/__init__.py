"""A run of an application: its parts, made, connected and started."""
