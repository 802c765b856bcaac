"""Who leaves the queue next."""

from collections.abc import Iterable, Mapping

from vertex_emulator.database.queue import QueuedJob


def admitted(waiting: Iterable[QueuedJob], in_use: Mapping[str, int], capacity: int) -> list[QueuedJob]:
    """The waiting jobs that may start now, in order; `in_use` is the room taken up by each owner, in replicas.

    A study with all its trials is one owner, and so is each other job. The owner that takes up the least room is next,
    of equal ones the one that has waited longest: a job since it was created, a study since a trial of it last left the
    queue. Nobody overtakes: when the next job does not fit, its room is kept for it, and one that is larger than the
    machine runs once it has the machine for itself.

    So nobody starves. An owner that has nothing running lets only those go first that have waited longer, each study
    among them once: neither a stream of small jobs nor a study's ever new trials hold up a large job. And a study comes
    back to that rank when the trials that it runs have ended.
    """
    left = list(waiting)  # the first of equal ones is chosen, so their order stays
    used = dict(in_use)
    chosen = []
    while left:
        next_ = min(left, key=lambda job: (used.get(job.owner, 0), job.since))
        total = sum(used.values())
        if total and total + next_.slots > capacity:
            break
        left.remove(next_)
        used[next_.owner] = used.get(next_.owner, 0) + next_.slots
        chosen.append(next_)
    return chosen
