"""``python -m freshet``."""

from freshet.cli import main

main()
