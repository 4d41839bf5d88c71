"""The commit store: what exists, who owns it, whether it is whole."""
