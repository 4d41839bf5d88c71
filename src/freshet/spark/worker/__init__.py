"""What a task does, and what driver and task tell each other."""
