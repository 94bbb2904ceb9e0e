"""The fixture itself: it fails a test whose page has errors or asks another server."""

from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Trouble

pytestmark = pytest.mark.nightly


def page_of(folder: Path, body: str) -> Path:
    file = folder / "page.html"
    file.write_text(f"<!DOCTYPE html><title>t</title>{body}", "utf-8")
    return file


def test_a_page_is_opened_as_wide_and_as_dark_as_asked(tmp_path: Path, open_page: Any) -> None:
    file = page_of(tmp_path, "<p id=a>text</p>")

    page = open_page(f"{file}#a", width=390, dark=True)

    assert page.evaluate("[innerWidth, location.hash]") == [390, "#a"]
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")


def test_errors_and_foreign_requests_are_seen(tmp_path: Path, browser: Any) -> None:
    script = "console.error('one'); setTimeout(() => { throw new Error('two') })"
    file = page_of(tmp_path, f"<img src='http://127.0.0.1:9/x.png'><script>{script}</script>")
    trouble = Trouble()
    page = browser.new_page()
    trouble.watch(page, file.as_uri())

    page.goto(file.as_uri(), wait_until="load")
    page.wait_for_timeout(200)
    page.close()

    assert "one" in trouble.errors
    assert "two" in trouble.errors
    assert trouble.foreign == ["http://127.0.0.1:9/x.png"]
