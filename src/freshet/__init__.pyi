"""What type checkers see of the lazy names of ``freshet``."""

from freshet.app import App as App
from freshet.app import InvalidApp as InvalidApp
from freshet.app import Run as Run
from freshet.app.declared.functions import function as function
from freshet.app.declared.functions import operator as operator
from freshet.log import Retention as Retention
from freshet.model import FreshetError as FreshetError
from freshet.model import UserError as UserError
from freshet.sources import Backpressure as Backpressure

__version__: str
__all__ = ["App", "Backpressure", "FreshetError", "InvalidApp", "Retention", "Run", "UserError", "function", "operator"]
