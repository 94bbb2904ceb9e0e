"""Build the documentation site, or show it while it is written.

    python tools/make_site.py             # into build/site/html; fails on a broken link or anchor
    python tools/make_site.py --serve     # at http://localhost:8000, and again after each change

The pages are prepared (`tools/site_pages.py`), built by Zensical with mkdocstrings in its strict
mode, and checked once more as HTML (`tools/site_links.py`). It needs the extra `docs`.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tools.site_links import broken_links
from tools.site_pages import site_files

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "site"
LOOK_EVERY = 1.0
"""Seconds between two looks at the sources while the site is shown."""


def settings(root: Path = ROOT) -> dict[str, str]:
    """The settings of the site that more than Zensical reads, from `zensical.toml`."""
    with (root / "zensical.toml").open("rb") as file:
        project: dict[str, str] = tomllib.load(file)["project"]
    return project


def prepare(work: Path, root: Path = ROOT) -> None:
    """Write what Zensical reads into a folder, where it differs from what is there.

    Args:
        work: The folder; what it holds besides is left alone, but for pages that are gone.
        root: The checkout.
    """
    wanted = {
        f"pages/{place}": data for place, data in site_files(root, settings(root)["repo_url"])
    }
    wanted["zensical.toml"] = (root / "zensical.toml").read_bytes()
    theme = root / "tools" / "site" / "theme"
    for file in theme.rglob("*.html"):
        wanted[f"theme/{file.relative_to(theme).as_posix()}"] = file.read_bytes()
    for old in (work / "pages").rglob("*"):
        if old.is_file() and old.relative_to(work).as_posix() not in wanted:
            old.unlink()
    for place, data in wanted.items():
        file = work / place
        if not file.is_file() or file.read_bytes() != data:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def command(*arguments: str) -> list[str]:
    """How Zensical is run by this interpreter."""
    return [sys.executable, "-m", "zensical", *arguments]


def environment() -> dict[str, str]:
    """The environment that it runs in: packages and drawings come from this checkout."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def build(work: Path = WORK, root: Path = ROOT) -> list[str]:
    """Build the site into the folder `html` of a working folder, and say what is wrong with it.

    Args:
        work: The folder to work in.
        root: The checkout.

    Returns:
        What has to be mended, in the words of those who found it; empty if nothing is.

    Raises:
        FileNotFoundError: A page links to a file that is not there.
    """
    prepare(work, root)
    shutil.rmtree(work / "html", ignore_errors=True)
    ran = subprocess.run(
        command("build", "--clean", "--strict"),
        cwd=work,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )
    printed = re.sub(r"\x1b\[[\d;]*m", "", ran.stdout)
    if ran.returncode:
        told, _, trace = printed.partition("Traceback (most recent call last)")
        return [told if "--strict flag is set" in trace else printed]
    # A docstring that cannot be read is told, but is no warning to the generator.
    unread = [line for line in printed.splitlines() if line.startswith("griffe: ")]
    return unread + broken_links(work / "html", settings(root)["site_url"])


def serve(work: Path = WORK, root: Path = ROOT) -> int:
    """Show the site at a local address until interrupted; return the exit status."""
    prepare(work, root)
    over = threading.Event()

    def follow() -> None:
        while not over.wait(LOOK_EVERY):
            try:
                prepare(work, root)
            except FileNotFoundError as error:
                print(error, file=sys.stderr)

    threading.Thread(target=follow, daemon=True).start()
    try:
        return subprocess.run(command("serve"), cwd=work, env=environment()).returncode
    except KeyboardInterrupt:
        return 130
    finally:
        over.set()


def main() -> int:
    """Read the command line; return the exit status."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--serve", action="store_true", help="show it at a local address")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout with the pages")
    parser.add_argument("--work", type=Path, default=WORK, help="the folder to work in")
    chosen = parser.parse_args()
    try:
        if chosen.serve:
            return serve(chosen.work, chosen.root)
        wrong = build(chosen.work, chosen.root)
    except FileNotFoundError as error:
        wrong = [str(error)]
    for line in wrong:
        print(line, file=sys.stderr)
    if wrong:
        print("The site is not as it should be; see above.", file=sys.stderr)
        return 1
    print(f"The site is in {chosen.work / 'html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
