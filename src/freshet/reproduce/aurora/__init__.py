"""The claims of CAR ch. 3 and 4: Aurora's superboxes, trains and QoS-aware schedulers.

Importing this registers them, in the order of the thesis.
"""

from freshet.reproduce import aurora_superboxes as aurora_superboxes

from freshet.reproduce import aurora_schedules as aurora_schedules  # isort: skip
from freshet.reproduce import aurora_scale as aurora_scale  # isort: skip
from freshet.reproduce import aurora_overload as aurora_overload  # isort: skip
