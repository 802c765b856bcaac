"""A clock that only moves when someone sleeps."""


class Clock:
    """Stands in for the module `time`; `naps` are the pauses in seconds."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.naps: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.naps.append(seconds)
        self.now += seconds
        assert self.now < 1_000_000, "this wait does not end"
