"""Results that were recorded: every run behind a table, as it was measured, and its mean and spread over seeds.

They come with the package, so that a table can be printed where nothing can be trained.
"""

from saccade.recorded.gains import Gain, gain
from saccade.recorded.restarts import Restarts, errors_by_restart, kept_errors
from saccade.recorded.runs import RecordedRun, read_run, recorded_runs, results_folder, superseded_runs
from saccade.recorded.saving import save_run_record
from saccade.recorded.seeds import Difference, Measured, Spread, difference, measure, spread

__all__ = [
    "Difference",
    "Gain",
    "Measured",
    "RecordedRun",
    "Restarts",
    "Spread",
    "difference",
    "errors_by_restart",
    "gain",
    "kept_errors",
    "measure",
    "read_run",
    "recorded_runs",
    "results_folder",
    "save_run_record",
    "spread",
    "superseded_runs",
]
