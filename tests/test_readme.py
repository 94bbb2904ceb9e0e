"""The README runs as printed, its links lead somewhere, and it renders on a package page.

Its links are absolute, since a package page has no folder around it; the base of all of them is the
`Source` of `[project.urls]`.
"""

import ast
import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest

from toolgym import registration
from toolgym.calls import FORMATS
from tools.make_pictures import episode_svg

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.M | re.S)
SESSIONS = [block for block in BLOCKS if ">>>" in block]
SCRIPTS = [block for block in BLOCKS if ">>>" not in block]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
FILES = {f"{URLS['Source']}/blob/main/", f"{URLS['Source']}/tree/main/"}
IMAGES = URLS["Source"].replace("//github.com/", "//raw.githubusercontent.com/") + "/main/"
BADGES = re.findall(r"^\[!\[([^]]+)\]\((\S+)\)\]", TEXT, re.M)
LINKS = [
    link
    for link in re.findall(r"\]\(([^)\s]+)\)", TEXT)
    if link not in {image for _, image in BADGES}
]


@pytest.mark.parametrize("session", SESSIONS)
def test_a_session_prints_what_it_says(session):
    parsed = doctest.DocTestParser().get_doctest(session, {}, "README", str(README), 0)
    report: list[str] = []
    doctest.DocTestRunner().run(parsed, out=report.append)
    assert not report, "".join(report)


def imported(script: str) -> list[tuple[str, str]]:
    nodes = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.ImportFrom)]
    return [(node.module or "", alias.name) for node in nodes for alias in node.names]


@pytest.mark.torch
@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_training_script_imports_is_there(script):
    """It needs weights from a hub, so it is not run here; `examples/trl_grpo.py` is."""
    pytest.importorskip("trl")
    assert imported(script)
    for module, name in imported(script):
        assert hasattr(importlib.import_module(module), name), (module, name)


def headings(page: Path) -> set[str]:
    """The anchors of a page, as they are made of its headings."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("link", sorted({*LINKS}))
def test_every_link_is_absolute_and_what_is_ours_is_there(link):
    if link == URLS["Documentation"]:
        return
    if link.startswith(f"{URLS['Source']}/actions/workflows/"):
        assert (ROOT / ".github" / "workflows" / link.rpartition("/")[2]).is_file()
        return
    base = next((base for base in (*FILES, IMAGES) if link.startswith(base)), None)
    assert base, f"{link} begins neither with the Source of [project.urls] nor is it Documentation"
    path, _, anchor = link.removeprefix(base).partition("#")
    file = ROOT / path

    assert file.is_dir() if "/tree/" in base else file.is_file()
    assert not anchor or anchor in headings(file)
    assert (base == IMAGES) == (f"![{alt_text()}]({link})" in TEXT)


def alt_text() -> str:
    (found,) = set(re.findall(r"!\[([^]]+)\]", TEXT)) - {alt for alt, _ in BADGES}
    return found


def test_the_badges_say_what_the_project_file_says():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    kind = "Programming Language :: Python :: 3."
    versions = [each.rsplit(" ", 1)[1] for each in project["classifiers"] if kind in each]
    _, python, license_ = BADGES

    assert python[0] == f"Python {versions[0]} to {versions[-1]}"
    assert f"python-{versions[0]}%20to%20{versions[-1]}-" in python[1]
    assert license_[0] == f"License: {project['license']}"
    assert f"license-{project['license'].replace('-', '--')}-" in license_[1]


def test_the_picture_shows_the_episode_as_it_is_played_now():
    assert (ROOT / "docs/pictures/episode.svg").read_text(encoding="utf-8") == episode_svg()


def test_it_renders_as_a_package_page_does():
    markdown = pytest.importorskip("readme_renderer.markdown", reason="needs the extra dev")
    page = markdown.render(TEXT)

    assert page is not None
    assert all(f'src="{image}"' in page for image in page_images())
    assert page.count("<table>") == len(re.findall(r"^\|---", TEXT, re.M))
    assert {*re.findall(r'href="(?!#)([^"]+)"', page)} == {*LINKS} - page_images()
    assert "```" not in page
    assert "](" not in page


def page_images() -> set[str]:
    return {*re.findall(r"!\[[^]]+\]\(([^)]+)\)", TEXT)}


def test_the_number_of_call_formats_is_that_of_the_program():
    assert {*re.findall(r"(\d+) (?:call )?formats", TEXT)} == {str(len(FORMATS))}


def test_the_table_of_environments_names_all_that_come_with_the_package():
    ours = [
        each for each in registration.tool_env_ids() if each.startswith(("sqlgym/", "aflowgym/"))
    ]

    assert sorted(re.findall(r"^\| \[`([\w/-]+)`\]", TEXT, re.M)) == ours
