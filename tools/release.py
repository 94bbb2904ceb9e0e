"""Check that a release can be made, and write its notes.

    python tools/release.py v0.3.0                      # before the tag is created, and in CI
    python tools/release.py v0.3.0 --notes notes.md     # also write its section of the changelog

The version in pyproject.toml, CITATION.cff, CHANGELOG.md and the names of wheels in `docs/` must
equal the tag. Each disagreement is one line on stderr, and the exit status is then 1. The script
needs only the standard library.
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
    """Return the version in pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def sections(root: Path = ROOT) -> dict[str, tuple[str | None, str]]:
    """Return the date and the text of each version in the changelog, in its order."""
    text = _LINK.sub("", (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {
        head["version"]: (head["date"], text[head.end() : end].strip())
        for head, end in zip(heads, ends, strict=True)
    }


def disagreements(tag: str, root: Path = ROOT) -> list[str]:
    """Return a sentence for each change that is needed before this tag can be released."""
    version = version_of(root)
    found = (
        []
        if tag == f"v{version}"
        else [f"pyproject.toml has the version {version}, not that of the tag {tag}."]
    )
    changes = sections(root)
    date, text = changes.get(version, (None, ""))
    if date is None or not text:
        found.append(
            f"CHANGELOG.md has no dated section for it: add `## [{version}] - YYYY-MM-DD`."
        )
    if changes.get(UNRELEASED, (None, ""))[1]:
        found.append(f"CHANGELOG.md has lines under {UNRELEASED}: move them to {version}.")
    if [name for name in changes if name != UNRELEASED][:1] != [version]:
        found.append(f"CHANGELOG.md does not begin with version {version}.")
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
    """Print the disagreements, or write the notes; return the exit status."""
    parser = argparse.ArgumentParser(description="Check that a release can be made.")
    parser.add_argument("tag", help="tag of the release, such as v0.3.0")
    parser.add_argument("--notes", type=Path, help="file for its section of the changelog")
    options = parser.parse_args(arguments)
    found = disagreements(options.tag)
    for sentence in found:
        print(sentence, file=sys.stderr)
    if not found and options.notes:
        options.notes.write_text(sections()[version_of()][1] + "\n", encoding="utf-8")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
