"""A page in headless Chromium, for tests of what a reader sees and does.

`open_page` opens a file or an address in the distribution's browser. A test fails, whatever else it
asserts, where the page wrote an error to the console, threw one, or asked any other server for
anything. Playwright drives the browser because its calls wait for the page by themselves, it sees
requests and console without an extension, it prints to PDF, and it works with a browser that it did
not download. Without browser or library the tests are skipped and say which is missing.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
SCREENSHOTS = "TOOLGYM_SCREENSHOTS"
HEIGHT = 900
WAIT_MS = 20_000
"""How long any one step may take; a slow machine is no failure, a page that hangs is."""


@dataclass
class Trouble:
    """What went wrong on the pages of a test.

    Attributes:
        errors: Messages of the console and of uncaught exceptions.
        foreign: Addresses that were asked for and are not of the page's own server.
    """

    errors: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def watch(self, page: Any, address: str) -> None:
        """Record what happens on a page from now on."""
        home = urlsplit(address)

        def asked(request: Any) -> None:
            target = urlsplit(request.url)
            if target.scheme in ("data", "blob", "about"):
                return
            if (target.scheme, target.netloc) != (home.scheme, home.netloc):
                self.foreign.append(request.url)

        page.on("request", asked)
        page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, one for all tests of a process."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    executable = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if executable is None:
        pytest.skip(f"No browser: none of {', '.join(BROWSERS)} is on the PATH")
    with playwright.sync_playwright() as driver:
        # Chromium refuses to run its sandbox as root, as in a container.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        launched = driver.chromium.launch(executable_path=executable, args=arguments)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page: `open_page(url_or_path, width=1280, dark=False)` returns Playwright's `Page`.

    Each call has a context of its own, so nothing is remembered from one page to the next.
    """
    trouble, contexts = Trouble(), []

    def opened(url_or_path: str | Path, *, width: int = 1280, dark: bool = False) -> Any:
        address = str(url_or_path)
        if "://" not in address:
            file, _, fragment = address.partition("#")
            address = Path(file).resolve().as_uri() + (f"#{fragment}" if fragment else "")
        context = browser.new_context(
            viewport={"width": width, "height": HEIGHT},
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        trouble.watch(page, address)
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert trouble.errors == []
    assert trouble.foreign == []


@pytest.fixture
def screenshot() -> Callable[..., None]:
    """Save a picture: `screenshot(page, "report-dark")`, where the environment names a folder."""
    folder = os.environ.get(SCREENSHOTS)

    def save(page: Any, name: str, *, full: bool = True) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(folder) / f"{name}.png", full_page=full)

    return save
