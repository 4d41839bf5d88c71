"""The claims of RT: RTStream's cost prediction and its management of quality. Importing this registers them."""

from freshet.reproduce.rtstream import estimates as estimates

from freshet.reproduce.rtstream import management as management  # isort: skip
