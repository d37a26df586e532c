"""What workflows give, as tests look at it."""

from typing import Any

from attnviz.report import Report
from attnviz.running import Events, Result


def result(events: Events) -> Result:
    """The last event, which is the whole result of most commands."""
    *_, last = events
    assert isinstance(last, Result)
    return last


def results(events: Events) -> list[Result]:
    return [event for event in events if isinstance(event, Result)]


def report(found: Result) -> Report:
    assert found.report is not None
    return found.report


def data(found: Result) -> Any:
    return report(found).data
