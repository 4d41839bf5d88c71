"""The claims of CAR ch. 3, 4 and 6.3: Aurora's superboxes, trains and QoS-aware schedulers.

Importing this registers them, in the order of the thesis.
"""

from freshet.reproduce.aurora import examples as examples

from freshet.reproduce.aurora import superboxes as superboxes  # isort: skip
from freshet.reproduce.aurora import schedules as schedules  # isort: skip
from freshet.reproduce.aurora import scale as scale  # isort: skip
from freshet.reproduce.aurora import overload as overload  # isort: skip
from freshet.reproduce.aurora import overlap as overlap  # isort: skip
