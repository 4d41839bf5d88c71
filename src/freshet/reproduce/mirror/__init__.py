"""CAR ch. 2: refresh plans for perceived freshness. Importing this registers the claims."""

from freshet.reproduce.mirror import claims as claims
