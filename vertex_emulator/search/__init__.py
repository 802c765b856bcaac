"""The mathematics of a hyperparameter study: which parameters the next trial gets, and what is stopped early.

Pure: a study and what was observed go in, the next trial's parameters or a reason to stop come out. The same arguments
give the same answer in every process.
"""

from vertex_emulator.errors import SearchSpaceExhausted
from vertex_emulator.search.space import Observation
from vertex_emulator.search.stopping import EndedTrial, Measurement
from vertex_emulator.search.suggestion import suggest

__all__ = ["EndedTrial", "Measurement", "Observation", "SearchSpaceExhausted", "suggest"]
