"""From a syntax tree to the operators that run."""
