"""The claims of WU ch. 4: tuple-based scheduling. Importing this registers them."""

from freshet.reproduce.tuples import claims as claims
from freshet.reproduce.tuples import claims_inputs as claims_inputs
