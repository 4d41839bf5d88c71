"""What a policy sees (views), what it answers (plans), and what the engine makes of that (trains, units, instances)."""
