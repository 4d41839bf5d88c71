"""The demo: a network monitor with 25 queries of different worth, and a flood that is too much for the machine."""
