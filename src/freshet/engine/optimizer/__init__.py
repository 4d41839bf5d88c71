"""What the engine does between steps for promises: strategies, thinning, weights, the balance of beta."""
