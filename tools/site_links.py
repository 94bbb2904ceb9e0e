"""Every link of the built site leads somewhere, on the site itself.

The generator's own check reads the Markdown, so it sees neither pictures and files that are no
pages, nor what its theme and mkdocstrings write. This reads the HTML as a browser would get it:
each address within the site has to be a file, each anchor an id on that page, and nothing that a
page loads by itself may come from another host.
"""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

LOADS = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
"""What a browser fetches without being asked."""
NOT_LOADED = ("canonical", "next", "prev", "alternate")
"""Relations of a `link` that a browser does not fetch."""


class _Page(HTMLParser):
    """The addresses and the anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = {"", "__skip"}
        self.links: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the ids and the addresses of an element."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        relation = values.get("rel", "")
        if tag == "link" and relation in NOT_LOADED:
            return
        for name in ("href", "src"):
            if name in values:
                self.links.append((values[name], (tag, name) in LOADS))


def broken_links(site: Path, site_url: str) -> list[str]:
    """What is wrong with the links of a built site, a line for each; empty if nothing is.

    Args:
        site: The folder with the HTML.
        site_url: Where the site is going to be; links to it are links within the site.
    """
    pages = {file: _read(file) for file in sorted(site.rglob("*.html"))}
    return [line for file in pages for line in _wrong_on(file, pages, site, site_url)]


def _read(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _wrong_on(file: Path, pages: dict[Path, _Page], site: Path, site_url: str) -> Iterator[str]:
    # The page for wrong addresses may be shown at any of them, so its links start from the root.
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
