"""What the calls of a fold compute: partial aggregates of tuples, and the answers that they give together."""
