"""A run folder as training would write it, and what a browser sees of its page."""

import json
import math
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from toolgym.intervals import wilson_interval
from toolgym.runs.run import Run, reproducibility

STEPS = 60
PLAYED = 192


def synthetic_run(
    folder: Path,
    *,
    seed: int = 0,
    learns: bool = True,
    steps: int = STEPS,
    played: int = PLAYED,
) -> Run:
    """A run whose numbers move as a tiny model's do; with `learns=False` as a control's do."""
    rng = random.Random(seed)
    control = None if learns else "shuffled-rewards"
    config = {
        "env_id": "sqlgym/Explore-v0",
        "dataset": "tiny",
        "model": "the tiny model",
        "trainer": "trl",
        "control": control,
        "seed": seed,
        "grpo": {"learning_rate": 1e-3, "group": 8, "steps": steps},
        "reproducibility": reproducibility(),
    }
    run = Run.create(folder, config)
    for step in range(1, 151):
        loss = 0.12 + 3.1 * math.exp(-step / 22) + rng.gauss(0, 0.03)
        run.log_metrics({"phase": "sft", "step": step, "loss": loss})
    for step in range(1, steps + 1):
        run.log_metrics(grpo_numbers(rng, step, learns))
    shares = {"before": 0.125, "after": 0.42 if learns else 0.13}
    evaluations = {
        phase: evaluation(run, rng, phase, share, played) for phase, share in shares.items()
    }
    about = {name: config[name] for name in ("env_id", "trainer", "model", "control")}
    gain = "The model learned no new skill."
    run.write_summary(
        {**about, **evaluations, "seconds": 402.4, "gain": gain, "status": "complete"}
    )
    return run


def grpo_numbers(rng: random.Random, step: int, learns: bool) -> dict[str, Any]:
    done = (1 - math.exp(-step / 25)) if learns else 0.0

    def near(value: float, spread: float) -> float:
        return max(0.0, value + rng.gauss(0, spread))

    return {
        "phase": "grpo",
        "step": step,
        "reward": near(0.2 + 0.35 * done, 0.04),
        "reward_std": near(0.3 - 0.1 * done, 0.02),
        "reward_max": near(0.7 + 0.2 * done, 0.05),
        "dead_groups": near(0.1 + 0.25 * done, 0.06),
        "entropy": near(0.42 - 0.2 * done, 0.015),
        "kl": None if step == 1 else near(0.04 * done * step / 20, 0.004),
        "grad_norm": near(0.6, 0.12),
        "accuracy": near(0.13 + 0.3 * done, 0.05),
        "answered": min(1.0, near(0.93 + 0.05 * done, 0.015)),
        "guard_severity": {12: 1, 31: 2, 44: 4}.get(step, 0) if learns else 0,
        "rollout_seconds": near(3.1 - 0.5 * done, 0.2),
    }


def evaluation(
    run: Run, rng: random.Random, phase: str, accuracy: float, played: int
) -> dict[str, Any]:
    right = [rng.random() < accuracy for _ in range(played)]
    run.log_rollouts(episode(number, phase, was_right) for number, was_right in enumerate(right))
    return {
        "accuracy": sum(right) / played,
        "interval": list(wilson_interval(sum(right), played)),
        "validity": 0.87 if phase == "before" else 0.975,
        "episodes": played,
    }


def episode(number: int, phase: str, right: bool, text: str = "") -> dict[str, Any]:
    """One record as `EpisodeRecord.to_json` makes it; `text` is put wherever a model could."""
    sql = f"SELECT count(*) FROM singer WHERE age > {20 + number}{text}"
    written = f'<tool_call>{{"name": "query", "arguments": {{"sqll": "{sql}", "limit": null}}}}'
    table = "name | age | country\n" + "\n".join(f"singer {i} | {i} | Norway" for i in range(30))
    turns = [
        turn(
            "describe", {"table_name": "singr"}, f"error[unknown_table]: no 'singr'.{text}", -0.03
        ),
        turn("sample", {"table_name": "singer"}, table + text, 0.07),
        turn("query", {"sql": sql}, f"count(*)\n{number}{text}", 0.2, written + text),
        turn("answer", {"value": number if right else text or 7}, "The episode is over.", 0.7),
    ]
    turns[0] |= {"errors": ["unknown_table"], "valid": False}
    turns[2]["repairs"] = ["renamed_key", "dropped_null"]
    answered = right or number % 9 > 0
    return {
        "phase": phase,
        "step": None,
        "env_id": "sqlgym/Explore-v0",
        "task_id": f"dev/concert/{number}{text}",
        "seed": number,
        "question": f"How many singers are older than {20 + number}?{text}",
        "turns": turns if answered else [*turns[:2], turn("", {}, f"No call.{text}", -0.02, "hm")],
        "score": 0.945 if right else 0.32,
        "correct": right,
        "scored": True,
        "answered": answered,
        "progress_bin": 10 if right else 4,
        "reward_parts": {"outcome": float(right), "progress": 0.0, "step": -0.03, "repeat": -0.025},
    }


def turn(
    name: str, arguments: dict[str, Any], observation: str, reward: float, action: str = ""
) -> dict[str, Any]:
    calls = [{"name": name, "arguments": arguments}] if name else []
    return {
        "action": action or (json.dumps(calls[0]) if calls else ""),
        "calls": calls,
        "observation": observation,
        "reward": reward,
        "repairs": [],
        "errors": [],
        "valid": bool(calls),
    }


class Page(HTMLParser):
    """What a browser would see: its text, its tags and attributes, and what was never closed."""

    VOID = ("meta", "br", "hr", "img", "input", "link")

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.scripts: list[str] = []
        self.source = file.read_text(encoding="utf-8")
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.open[-1:] != ["style"] and data.strip():
            self.text += " " + " ".join(data.split())

    @property
    def plots(self) -> dict[str, dict[str, Any]]:
        """The specifications of all plots by their titles."""
        titles = re.findall(r"<figcaption>(.*?)</figcaption>", self.source)
        return dict(zip(titles, json.loads(self.scripts[0]), strict=True))
