import os
import threading

import egobox
import numpy as np
import pytest

from vertex_emulator.search import surrogate

ROWS = np.linspace(0, 1, 7)[:, None]


class PanicException(BaseException):
    """As PyO3's: not an Exception, and known by its name alone."""


def replace_fit(monkeypatch, fit):
    class Builder:
        def __init__(self, **options): ...

        def fit(self, x, y):
            return fit(x, y)

    monkeypatch.setattr(egobox, "GpMix", Builder)


def raises(failure):
    def fit(x, y):
        raise failure

    return fit


def panics(x, y):
    os.write(2, b"thread panicked at src/gp.rs")
    raise PanicException("GP training failure")


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e90])
@pytest.mark.parametrize("shift", [0.0, 1.0, -1e6])
def test_parabola_is_predicted_whatever_its_scale(scale, shift):
    model = surrogate.fit(ROWS, scale * ((ROWS[:, 0] - 0.47) ** 2 + shift), 1)
    mean, deviation = model.predict(np.array([[0.2], [0.47], [0.9]]))
    expected = np.array([0.27**2, 0, 0.43**2])
    assert mean / scale - shift == pytest.approx(expected, abs=0.01)
    assert (deviation / scale < 0.05).all()


def test_model_is_surest_at_seen_value():
    model = surrogate.fit(ROWS[[0, 1, 5, 6]], np.array([0.0, 1.0, 0.0, 1.0]), 1)
    _, deviation = model.predict(np.array([[0.5], [0.0]]))
    assert deviation[0] > 10 * deviation[1]


def test_pending_point_changes_certainty_but_no_prediction():
    model = surrogate.fit(ROWS, np.sin(7 * ROWS[:, 0]), 1)
    point = np.array([[0.42]])
    conditioned = model.condition(point)
    assert conditioned.predict(point)[0] == pytest.approx(model.predict(point)[0], abs=1e-3)
    assert conditioned.predict(point)[1] < model.predict(point)[1] / 10


def test_equal_values_give_no_model():
    assert surrogate.fit(ROWS, np.ones(len(ROWS)), 1) is None
    assert surrogate.fit(ROWS, np.array([0.0, *[5e-324] * 6]), 1) is None


@pytest.mark.parametrize("failure", [PanicException("x"), RuntimeError("x")])
def test_failed_fit_silently_gives_no_model(monkeypatch, capfd, failure):
    replace_fit(monkeypatch, raises(failure))
    assert surrogate.fit(ROWS, ROWS[:, 0], 1) is None
    assert capfd.readouterr() == ("", "")


def test_panic_message_is_not_printed(monkeypatch, capfd):
    replace_fit(monkeypatch, panics)
    assert surrogate.fit(ROWS, ROWS[:, 0], 1) is None
    os.write(2, b"still here\n")
    assert capfd.readouterr().err == "still here\n"


def test_what_others_print_meanwhile_arrives(monkeypatch, capfd):
    real = egobox.GpMix(seed=1)

    def chatty(x, y):
        os.write(2, b"from another thread\n")
        return real.fit(x, y)

    replace_fit(monkeypatch, chatty)
    assert surrogate.fit(ROWS, ROWS[:, 0], 1) is not None
    assert capfd.readouterr().err == "from another thread\n" * 2


def test_parallel_fits_leave_standard_error_as_it_was(capfd):
    values = ROWS[:, 0] ** 2
    threads = [threading.Thread(target=surrogate.fit, args=(ROWS, values, seed)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    os.write(2, b"still here\n")
    assert capfd.readouterr().err == "still here\n"


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), MemoryError()])
def test_nothing_else_is_taken_for_failed_fit(monkeypatch, failure):
    replace_fit(monkeypatch, raises(failure))
    with pytest.raises(type(failure)):
        surrogate.fit(ROWS, ROWS[:, 0], 1)


def test_values_of_one_point_are_averaged(monkeypatch):
    seen = []

    def record(x, y):
        seen.append((x.tolist(), y.tolist()))
        raise RuntimeError("seen enough")

    replace_fit(monkeypatch, record)
    # Mean 3, variance (4 + 4 + 0) / 3; the first and the third are one point, (1 + 3) / 2 = 2, which is 1 below.
    surrogate.fit(np.array([[0.0], [1.0], [0.0]]), np.array([1.0, 5.0, 3.0]), 1)
    deviation = (8 / 3) ** 0.5
    assert seen[0][0] == [[0.0], [1.0]]
    assert seen[0][1] == [[pytest.approx(-1 / deviation)], [pytest.approx(2 / deviation)]]
