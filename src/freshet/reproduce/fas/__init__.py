"""FAS: freshness-aware scheduling, figures 3 to 10. Importing this registers the claims."""

from freshet.reproduce.fas import claims as claims
