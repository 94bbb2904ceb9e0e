"""Prepares the pages of the documentation for the site generator.

The pages under `docs/`, and those in `ELSEWHERE`, are written for a code host. Their copies for the
site differ in three ways:

* Links to other pages lead to the site, and links to other files lead to the repository.
* Code blocks are marked only by their language, without the mark of the tests (`python train`).
* Indented blocks become fenced blocks, with the language `sh` if they begin with a command.
"""

import os
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

from tools.site_api import api_pages

ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "data/sql/README.md": "data-card.md",
}
"""Files outside of `docs/` that are pages of the site, with their names there."""
LINK = re.compile(r"(?<=\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
INDENTED = re.compile(r"(?<=\n\n)(?P<block>(?: {4}.*\n)(?:(?: {4}.*)?\n)*)", re.M)
COMMANDS = (
    "curl",
    "git",
    "inspect",
    "make",
    "pip",
    "python",
    "ray",
    "toolgym",
    "torchrun",
    "uv",
    "vf-eval",
)
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[^\S\n]*$", re.M | re.S
)


def site_files(root: Path, repository: str) -> Iterator[tuple[str, bytes]]:
    """Return every input file of the generator, by its path.

    Args:
        root: The checkout.
        repository: Address of the repository, for links to files that are not pages.

    Raises:
        FileNotFoundError: A page links to a missing file; the message names both.
    """
    docs = root / "docs"
    # Markdown in a subfolder is part of another page.
    sources = [file for file in _files(docs) if file.suffix != ".md" or file.parent == docs]
    places = {file: file.relative_to(docs).as_posix() for file in sources}
    places |= {root / file: place for file, place in ELSEWHERE.items()}
    for file, place in places.items():
        if file.suffix == ".md":
            text = file.read_text(encoding="utf-8")
            yield place, page_of(text, file, places, root, repository).encode()
        else:
            yield place, file.read_bytes()
    for file in _files(root / "tools" / "site" / "assets"):
        yield f"assets/{file.name}", file.read_bytes()
    for place, text in api_pages().items():
        yield place, text.encode()


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def page_of(text: str, file: Path, places: dict[Path, str], root: Path, repository: str) -> str:
    """Return the text of a page for the generator.

    Args:
        text: Text of the file.
        file: Path of the file, from which its links start.
        places: Files that are pages or pictures of the site, with their paths there.
        root: The checkout.
        repository: Address of the repository.

    Raises:
        FileNotFoundError: A link leads to a missing file.
    """

    own = f"{repository}/blob/main/"

    def led(found: re.Match[str]) -> str:
        target, anchor = found["target"], found["anchor"] or ""
        if target.startswith(own):
            meant = root / target.removeprefix(own)
        elif re.match(r"[a-z]+:", target):
            return found[0]
        else:
            meant = Path(os.path.normpath(file.parent / target))
        if meant in places:
            here = Path(places[file]).parent
            return Path(os.path.relpath(places[meant], here)).as_posix() + anchor
        if not meant.exists():
            raise FileNotFoundError(
                f"{file.relative_to(root)} links to {target}, which does not exist."
            )
        kind = "tree" if meant.is_dir() else "blob"
        return f"{repository}/{kind}/main/{meant.relative_to(root).as_posix()}{anchor}"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], led), _block(fence)]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], led)])


def _prose(text: str, led: Callable[[re.Match[str]], str]) -> str:
    """Convert the links and the indented blocks of text between code blocks."""
    parts, end = [], 0
    for found in INDENTED.finditer(text):
        before = text[end : found.start()]
        if re.match(r"\s|[*+-] |\d+\. ", before.rstrip().rpartition("\n")[2]):
            continue  # a second paragraph of a list item
        code = textwrap.dedent(found["block"]).strip("\n")
        language = "sh" if code.split()[0] in COMMANDS else "text"
        parts += [LINK.sub(led, before), f"```{language}\n{code}\n```\n\n"]
        end = found.end()
    return "".join([*parts, LINK.sub(led, text[end:])])


def _block(fence: re.Match[str]) -> str:
    """Return a code block that is marked only by its language."""
    language = fence["info"].split(" ")[0]
    if language == "python" and re.search(r"^ *>>> ", fence["body"], re.M):
        language = "pycon"
    indent = fence["indent"]
    return f"{indent}```{language}\n{fence['body']}{indent}```"
