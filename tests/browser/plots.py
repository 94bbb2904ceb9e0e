"""Plots on a page of a browser: whether they are drawn, and over which steps.

Importing this skips a module of tests where Playwright is not installed.
"""

from typing import Any

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
sync_api.expect.set_options(timeout=20_000)


def all_drawn(page: Any) -> Any:
    """The page, once each of its plots is drawn."""
    sync_api.expect(page.locator(".plot:visible:not(:has(svg))")).to_have_count(0)
    return page


def steps_of(page: Any, plot: str) -> list[int]:
    """The numbers along the horizontal axis of a plot."""
    axis = page.locator(f"#{plot} .role-axis", has_text="step").locator(".role-axis-label text")
    return [int(text) for text in axis.all_text_contents() if text.isdecimal()]


def has_steps(page: Any, plot: str, low: int, high: int) -> None:
    """Wait until the axis of a plot goes over these steps, its numbers between its ends."""
    for _ in range(200):
        steps = steps_of(page, plot) or [-1]
        step = steps[1] - steps[0] if len(steps) > 1 else 1
        if low <= min(steps) < low + step and high - step < max(steps) <= high:
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"{plot} shows {steps}, and not {low} to {high}")
