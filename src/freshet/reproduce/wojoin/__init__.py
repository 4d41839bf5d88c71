"""The claims of WU ch. 3 on one join of three streams. Importing this registers them."""

from freshet.reproduce.wojoin import claims as claims
from freshet.reproduce.wojoin import claims_latencies as claims_latencies
from freshet.reproduce.wojoin import claims_plans as claims_plans
