"""Runs the sessions in the documentation and compares their output with the page."""

import doctest
import re

from tests.adapters.local_server import ROOT


def check_page(page: str, name: str) -> None:
    """Run the blocks of a page that are marked with the name of an adapter."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    blocks = re.findall(rf"^```python {name}\n(.*?)^```$", text, re.M | re.S)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, page, 0)
    said: list[str] = []

    doctest.DocTestRunner(verbose=False).run(session, out=said.append)

    assert blocks
    assert not said, "".join(said)
