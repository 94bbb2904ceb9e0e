"""A run folder as training would write it, and what a browser sees of its page.

To look at pages made of it:
`python -c "import tests.toolgym.report.synthetic_run as s; print(s.example_pages('somewhere'))"`.
"""

import json
import math
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from toolgym.intervals import wilson_interval
from toolgym.report import write_report
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
    config = {
        "env_id": "sqlgym/Explore-v0",
        "dataset": "tiny",
        "model": "the tiny model (1.1 M parameters)",
        "trainer": "trl",
        "control": None if learns else "shuffled-rewards",
        "seed": seed,
        "grpo": {"learning_rate": 1e-3, "group": 8, "prompts": 8, "beta": 0.0, "steps": steps},
        "guards": {"entropy_floor": 0.1, "entropy_ceiling": 4.0, "baseline_steps": 10},
        "reproducibility": {**reproducibility(), "threads": 2},
    }
    run = Run.create(folder, config)
    for step in range(1, 151):
        loss = 0.12 + 3.1 * math.exp(-step / 22) + rng.gauss(0, 0.03)
        run.log_metrics({"phase": "warmup", "step": step, "loss": loss, "learning_rate": 2e-3})
    for step in range(1, steps + 1):
        run.log_metrics(grpo_numbers(rng, step, learns))
    ends = (0.125, 0.42 if learns else 0.13)
    evaluations = {
        phase: evaluation(run, rng, phase, share, played)
        for phase, share in zip(("before", "after"), ends, strict=True)
    }
    gain = "The model became more reliable at what it could do before; it learnt no new skill."
    run.write_summary(
        {
            "env_id": config["env_id"],
            "trainer": "trl",
            "model": config["model"],
            "seconds": 402.4,
            **evaluations,
            "gain": gain if learns else "No gain, as it must be without a signal.",
            "control": config["control"],
            "status": "complete",
        }
    )
    return run


def grpo_numbers(rng: random.Random, step: int, learns: bool) -> dict[str, Any]:
    done = (1 - math.exp(-step / 25)) if learns else 0.0
    dead = max(0.0, 0.1 + 0.25 * done + rng.gauss(0, 0.06))
    acted = {12: 1, 13: 1, 31: 2, 44: 4} if learns else {}
    dropped = min(6, max(0, round(16 * dead)))
    return {
        "reward_max": min(1.0, 0.7 + 0.2 * done + rng.gauss(0, 0.05)),
        "drawn_groups": 8 + dropped,
        "dropped_groups": dropped,
        "surplus_groups": 0,
        "masked_groups": 0,
        "sampling_rounds": 2 if dropped > 3 else 1,
        "clip_low": max(0.0, 0.004 + rng.gauss(0, 0.001)),
        "clip_high": max(0.0, 0.002 + rng.gauss(0, 0.001)),
        "clip_dual": 0.0,
        "ratio": 1 + rng.gauss(0, 0.002),
        "learning_rate": 1e-3,
        "guard_severity": acted.get(step, 0),
        "skipped_updates": sum(when <= step and what > 1 for when, what in acted.items()),
        "roll_backs": sum(when <= step and what == 4 for when, what in acted.items()),
        "learning_rate_scale": 0.5 if learns and step >= 44 else 1.0,
        "faults": 0,
        "rollout_seconds": 3.1 - 0.5 * done + rng.gauss(0, 0.2),
        "update_seconds": 1.4 + rng.gauss(0, 0.1),
        "phase": "grpo",
        "step": step,
        "reward": 0.2 + 0.35 * done + rng.gauss(0, 0.04),
        "reward_std": 0.3 - 0.1 * done + rng.gauss(0, 0.02),
        "dead_groups": min(1.0, dead),
        "zero_variance_groups": min(1.0, dead * 0.4),
        "entropy": 0.42 - 0.2 * done + rng.gauss(0, 0.015),
        "kl": None if step == 1 else 0.04 * done * step / 20 + abs(rng.gauss(0, 0.004)),
        "grad_norm": 0.6 + rng.gauss(0, 0.12),
        "accuracy": min(1.0, max(0.0, 0.13 + 0.3 * done + rng.gauss(0, 0.05))),
        "answered": min(1.0, 0.93 + 0.05 * done + rng.gauss(0, 0.015)),
        "validity": min(1.0, 0.86 + 0.12 * done + rng.gauss(0, 0.015)),
        "repairs_per_call": max(0.0, 0.3 - 0.25 * done + rng.gauss(0, 0.03)),
        "tool_failures": max(0.0, 0.12 - 0.09 * done + rng.gauss(0, 0.02)),
        "completion_length": 118 - 20 * done + rng.gauss(0, 4),
    }


def evaluation(
    run: Run, rng: random.Random, phase: str, accuracy: float, played: int
) -> dict[str, Any]:
    right = [rng.random() < accuracy for _ in range(played)]
    records = [episode(number, phase, was_right) for number, was_right in enumerate(right)]
    run.log_rollouts(records)
    return {
        "accuracy": sum(right) / played,
        "interval": list(wilson_interval(sum(right), played)),
        "validity": 0.87 if phase == "before" else 0.975,
        "mean_score": sum(record["score"] for record in records) / played,
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


def example_pages(folder: str) -> list[Path]:
    """The pages of a run, of a run beside its control, and of an interrupted one, to look at."""
    run = synthetic_run(Path(folder) / "explore")
    control = synthetic_run(Path(folder) / "control", seed=1, learns=False)
    cut = Run.create(Path(folder) / "cut", {"env_id": "sqlgym/Explore-v0"})
    for step in range(1, 4):
        cut.log_metrics(grpo_numbers(random.Random(step), step, True))
    return [write_report(run), write_report([run, control]), write_report(cut)]


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
