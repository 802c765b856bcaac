"""The mathematics of a hyperparameter study: which parameters the next trial gets, and what is stopped early.

Pure: a study and what was observed go in, the next trial's parameters or a reason to stop come out. The same arguments
give the same answer in every process.
"""

from vertex_emulator.errors import SearchSpaceExhausted
from vertex_emulator.search.measurements_and_observations import Measurement, Observation
from vertex_emulator.search.parameter_suggestion import require_next_parameters
from vertex_emulator.search.study_stopping import EndedTrial

__all__ = ["EndedTrial", "Measurement", "Observation", "SearchSpaceExhausted", "require_next_parameters"]
