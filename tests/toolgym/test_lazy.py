"""An attribute that is worked out once: its value, its threads, and that it holds no lock."""

import threading
from dataclasses import dataclass

from toolgym.lazy import lazy


@dataclass(frozen=True)
class Box:
    """Counts how often its attribute is worked out."""

    worked: list
    fails: bool = False

    @lazy
    def content(self):
        """What is in it."""
        self.worked.append(1)
        if self.fails:
            raise ValueError("the box is stuck")
        return object()


def test_a_lazy_attribute_is_worked_out_once_and_kept_with_a_frozen_object():
    box = Box([])
    assert box.content is box.content
    assert box.worked == [1]
    assert Box.content.__doc__ == "What is in it."


def test_a_thread_in_the_midst_of_the_work_stops_no_other_and_all_get_one_value():
    """On Python 3.11 `functools.cached_property` would let the second thread wait for the first."""
    begun, go_on, got = threading.Event(), threading.Event(), []

    class Slow:
        @lazy
        def value(self):
            if threading.current_thread() is first:
                begun.set()
                go_on.wait(60)
            return object()

    slow = Slow()
    first = threading.Thread(target=lambda: got.append(slow.value))
    first.start()
    begun.wait(60)
    other = Slow().value  # of another object, in the midst of the first one's work
    mine = slow.value
    go_on.set()
    first.join()
    assert got == [mine]
    assert other is not mine
