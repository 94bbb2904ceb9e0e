"""The documentation site: its pages fit a site, none is left out, and nothing broken is built."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tools.make_site import ROOT, build
from tools.site_api import PAGES, documented, public_names
from tools.site_links import broken_links
from tools.site_pages import page_of, site_files

REPOSITORY = "https://example.org/project"
CONFIG = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]


def fitted(text: str) -> str:
    """A page of `docs/` with this text, as the site has it."""
    file = ROOT / "docs" / "page.md"
    places = {
        file: "page.md",
        ROOT / "docs" / "rewards.md": "rewards.md",
        ROOT / "CONTRIBUTING.md": "contributing.md",
    }
    return page_of(text, file, places, ROOT, REPOSITORY)


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("[a](rewards.md#ten-episodes)", "[a](rewards.md#ten-episodes)"),
        ("[a](../CONTRIBUTING.md)", "[a](contributing.md)"),
        ("[a](../CONTRIBUTING.md#style)", "[a](contributing.md#style)"),
        ("[a](../examples)", f"[a]({REPOSITORY}/tree/main/examples)"),
        ("[a](../Makefile)", f"[a]({REPOSITORY}/blob/main/Makefile)"),
        ("[a](https://example.org/b)", "[a](https://example.org/b)"),
        ("[a](#here)", "[a](#here)"),
        (f"[a]({REPOSITORY}/blob/main/docs/rewards.md#law)", "[a](rewards.md#law)"),
        (f"[a]({REPOSITORY}/blob/main/Makefile)", f"[a]({REPOSITORY}/blob/main/Makefile)"),
        (f"[a]({REPOSITORY}/issues)", f"[a]({REPOSITORY}/issues)"),
    ],
)
def test_a_link_leads_to_the_page_or_to_the_repository(written, built):
    assert fitted(f"See {written}.\n") == f"See {built}.\n"


def test_a_link_to_no_file_is_refused_with_both_names():
    with pytest.raises(FileNotFoundError, match=r"docs/page\.md links to gone\.md"):
        fitted("[a](gone.md)")


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("```python train\nx = 1\n```\n", "```python\nx = 1\n```\n"),
        ("```python\n>>> 1\n1\n\n```\n", "```pycon\n>>> 1\n1\n\n```\n"),
        ("```text\n[a](gone.md)\n```\n", "```text\n[a](gone.md)\n```\n"),
        ("Run\n\n    toolgym envs\n\nthen.\n", "Run\n\n```sh\ntoolgym envs\n```\n\nthen.\n"),
        ("Is\n\n    a = [b]\n\n    c\n\nso.\n", "Is\n\n```text\na = [b]\n\nc\n```\n\nso.\n"),
        ("* one\n\n    more of one\n\nend\n", "* one\n\n    more of one\n\nend\n"),
    ],
)
def test_a_block_is_marked_by_its_language(written, built):
    assert fitted(written) == built


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("Adds.\n\n>>> 1\n1\n", "Adds.\n\n```pycon\n>>> 1\n1\n```\n"),
        (
            "One:\n\n>>> for n in ():\n...     n\n\n>>> 1\n1\n\nTwo:\n\n>>> 2\n2",
            "One:\n\n```pycon\n>>> for n in ():\n...     n\n\n>>> 1\n1\n```\n\nTwo:\n\n"
            "```pycon\n>>> 2\n2\n```\n",
        ),
        ("Nothing to run: `>>> 1`.\n", "Nothing to run: `>>> 1`.\n"),
    ],
)
def test_a_session_in_a_docstring_becomes_a_block(written, shown):
    fenced = pytest.importorskip("tools.site_docstrings", reason="needs the extra docs").fenced

    assert fenced(written) == shown


def in_nav(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from in_nav(value) if isinstance(value, list) else [value]


def test_every_page_stands_in_the_navigation_once():
    named = list(in_nav(CONFIG["nav"]))
    pages = {place for place, _ in site_files(ROOT, REPOSITORY) if place.endswith(".md")}

    assert len(named) == len(set(named))
    assert set(named) == pages


def test_every_public_name_of_a_documented_package_has_its_place():
    for page, entries in PAGES.items():
        for package in [entry for entry in entries if (ROOT / entry.replace(".", "/")).is_dir()]:
            names = {f"{package}.{name}" for name in public_names(package)}
            assert names <= set(documented(entries)), page


def test_a_package_without_a_list_of_its_public_names_is_refused():
    with pytest.raises(RuntimeError, match=r"adapters\.reference has no __all__"):
        public_names("adapters.reference")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<a href='b.html#there'>", None),
        ("<a href='https://example.org/site/b.html#there'>", None),
        ("<a href='https://other.org/x'>", None),
        ("<a href='c.html'>", "a.html: c.html is not there"),
        ("<a href='b.html#gone'>", "a.html: b.html#gone has no such anchor"),
        ("<img src='c.png'>", "a.html: c.png is not there"),
        ("<script src='https://other.org/x.js'>", "loads https://other.org/x.js from another"),
        ("<link rel='stylesheet' href='//other.org/x.css'>", "loads //other.org/x.css"),
    ],
)
def test_a_broken_link_of_a_built_page_is_told(body, told, tmp_path):
    (tmp_path / "a.html").write_text(body, "utf-8")
    (tmp_path / "b.html").write_text("<h2 id='there'>b</h2>", "utf-8")

    found = broken_links(tmp_path, "https://example.org/site/")

    assert len(found) == (told is not None)
    assert told is None or told in found[0]


class _Text(HTMLParser):
    """The text of a page outside of code, and how many elements of a kind it has."""

    def __init__(self) -> None:
        super().__init__()
        self.inside, self.text, self.tags = 0, "", ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside += tag in ("code", "script", "style", "pre")
        self.tags += f"<{tag} class={dict(attrs).get('class')}>"

    def handle_endtag(self, tag: str) -> None:
        self.inside -= tag in ("code", "script", "style", "pre")

    def handle_data(self, data: str) -> None:
        self.text += "" if self.inside else data


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical", reason="needs the extra docs")
    work = tmp_path_factory.mktemp("site")
    assert build(work) == []
    return work / "html"


@pytest.mark.slow
def test_the_strict_build_has_every_page_and_reads_all_of_its_markdown(site):
    for place in in_nav(CONFIG["nav"]):
        name = place.removesuffix(".md")
        page = site / ("" if name == "README" else name) / "index.html"
        read = _Text()
        read.feed(page.read_text("utf-8"))

        assert "```" not in read.text, place  # a block that was not understood
        assert ">>>" not in read.text, place  # a session that became a quotation
        assert not re.search(r"^ *(\||[*-] )", read.text, re.M), place  # a table or list that did


@pytest.mark.slow
def test_the_reference_documents_what_the_packages_export(site):
    for page, entries in PAGES.items():
        text = (site / "api" / page / "index.html").read_text("utf-8")
        for name in documented(entries):
            assert f'id="{name}"' in text, name


@pytest.mark.slow
def test_a_diagram_is_a_picture_and_needs_no_script(site):
    page = (site / "guards" / "index.html").read_text("utf-8")

    assert '<figure class="diagram"><svg' in page
    assert "outcomes differ?" in page


def made_with(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the command does with a checkout in which a line was added to a page."""
    root = folder / "root"
    for part in ("docs", "tools/site"):
        shutil.copytree(ROOT / part, root / part)
    for part in ("CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md", "zensical.toml"):
        shutil.copy(ROOT / part, root / part)
    for part in ("data", "examples"):
        (root / part).symlink_to(ROOT / part)
    with (root / "docs" / "installation.md").open("a", encoding="utf-8") as page:
        page.write(f"\n{line}\n")
    command = [sys.executable, ROOT / "tools" / "make_site.py"]
    options = ["--root", root, "--work", folder / "work"]
    return subprocess.run([*command, *options], capture_output=True, text=True, encoding="utf-8")


def test_a_link_to_a_picture_that_is_not_there_fails_the_command(tmp_path):
    pytest.importorskip("zensical", reason="needs the extra docs")
    ran = made_with("[a](figures/no-such.png)", tmp_path)

    assert ran.returncode == 1
    assert "docs/installation.md links to figures/no-such.png" in ran.stderr


@pytest.mark.slow
def test_a_link_to_a_heading_that_is_not_there_fails_the_command(tmp_path):
    pytest.importorskip("zensical", reason="needs the extra docs")
    ran = made_with("[a](rewards.md#no-such-heading)", tmp_path)

    assert ran.returncode == 1
    assert "anchor does not exist" in ran.stderr


def test_no_page_names_the_repository_which_one_setting_does():
    for page in (ROOT / "docs").glob("*.md"):
        assert CONFIG["repo_url"] not in page.read_text("utf-8"), page
