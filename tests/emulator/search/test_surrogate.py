import os
import threading

import egobox
import pytest

from emulator.search import surrogate
from emulator.search.domain import Categories, Integers, Interval, Numbers

UNIT = Interval(0.0, 1.0, "UNIT_LINEAR_SCALE")


class PanicException(BaseException):
    """As PyO3's: not an Exception, and known by its name alone."""


def test_the_minimum_of_a_parabola_is_proposed():
    rows = [[position / 5] for position in range(6)]
    [proposed] = surrogate.propose([UNIT], rows, [(row[0] - 0.47) ** 2 for row in rows], 1)
    assert proposed == pytest.approx(0.47, abs=0.02)


def test_a_real_panic_gives_no_proposal_and_prints_nothing(capfd):
    assert surrogate.propose([UNIT], [[0.5]], [1.0], 1) is None
    assert capfd.readouterr() == ("", "")


def test_standard_error_works_again_after_a_panic(capfd):
    surrogate.propose([UNIT], [[0.5]], [1.0], 1)
    os.write(2, b"still here\n")
    assert capfd.readouterr().err == "still here\n"


def test_what_others_print_meanwhile_arrives(capfd, monkeypatch):
    class Chatty:
        def __init__(self, *args, **options): ...

        def suggest(self, x, y, seed):
            os.write(2, b"from another thread\n")
            return [[0.25]]

    monkeypatch.setattr(egobox, "Egor", Chatty)
    assert surrogate.propose([UNIT], [[0.0], [1.0]], [1.0, 2.0], 1) == [0.25]
    assert capfd.readouterr().err == "from another thread\n"


def test_two_threads_at_once_leave_standard_error_as_it_was(capfd):
    rows = [[position / 20] for position in range(21)]
    losses = [row[0] ** 2 for row in rows]
    threads = [threading.Thread(target=surrogate.propose, args=([UNIT], rows, losses, seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"still here\n")
    assert capfd.readouterr().err == "still here\n"


@pytest.mark.parametrize("raised", [KeyboardInterrupt, MemoryError])
def test_nothing_but_a_panic_is_taken_for_a_failed_fit(monkeypatch, raised):
    class Failing:
        def __init__(self, *args, **options): ...

        def suggest(self, *args, **options):
            raise raised

    monkeypatch.setattr(egobox, "Egor", Failing)
    with pytest.raises(raised):
        surrogate.propose([UNIT], [[0.0], [1.0]], [1.0, 2.0], 1)


def test_one_point_with_two_losses_counts_with_their_mean(monkeypatch):
    seen = []

    class Recorder:
        def __init__(self, *args, **options): ...

        def suggest(self, x, y, seed):
            seen.append((x.tolist(), y.tolist()))
            return [[0.5]]

    monkeypatch.setattr(egobox, "Egor", Recorder)
    surrogate.propose([UNIT], [[0.0], [1.0], [0.0]], [1.0, 5.0, 3.0], 1)
    assert seen == [([[0.0], [1.0]], [[2.0], [5.0]])]


def test_categories_are_unordered_until_they_are_too_many():
    short, long = Categories(tuple("abc")), Categories(tuple(map(str, range(39))))
    columns = surrogate._columns([long, short, short])
    assert [column.xtype for column in columns] == [egobox.XType.ORD, egobox.XType.ENUM, egobox.XType.ENUM]


def test_numbers_are_listed_to_the_model_until_they_are_too_many():
    domains = [
        Integers(1, 100, "UNIT_LOG_SCALE"),
        Integers(1, 10_000, "UNIT_LOG_SCALE"),
        Numbers((1.0, 2.0, 4.0), "UNIT_LOG_SCALE"),
        Categories(tuple(map(str, range(2000)))),
    ]
    columns = surrogate._columns(domains)
    ordered, continuous = egobox.XType.ORD, egobox.XType.FLOAT
    assert [column.xtype for column in columns] == [ordered, continuous, ordered, ordered]
    assert columns[2].xlimits == [0.0, 0.5, 1.0]
    assert columns[3].xlimits[-1] == 1999.0
