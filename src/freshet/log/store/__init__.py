"""The commit store: what exists, who owns it, and whether it is intact."""
