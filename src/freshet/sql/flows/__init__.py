"""Flows: the parts of a query graph on their way to paths.

A flow knows what it gives out, and *emits* paths for whoever reads it: the reader says which filters and columns it
wants, in terms of the flow's own columns, and every flow translates that into terms of its own input. So projections
vanish into their readers, filters move to where the tuples are, and columns that nobody wants are never kept.
Columns whose names begin with two underscores are hidden: the time, the validity and the window of a tuple.
"""
