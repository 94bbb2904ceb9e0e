"""Check that a release can be made, and write its notes.

    python tools/release.py v0.2.0                      # before the tag is set, and in the workflow
    python tools/release.py v0.2.0 --notes notes.md     # and write what the changelog says of it

The version stands in pyproject.toml, CITATION.cff, CHANGELOG.md and wherever a page names a wheel;
the tag has to be the same. It needs no package but Python. Exit status 1, and a line for each
disagreement, where something does not fit.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNRELEASED = "Unreleased"
_HEAD = re.compile(r"^## \[(?P<version>[^]\n]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.M)
_LINK = re.compile(r"^\[[^]\n]+\]: \S+$", re.M)


def version_of(root: Path = ROOT) -> str:
    """The version in pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def sections(root: Path = ROOT) -> dict[str, tuple[str | None, str]]:
    """Date and text of each version in the changelog, in its order, without the links below."""
    text = _LINK.sub("", (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head["version"]: (head["date"], text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    }


def disagreements(tag: str, root: Path = ROOT) -> list[str]:
    """What has to be changed before this tag can be released, a sentence each."""
    version = version_of(root)
    found = (
        []
        if tag == f"v{version}"
        else [f"pyproject.toml says {version}: the tag {tag} is no v{version}."]
    )
    told = sections(root)
    date, text = told.get(version, (None, ""))
    if date is None or not text:
        found.append(f"CHANGELOG.md has no dated text for it: add `## [{version}] - YYYY-MM-DD`.")
    if told.get(UNRELEASED, (None, ""))[1]:
        found.append(f"CHANGELOG.md has lines under {UNRELEASED}: move them to {version}.")
    if [name for name in told if name != UNRELEASED][:1] != [version]:
        found.append(f"CHANGELOG.md has another version than {version} on top.")
    citation = (root / "CITATION.cff").read_text(encoding="utf-8")
    for key, wanted in (("version", version), ("date-released", date)):
        cited = re.search(rf'^{key}: "?([^"\n]*)"?$', citation, re.M)
        if cited is None or cited[1] != wanted:
            found.append(f"CITATION.cff needs the line {key}: {wanted}")
    for page in sorted((root / "docs").rglob("*.md")):
        for named in re.findall(r"toolgym-(\d[\w.]*?)-py3", page.read_text(encoding="utf-8")):
            if named != version:
                found.append(
                    f"{page.relative_to(root)} names a wheel of {named}, not of {version}."
                )
    return found


def main(arguments: list[str]) -> int:
    """Say what does not fit, or write the notes."""
    parser = argparse.ArgumentParser(description="Check that a release can be made.")
    parser.add_argument("tag", help="such as v0.2.0")
    parser.add_argument("--notes", type=Path, help="file for what the changelog says of it")
    options = parser.parse_args(arguments)
    found = disagreements(options.tag)
    for sentence in found:
        print(sentence, file=sys.stderr)
    if not found and options.notes:
        options.notes.write_text(sections()[version_of()][1] + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
