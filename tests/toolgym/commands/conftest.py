"""What the tests of the commands share."""

from tests.toolgym.report.light_pages import light_pages

__all__ = ["light_pages"]
