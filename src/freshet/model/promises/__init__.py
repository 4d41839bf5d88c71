"""What a query is promised, what is expected of it, and what may be left out to keep that."""
