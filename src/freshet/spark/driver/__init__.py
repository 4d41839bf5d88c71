"""What the driver does: plans of units, their jobs, what comes back, who is to blame."""
