"""Draw the picture of the README: one question before and after a short training, and its curve.

    toolgym train sqlgym/Explore-v0 --seed 0 --out runs/first
    python tools/make_readme_picture.py runs/first      # keeps what the picture shows, and draws it
    python tools/make_readme_picture.py                 # draws it anew from what was kept

What is shown of a run stands in docs/pictures/first-training.json: the accuracy of every step, the
evaluations of unseen tasks before and after, and the first evaluated task that was answered wrongly
before and rightly after, with all that was written and observed. A test plays both episodes again.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from toolgym.runs import Run

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "pictures" / "first-training.json"
PICTURE = DATA.with_suffix(".svg")
TEMPLATE = "readme_picture.svg.j2"
SMOOTHED = 5
"""Steps of the moving mean: the one at which it is drawn, and those before it."""
LEFT, RIGHT, TOP, BOTTOM = 570, 812, 92, 318
"""The plot area, in the picture's units."""
WIDEST = 64
"""Characters of a line of an episode; what is longer is cut, and ends in an ellipsis."""
Record = Mapping[str, Any]


def kept(run: Run) -> dict[str, Any]:
    """What the picture shows of a run, as JSON.

    Raises:
        ValueError: The run did not end, or no question was answered rightly after it only.
    """
    if not run.summary.get("after"):
        raise ValueError(f"{run.path} has no evaluation after the training: let it end first.")
    settings = run.config["settings"]
    before = [record for record in run.rollouts() if record["phase"] == "before"]
    after = {record["task_id"]: record for record in run.rollouts() if record["phase"] == "after"}
    pairs = ((first, after[first["task_id"]]) for first in before if first["task_id"] in after)
    changed = next((p for p in pairs if p[1]["correct"] and not p[0]["correct"]), None)
    if changed is None:
        raise ValueError(f"{run.path} got no question right that it got wrong before.")
    evaluated = {each["name"]: each for each in run.summary["evaluations"]}
    return {
        "env_id": run.config["env_id"],
        "dataset": run.config["dataset"],
        "trainer": settings["trainer"],
        "seed": settings["seed"],
        "steps": [
            {key: step[key] for key in ("step", "accuracy", "rollouts")}
            for step in run.metrics("grpo")
        ],
        "evaluations": {
            name: {
                "tries": evaluated[name]["tries"],
                **{
                    when: {key: evaluated[name][when][key] for key in EVALUATED}
                    for when in ("before", "after")
                },
            }
            for name in ("unseen tasks", "unseen tasks, sampled")
        },
        "episodes": {
            when: {key: record[key] for key in ("task_id", "seed", "question", "correct", "score")}
            | {"turns": [{key: turn[key] for key in TURN} for turn in record["turns"]]}
            for when, record in zip(("before", "after"), changed, strict=True)
        },
    }


EVALUATED = ("accuracy", "interval", "episodes")
TURN = ("action", "calls", "observation")


def picture(data: Record) -> str:
    """The picture as SVG."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    steps = data["steps"]
    last = steps[-1]["step"]
    sampled = data["evaluations"]["unseen tasks, sampled"]
    return environment.get_template(TEMPLATE).render(
        question=data["episodes"]["before"]["question"].splitlines()[0],
        episodes=[_lines(data["episodes"][when], when) for when in ("before", "after")],
        plot={"left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        points=[(across(s["step"], last), up(s["accuracy"])) for s in steps],
        line=" ".join(f"{across(s, last)},{up(mean)}" for s, mean in moving_mean(steps)),
        marks=[(percent, up(percent / 100)) for percent in (0, 25, 50, 75, 100)],
        ticks=[(step, across(step, last)) for step in range(0, last + 1, 20)],
        held_out=[_measured(sampled[when], place) for when, place in _BESIDE],
        caption=_caption(data),
    )


_BESIDE = (("before", LEFT - 13), ("after", RIGHT + 17))
"""Where the evaluations stand: before the first step and after the last."""


def across(step: float, last: float) -> float:
    """Where a step stands in the picture, from its left."""
    return round(LEFT + (RIGHT - LEFT) * step / last, 1)


def up(share: float) -> float:
    """Where a share stands in the picture, from its top."""
    return round(BOTTOM - (BOTTOM - TOP) * share, 1)


def moving_mean(steps: Iterable[Record]) -> list[tuple[int, float]]:
    """The share of correct rollouts in each `SMOOTHED` steps, with the last of them."""
    seen: list[Record] = []
    found = []
    for step in steps:
        seen = [*seen[1 - SMOOTHED :], step]
        if len(seen) == SMOOTHED:
            correct = sum(each["accuracy"] * each["rollouts"] for each in seen)
            found.append((step["step"], correct / sum(each["rollouts"] for each in seen)))
    return found


def _measured(figures: Record, place: float) -> dict[str, float | str]:
    low, high = figures["interval"]
    shown = {"y": up(figures["accuracy"]), "low": up(low), "high": up(high)}
    return {"x": place, "label": f"{100 * figures['accuracy']:.0f} %", **shown}


def _lines(episode: Record, when: str) -> dict[str, Any]:
    """The calls of an episode as they would be written in Python, and what was observed."""
    lines = []
    for turn in episode["turns"]:
        for call in turn["calls"]:
            given = ", ".join(
                f'"{value}"' if isinstance(value, str) else json.dumps(value)
                for value in call["arguments"].values()
            )
            lines.append({"kind": "call", "text": f"{call['name']}({given})"})
        observed = "; ".join(turn["observation"].splitlines())
        lines.append({"kind": "observed", "text": observed})
    lines.pop()  # that the answer is recorded
    for line in lines:
        if len(line["text"]) > WIDEST:
            line["text"] = line["text"][: WIDEST - 1] + "…"
    verdict = f"{'right' if episode['correct'] else 'wrong'}, score {episode['score']:.2f}"
    title = f"{when.capitalize()} training"
    return {"title": title, "lines": lines, "correct": episode["correct"], "verdict": verdict}


def _caption(data: Record) -> list[str]:
    greedy, sampled = data["evaluations"].values()
    tasks = greedy["before"]["episodes"]
    return [
        f"toolgym train {data['env_id']} --seed {data['seed']}: the tiny model,"
        f" {len(data['steps'])} steps of GRPO ({data['trainer'].upper()}),"
        f" data set “{data['dataset']}”.",
        f"Squares: {tasks} unseen tasks of known databases, {sampled['tries']} tries each at"
        " temperature 1; bars are 95 % intervals.",
    ]


def main(arguments: list[str]) -> None:
    """Keep what the picture shows of a run, if one is named; then draw it."""
    DATA.parent.mkdir(exist_ok=True)
    if arguments:
        data = kept(Run.open(arguments[0]))
        DATA.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    data = json.loads(DATA.read_text(encoding="utf-8"))
    PICTURE.write_text(picture(data), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
