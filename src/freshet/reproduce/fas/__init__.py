"""The claims of FAS. Importing this registers them, in the order of the figures."""

from freshet.reproduce.fas import loads as loads

from freshet.reproduce.fas import betas as betas  # isort: skip
from freshet.reproduce.fas import streams as streams  # isort: skip
