"""Write the verdicts of a run of the lab into docs/lab.md: first a few in short, then all of them.

    toolgym lab --full --out runs/lab --pictures runs/lab/figures
    python tools/make_lab_tables.py runs/lab

The tables stand between two pairs of marks. Experiments stand in the order of the catalogue, their
predictions in the order in which they were written down, and below them their first figures, which
are copied into docs/figures. The page is not generated otherwise, and says itself what the verdicts
mean.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adapters.lab.catalogue import MODULES

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
SHORT_BEGIN, SHORT_END = "<!-- short: begin -->", "<!-- short: end -->"
FIGURES = "figures"
"""The folder of the pictures, in that of the run and beside docs/lab.md."""
SHOWN = 2
"""Figures of one experiment; `report.html` has all."""
Results = Mapping[str, Any]

SHORT = {
    "null-wall": {
        "wall_stays": "Calls with nulls, strict tools: no weight ever moves",
        "lenient_learns": "The same start, lenient tools: the score rises",
        "price_needs_a_choice": "If every call is padded, a price on repairs changes nothing",
    },
    "post-episode": {
        "order_lost": "Unbounded penalties after the end: a right answer falls below a wrong one",
        "order_kept": "Bounded ones: it never does, by the margin",
    },
    "group-size": {
        "p30_collapses": "Groups of two, three prompts, high rate: most trainings collapse",
        "guards_undo": "Guards undo it",
        "lower_rate_no_cure": "A rate ten times lower is no cure",
        "group_size_matters": "At equal rollouts it is the groups of two: with eight fewer do",
        "deviation_matters": "It is the division by the deviation",
    },
    "fallback": {
        "default_grows_prose": "Prose that is paid as a default workflow grows",
        "typical_default_ends_validity": "Paid as a typical workflow, it ends what is valid",
        "one_update_makes_prose": "One update on workflows that earn little makes prose likelier",
    },
    "advantage-collapse": {
        "hard_plain_rollouts": "On hard prompts dynamic sampling beats plain groups of 8",
        "hard_doubled_work": "It beats groups of 16, at equal work",
    },
}
"""The predictions that are told first: by experiment and name, the claim in the fewest words."""


def tables(results: Results) -> Iterator[str]:
    """The lines of one table for each experiment that was done, and of its figures."""
    for name in (each for each in MODULES if each in results):
        found = results[name]
        units = found["units"]
        yield f"### {found['title']}\n"
        yield f"`{name}`. **Claimed** (document {found['document']}): {found['claim']}\n"
        yield f"**Done:** {found['setting']}\n"
        yield f"**What prevents it:** {found['prevention']}\n"
        yield f"Size {found['scale']}, {units['done']:,} of {units['wanted']:,} units.\n"
        yield "| prediction | verdict | numbers |"
        yield "|---|---|---|"
        for each in found["predictions"]:
            yield _row(each["claim"], each["verdict"], each["sentence"])
        yield ""
        for figure in found["figures"][:SHOWN]:
            yield f"![{figure['title']}]({FIGURES}/{figure['name']}.png)\n{figure['note']}\n"


def short(results: Results) -> Iterator[str]:
    """The lines of the table of the few that most people ask for."""
    yield "| claimed | verdict | numbers |"
    yield "|---|---|---|"
    for name, wanted in SHORT.items():
        found = {each["name"]: each for each in results.get(name, {}).get("predictions", ())}
        for key, claim in wanted.items():
            if key in found:
                yield _row(claim, found[key]["verdict"], found[key]["sentence"])


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def filled(page: str, lines: Iterator[str], begin: str = BEGIN, end: str = END) -> str:
    """The page with these lines between two of its marks.

    Raises:
        ValueError: It does not have them.
    """
    before, begun, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(f"the page has no {begin} and {end}: put them where the tables belong.")
    body = "\n".join(lines).rstrip("\n")
    return f"{before}{begin}\n{body}\n{end}{after}"


def write(run: Path) -> None:
    """Fill the page from the folder of a run, and copy the pictures that it shows."""
    results = json.loads((run / "results.json").read_text(encoding="utf-8"))
    page = ROOT / "docs" / "lab.md"
    text = filled(page.read_text(encoding="utf-8"), short(results), SHORT_BEGIN, SHORT_END)
    page.write_text(filled(text, tables(results)), encoding="utf-8")
    for former in (ROOT / "docs" / FIGURES).glob("*.png"):
        former.unlink()
    for found in results.values():
        for figure in found["figures"][:SHOWN]:
            file = Path(FIGURES) / f"{figure['name']}.png"
            shutil.copyfile(run / file, ROOT / "docs" / file)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
