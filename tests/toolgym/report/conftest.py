"""What the tests of the reports share."""

import pytest

from tests.toolgym.report.light_pages import light_pages
from toolgym.report.page import plotting_script

__all__ = ["light_pages", "whole_pages"]


@pytest.fixture
def whole_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages of this test embed the library itself."""
    monkeypatch.setattr("toolgym.report.page.plotting_script", plotting_script)
