"""The report of a run: what it holds, and the page that describes it."""
