"""Build the documentation site, or serve it during writing.

    python tools/make_site.py             # builds build/site/html; fails on a broken link or anchor
    python tools/make_site.py --serve     # serves http://localhost:8000, rebuilt after each change

The pages are prepared by `tools/site_pages.py`, built by Zensical with mkdocstrings in strict mode,
and checked as HTML by `tools/site_links.py`. The script requires the extra `docs`.
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
"""Seconds between two checks of the sources while the site is served."""


def settings(root: Path = ROOT) -> dict[str, str]:
    """Return the `[project]` settings of `zensical.toml`."""
    with (root / "zensical.toml").open("rb") as file:
        project: dict[str, str] = tomllib.load(file)["project"]
    return project


def prepare(work: Path, root: Path = ROOT) -> None:
    """Write the changed inputs of Zensical into a folder.

    Args:
        work: The folder. Pages that no longer exist are removed; other files are kept.
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
    """Return the command that runs Zensical with this interpreter."""
    return [sys.executable, "-m", "zensical", *arguments]


def environment() -> dict[str, str]:
    """Return environment variables with which packages are imported from this checkout."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def build(work: Path = WORK, root: Path = ROOT) -> list[str]:
    """Build the site into the folder `html` of a working folder.

    Args:
        work: The folder to work in.
        root: The checkout.

    Returns:
        Messages of the generator and of the link check; empty if there is no problem.

    Raises:
        FileNotFoundError: A page links to a missing file.
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
    # The generator reports an invalid docstring, but does not count it as a warning.
    unread = [line for line in printed.splitlines() if line.startswith("griffe: ")]
    return unread + broken_links(work / "html", settings(root)["site_url"])


def serve(work: Path = WORK, root: Path = ROOT) -> int:
    """Serve the site until interrupted, and return the exit status."""
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
    """Parse the command line, build or serve, and return the exit status."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument(
        "--serve", action="store_true", help="serve the site and rebuild it after changes"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="folder of the checkout")
    parser.add_argument("--work", type=Path, default=WORK, help="working folder")
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
        print("The site has the problems above.", file=sys.stderr)
        return 1
    print(f"The site is in {chosen.work / 'html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
