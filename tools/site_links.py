"""Check the links of the built site.

The generator checks only links in Markdown. This module checks the HTML, including that of the
theme and of mkdocstrings: each address within the site must be a file, each anchor must be an id of
its page, and no page may load anything from another host.
"""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

LOADS = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""Attributes whose address a browser loads with the page."""
NOT_LOADED = ("canonical", "next", "prev", "alternate")
"""Relations of a `link` that a browser does not load."""


class _Page(HTMLParser):
    """Collects the addresses and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "__skip"}
        self.links: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the ids and addresses of an element."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        relation = values.get("rel", "")
        if tag == "link" and relation in NOT_LOADED:
            return
        for name in ("href", "src"):
            if name in values:
                self.links.append((values[name], (tag, name) in LOADS))


def broken_links(site: Path, site_url: str) -> list[str]:
    """Return one line for each broken link of a built site.

    Args:
        site: Folder with the HTML.
        site_url: Public address of the site; links to it are checked too.
    """
    pages = {file: _read(file) for file in sorted(site.rglob("*.html"))}
    return [line for file in pages for line in _wrong_on(file, pages, site, site_url)]


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _wrong_on(file: Path, pages: dict[Path, _Page], site: Path, site_url: str) -> Iterator[str]:
    # The 404 page is shown at any address, so its links start from the root.
    place = "" if file.name == "404.html" else file.relative_to(site).as_posix()
    for address, is_loaded in pages[file].links:
        target = urlsplit(urljoin(urljoin(site_url, place), address))
        if not target.geturl().startswith(site_url):
            if is_loaded:
                yield f"{place}: loads {address} from another host"
            continue
        path = site / unquote(target.path[len(urlsplit(site_url).path) :])
        found = path / "index.html" if path.is_dir() else path
        if not found.is_file():
            yield f"{place}: {address} is not there"
        elif found in pages and unquote(target.fragment) not in pages[found].anchors:
            yield f"{place}: {address} has no such anchor"
