"""What a state folder remembers of queries, and how they continue from it."""
