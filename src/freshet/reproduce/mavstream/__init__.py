"""The claims of MAV §5: MavStream's run-time optimizer. Importing this registers them."""

from freshet.reproduce.mavstream import claims as claims
