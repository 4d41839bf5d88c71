"""The demo: stories of about a minute. The first is a network monitor of 25 queries of different worth, in a flood."""
