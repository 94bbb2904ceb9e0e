"""The sessions in the documentation are run, and print what the page shows."""

import doctest
import re

from tests.adapters.local_server import ROOT


def check_page(name: str) -> None:
    """Run the blocks of a page that are marked with its name."""
    text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
    blocks = re.findall(rf"^```python {name}\n(.*?)^```$", text, re.M | re.S)
    session = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, name, f"{name}.md", 0)
    said: list[str] = []

    doctest.DocTestRunner(verbose=False).run(session, out=said.append)

    assert blocks
    assert not said, "".join(said)
