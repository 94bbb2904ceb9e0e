"""Draw the pictures of the README and of the page about the tiny model.

    python tools/make_pictures.py                     # the episode
    python tools/make_pictures.py runs/s* runs/c*     # and the curves of these runs

`docs/pictures/episode.svg` shows an episode that is played by this script. `tiny-model.svg` shows
the accuracy of runs of `toolgym train`, step by step; `tiny-model.json` keeps these numbers.
"""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
from rich.console import Console
from rich.text import Text

import sqlgym  # noqa: F401 -- registers the environments
from toolgym.runs import Run

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WINDOW = 5
"""Steps of the moving mean of the curves."""
TASK = "mountain_huts-039"
CALLS = (
    '<tool_call>{"name": "describe", "arguments": {"table": "huts", "limit": null}}</tool_call>',
    'query(sql="SELECT max(altitude) - min(altitude) FROM huts")',
    'query(sql="SELECT max(altitude_m) - min(altitude_m) FROM huts")',
    "answer(value=1539)",
)
"""The messages of the agent: one that is repaired, one that fails, its correction, the answer."""


def episode_svg() -> str:
    """Play the episode and return it as SVG."""
    env = gym.make("sqlgym/Explore-v0")
    observation, _ = env.reset(options={"task_id": TASK})
    console = Console(record=True, width=112, file=io.StringIO(), force_terminal=True)

    def show(label: str, text: str, style: str) -> None:
        line = Text(f"{label:>8}  ", style="#9e9e9e")
        lines = text.splitlines()
        lines = lines if len(lines) < 7 else [*lines[:5], "..."]
        console.print(line + Text(("\n" + " " * 10).join(lines), style=style))

    show("question", observation, "white")
    for number, call in enumerate(CALLS, 1):
        observation, reward, _, _, info = env.step(call)
        console.print()
        show("model", call, "bold #7fdbca")
        if number == 1:
            show("repaired", ", ".join(info["repairs"]), "#ffd54f")
        show("toolgym", observation, "#ff8a80" if info["error"] else "white")
        show("reward", f"{reward:+.3f}", "#9e9e9e")
    console.print()
    verdict = "correct" if info["correct"] else "incorrect"
    show("end", f"{verdict}, score {info['score']:.3f}", "bold #a5d6a7")
    svg = console.export_svg(title="sqlgym/Explore-v0", unique_id="episode")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)  # loads nothing from other hosts


def curves(runs: list[Run]) -> list[dict[str, Any]]:
    """Return one row for each step and run: its moving mean of the accuracy of rollouts."""
    rows = []
    for run in runs:
        control = run.config["control"]
        steps = list(run.metrics("grpo"))
        for end in range(WINDOW, len(steps) + 1):
            window = steps[end - WINDOW : end]
            correct = sum(step["accuracy"] * step["rollouts"] for step in window)
            rows.append(
                {
                    "step": window[-1]["step"],
                    "accuracy": round(correct / sum(step["rollouts"] for step in window), 4),
                    "seed": run.config["settings"]["seed"],
                    "rewards": "shuffled" if control else "true",
                }
            )
    return rows


def curves_svg(rows: list[dict[str, Any]]) -> str:
    """Draw the curves with Vega-Lite and return them as SVG."""
    import vl_convert

    spec = {
        "background": "white",
        "data": {"values": rows},
        "width": 620,
        "height": 280,
        "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.8},
        "encoding": {
            "x": {"field": "step", "type": "quantitative", "title": "step of GRPO"},
            "y": {
                "field": "accuracy",
                "type": "quantitative",
                "title": f"correct rollouts, mean of {WINDOW} steps",
                "axis": {"format": "%"},
                "scale": {"domain": [0, 1]},
            },
            "detail": {"field": "seed"},
            "color": {
                "field": "rewards",
                "scale": {"domain": ["true", "shuffled"], "range": ["#00796b", "#b0b0b0"]},
            },
        },
    }
    svg: str = vl_convert.vegalite_to_svg(spec)
    return svg


def main(folders: list[str]) -> None:
    """Write the pictures; the curves only from the folders of runs that are given."""
    (PICTURES / "episode.svg").write_text(episode_svg(), encoding="utf-8")
    if folders:
        rows = curves([Run.open(folder) for folder in folders])
        text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
        (PICTURES / "tiny-model.json").write_text(text, encoding="utf-8")
        (PICTURES / "tiny-model.svg").write_text(curves_svg(rows), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
