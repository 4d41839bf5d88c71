"""Polls of one element: by HTTP, of files, of rows in a database."""
