"""Pages without the plotting library, a megabyte that takes seconds to make and stands in each."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def light_pages() -> Iterator[None]:
    """Every page that is made in this process embeds a line in the place of the library."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolgym.report.page.plotting_script", lambda: "window.vegaEmbed = null;")
        yield
