"""The rows of states in a worker's memory, and how they are found, dropped and rewritten."""
