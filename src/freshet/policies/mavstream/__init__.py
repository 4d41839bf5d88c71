"""MavStream's strategies over paths and path segments (MAV §3.1), and the master scheduler that runs some (§4.14)."""
