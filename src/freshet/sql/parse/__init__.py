"""Text to syntax tree: the dialect, its limits, its errors."""
