"""The pages of the documentation as the site generator reads them.

The files under `docs/` are written for a code host: they link to files of the repository, and mark
a block by how it is tested (`python train`). This copies them, and those files elsewhere that are
pages of the site too, with three changes. A link to a file that is a page leads to that page, and
one to any other file leads to the repository. A block is marked by its language alone, with `pycon`
for one that shows what is printed. And text that is set in becomes a block, `sh` where it begins
with a command.
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
"""Files outside `docs/` that are pages of the site, and by which name."""
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
    """Every file that the generator reads, by its path among the pages.

    Args:
        root: The checkout.
        repository: The address of the repository, for links to files that are no pages.

    Raises:
        FileNotFoundError: A page links to a file that is not there; the message names both.
    """
    docs = root / "docs"
    # Markdown in a folder of its own is a part of some page, which a generator puts there.
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
    """A page as the generator reads it.

    Args:
        text: What the file holds.
        file: Where it lies, which its links start from.
        places: The files that are pages or pictures of the site, with their paths there.
        root: The checkout.
        repository: The address of the repository.

    Raises:
        FileNotFoundError: A link leads to a file that is not there.
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
                f"{file.relative_to(root)} links to {target}, which is not there."
            )
        kind = "tree" if meant.is_dir() else "blob"
        return f"{repository}/{kind}/main/{meant.relative_to(root).as_posix()}{anchor}"

    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts += [_prose(text[end : fence.start()], led), _block(fence)]
        end = fence.end()
    return "".join([*parts, _prose(text[end:], led)])


def _prose(text: str, led: Callable[[re.Match[str]], str]) -> str:
    """What stands between blocks, with its links led and its indented text as blocks."""
    parts, end = [], 0
    for found in INDENTED.finditer(text):
        before = text[end : found.start()]
        if re.match(r"\s|[*+-] |\d+\. ", before.rstrip().rpartition("\n")[2]):
            continue  # the second paragraph of an entry of a list
        code = textwrap.dedent(found["block"]).strip("\n")
        language = "sh" if code.split()[0] in COMMANDS else "text"
        parts += [LINK.sub(led, before), f"```{language}\n{code}\n```\n\n"]
        end = found.end()
    return "".join([*parts, LINK.sub(led, text[end:])])


def _block(fence: re.Match[str]) -> str:
    """A block of code, marked by its language alone."""
    language = fence["info"].split(" ")[0]
    if language == "python" and re.search(r"^ *>>> ", fence["body"], re.M):
        language = "pycon"
    indent = fence["indent"]
    return f"{indent}```{language}\n{fence['body']}{indent}```"
