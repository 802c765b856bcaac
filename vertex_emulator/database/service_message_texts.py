"""The texts that the service itself writes into a job's log, as real jobs have them (docs/fidelity.md)."""

from collections.abc import Iterator

from vertex_emulator.database.records import CANCELLED, FAILED, SUCCEEDED, Ending

PROVISIONING_TEXTS = (
    "Vertex AI is provisioning job running framework. First time usage might take couple of minutes, "
    "and subsequent runs can be much faster.",
    "Vertex AI is setting up this job.",
)
LAUNCH_TEXTS = ("Waiting for training program to start.", "Job is preparing.")
"""The texts of a custom job that leaves the queue, before its containers start: provisioning, then launch."""
_TEAR_DOWN_TEXTS = {
    SUCCEEDED: ("Tearing down training program.", "Finished tearing down training program."),
    FAILED: ("Finished tearing down training program.",),
    CANCELLED: (),
}
_FINAL_TEXTS = {SUCCEEDED: "Job completed successfully.", FAILED: "Job failed.", CANCELLED: "Job is cancelled."}


def iterate_closing_severities_and_texts(ending: Ending, has_program: bool) -> Iterator[tuple[str, str]]:
    """Yield what the log of a job ends with: the lines of its error one by one, the tear-down, the outcome.

    `has_program` says whether there is a training program to tear down.
    """
    if ending.state == FAILED:
        yield from (("ERROR", line) for line in ending.message.splitlines() if line.strip())
    if has_program:
        yield from (("INFO", text) for text in _TEAR_DOWN_TEXTS[ending.state])
    yield "INFO", _FINAL_TEXTS[ending.state]
