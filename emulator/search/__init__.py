"""The mathematics of a hyperparameter study: which parameters the next trial gets.

Pure: a study and what was observed go in, the next trial's parameters come out. The same arguments give the same
answer in every process.
"""

from emulator.search.grid_search import SearchSpaceExhausted
from emulator.search.observation import Observation
from emulator.search.suggestion import suggest

__all__ = ["Observation", "SearchSpaceExhausted", "suggest"]
