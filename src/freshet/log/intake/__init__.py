"""The way into a stream: values become tuples, dead letters or late rows."""
