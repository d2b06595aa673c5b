"""A capability is recognised alike in all versions of Python."""

import pytest

from dse.protocols import ExpectsImprovement, Queueing, ReportsIntermediate, SupportsReading
from dse.storage.memory import MemoryStorage


class Passing:
    """Passes all on to another object."""

    def __init__(self, other):
        self._other = other

    def __getattr__(self, name):
        return getattr(self._other, name)


class Unqueued(Passing):
    """Passes all on but the methods of the queue."""

    def __getattr__(self, name):
        if name == "take":
            raise AttributeError(name)
        return super().__getattr__(name)


class Blocked(MemoryStorage):
    take = None


class Reporting:
    def __init__(self):
        self.on_report = None


class Derived(ReportsIntermediate):
    """Declares to report; its attribute is still to be set."""


@pytest.mark.parametrize(
    ("it", "capability", "has"),
    [
        (MemoryStorage(), Queueing, True),
        (Passing(MemoryStorage()), Queueing, True),
        (Unqueued(MemoryStorage()), Queueing, False),
        (Blocked(), Queueing, False),
        (Passing(MemoryStorage()), SupportsReading, isinstance(MemoryStorage(), SupportsReading)),
        (Reporting(), ReportsIntermediate, True),
        (Passing(Reporting()), ReportsIntermediate, True),
        (Derived(), ReportsIntermediate, True),
        (object(), ReportsIntermediate, False),
        (object(), ExpectsImprovement, False),
    ],
)
def test_what_an_object_provides_counts_wherever_it_comes_from(it, capability, has):
    assert isinstance(it, capability) is has
