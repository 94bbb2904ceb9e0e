"""The documentation site in a browser: pages, search, copying and the dark scheme.

The site is built once and served under its public path. In every test the fixture `open_page` also
checks that the console has no error and that no other host is requested.
"""

import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from tools.make_site import build, settings

pytestmark = pytest.mark.nightly

NARROW = 390


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing to the terminal."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[str]:
    """The address of the site, built and served; no browser, no build."""
    pytest.importorskip("zensical", reason="needs the extra docs")
    work = tmp_path_factory.mktemp("site")
    assert build(work) == []
    path = urlsplit(settings()["site_url"]).path.strip("/")
    (work / "served").mkdir()
    (work / "served" / path).symlink_to(work / "html")
    handler = partial(_Quiet, directory=str(work / "served"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/{path}/"
    server.shutdown()
    thread.join()
    server.server_close()


Open = Callable[..., Any]


def scheme(page: Any) -> str:
    return str(page.evaluate("document.body.dataset.mdColorScheme"))


def lightness(page: Any, selector: str, prop: str) -> float:
    """How light a colour is that the browser has computed, from 0 to 255."""
    color = page.locator(selector).first.evaluate(f"e => getComputedStyle(e).{prop}")
    return sum(map(float, re.findall(r"[\d.]+", color)[:3])) / 3


@pytest.mark.parametrize("dark", [False, True])
def test_the_home_page_shows_what_it_is_and_where_to_go(
    site: str, open_page: Open, screenshot: Any, dark: bool
) -> None:
    page = open_page(site, dark=dark)

    assert page.locator("h1").inner_text().startswith("toolgym")
    picture = page.locator("article img").first
    assert picture.evaluate("e => e.complete && e.naturalWidth > 0")
    assert (lightness(page, "body", "backgroundColor") < 60) == dark
    screenshot(page, f"site-home-{'dark' if dark else 'light'}", full=False)
    page.locator("article").get_by_role("link", name="Quickstart").first.click()
    page.wait_for_url("**/quickstart/")
    page.locator("h1", has_text="Quickstart").wait_for()


def test_a_search_finds_the_repair_and_leads_to_it(
    site: str, open_page: Open, screenshot: Any
) -> None:
    page = open_page(site)
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("dropped_null")
    # A result marks what was searched in its address; the navigation has a link of the same name.
    result = page.locator("a[href*='reference/?h=dropped_null']").first
    result.wait_for()
    screenshot(page, "site-search", full=False)
    result.click()

    page.wait_for_url("**/reference/**")
    page.locator("article", has_text="dropped_null").wait_for()
    assert page.locator("h1").inner_text().startswith("Reference")


def test_the_dark_switch_switches_and_is_remembered(site: str, open_page: Open) -> None:
    page = open_page(site)
    seen = []
    for choice in ("__palette_1", "__palette_2"):  # light, then dark
        page.locator(f"label[for='{choice}']").click()
        seen.append(scheme(page))
    assert seen == ["default", "slate"]

    page.goto(f"{site}rewards/")

    assert scheme(page) == "slate"
    assert lightness(page, "body", "backgroundColor") < 60


@pytest.mark.parametrize(
    "place", ["", "guards/", "quickstart/", "reference/", "cli/", "lab/", "api/toolgym/"]
)
def test_a_narrow_page_is_no_wider_than_the_screen(
    site: str, open_page: Open, screenshot: Any, place: str
) -> None:
    page = open_page(site + place, width=NARROW)

    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
    screenshot(page, f"site-narrow-{place.strip('/').replace('/', '-') or 'home'}", full=False)


def test_the_reference_shows_signatures_and_what_an_argument_means(
    site: str, open_page: Open, screenshot: Any
) -> None:
    page = open_page(f"{site}api/toolgym/#toolgym.ToolEnv")

    signature = page.locator("[id='toolgym.ToolEnv'] ~ .doc-signature").first.inner_text()
    assert "step_limit: int" in signature
    body = page.locator("[id='toolgym.ToolEnv'] ~ .doc-contents").first.inner_text()
    assert "Maximum number of calls in an episode" in body
    page.locator("[id='toolgym.ToolEnv']").evaluate("e => e.scrollIntoView()")
    screenshot(page, "site-api", full=False)


@pytest.mark.parametrize("dark", [False, True])
def test_a_diagram_is_drawn_in_the_colours_of_the_page(
    site: str, open_page: Open, screenshot: Any, dark: bool
) -> None:
    page = open_page(f"{site}guards/", dark=dark)

    drawn = page.locator("figure.diagram svg").first
    size = drawn.bounding_box()
    assert size["width"] > 300
    assert size["height"] > 200
    assert drawn.locator("text", has_text="Guards").count() == 1
    text = lightness(page, "figure.diagram text", "fill")
    box = lightness(page, "figure.diagram .node rect", "fill")
    assert abs(text - box) > 100
    screenshot(page, f"site-guards-{'dark' if dark else 'light'}", full=False)


def test_what_is_copied_of_a_session_is_what_was_typed(site: str, open_page: Open) -> None:
    page = open_page(f"{site}quickstart/")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    session = page.locator("article .highlight", has_text="import sqlgym").first
    session.locator("[data-md-type='copy']").click()

    copied = page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[:2] == ["import gymnasium as gym", "import sqlgym"]
    assert not any(line.startswith(">>>") for line in copied)
    assert not any("highest and the lowest hut?" in line for line in copied)


@pytest.mark.parametrize(
    "place",
    [
        "integrations/",
        "trl/",
        "architecture/",
        "lab/",
        "changelog/",
        "api/adapters.trl/",
        "404.html",
    ],
)
def test_a_page_opens_without_an_error(site: str, open_page: Open, place: str) -> None:
    page = open_page(site + place)

    assert page.locator("h1").count() == 1
    assert page.locator(".md-nav a[href]").count() > 40
