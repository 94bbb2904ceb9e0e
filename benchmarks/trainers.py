"""Compares the speed of the reference trainer in this checkout and another one.

    python benchmarks/trainers.py --against ../toolgym-before
    python benchmarks/trainers.py --against PATH --model random --rounds 5 --json results.json

Each run is a separate process, with the packages of its checkout and the Python of its `.venv` if
there is one. Both train the same model on the same tasks with the same settings, without dynamic
sampling, so that both play the same number of rollouts. The first step of a run is a warm-up and is
not counted. A round is one run of each, in alternating order. Ratios are taken within a round, so
that other load on the machine affects both sides.

`tiny` is the tiny model after supervised training. `random` has the proportions of SmolLM2-135M
with a tenth of its layers and vocabulary, and random weights, so its rollouts run to the maximum
length.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
MEASURES = {
    "rollouts": "rollouts per second",
    "tokens": "sampled tokens per second",
    "steps": "steps per second",
    "rollouts_cpu": "rollouts per second of processor time",
    "steps_cpu": "steps per second of processor time",
}

_MODEL = """
import sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from adapters.tiny.model import build_model
from adapters.tiny.tokenizer import train_tokenizer
from adapters.training.models.demonstrations import demonstrate
from adapters.training.models.supervised import SftSettings, train_supervised
from adapters.training.models.tokenized_examples import examples_of
from toolgym import registration

folder, name = sys.argv[1:]
n = 300 if name == "tiny" else 30
transcripts = demonstrate("sqlgym/Explore-v0", n, dataset="tiny")
tokenizer = train_tokenizer(transcripts)
if name == "tiny":
    model = build_model(tokenizer, 0)
    tools = registration.make("sqlgym/Explore-v0", dataset="tiny").tool_schemas()
    examples = [e for each in transcripts for e in examples_of(each, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(120))
else:
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=4915,
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=3,
            num_attention_heads=9,
            num_key_value_heads=3,
            max_position_embeddings=8192,
            tie_word_embeddings=True,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
model.save_pretrained(folder)
tokenizer.save_pretrained(folder)
"""

_RUN = """
import json, logging, sys, tempfile, time
from pathlib import Path
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from adapters.training.settings import GrpoSettings
from adapters.reference.train import ReferenceTrainer

folder, given = sys.argv[1], json.loads(sys.argv[2])
torch.set_num_threads(given["threads"])
logging.disable(logging.WARNING)
model = AutoModelForCausalLM.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
settings = {
    **given["settings"],
    "max_draws": None,
    "learn_from_unfinished": True,
    "save_every": 10_000,
    "guards": {"only_warn": True},
}
seen = []

def on_step(step, metrics, episodes):
    seen.append((time.perf_counter(), time.process_time(), metrics))

played = []

class Timed(ReferenceTrainer):
    def sample(self):
        began, computed = time.perf_counter(), time.process_time()
        result = super().sample()
        played.append((time.perf_counter() - began, time.process_time() - computed))
        return result

Timed(
    model,
    tokenizer,
    "sqlgym/Explore-v0",
    Path(tempfile.mkdtemp()),
    GrpoSettings.model_validate(settings),
    env_kwargs={"dataset": "tiny"},
    on_step=on_step,
).train()
measured = [metrics for *_, metrics in seen[1:]]
rollouts = sum(m["rollouts"] for m in measured)
tokens = sum(m["rollouts"] * m["completion_length"] for m in measured)
seconds, computed = map(sum, zip(*played[1:]))
print(json.dumps({
    "rollouts": rollouts / seconds,
    "tokens": tokens / seconds,
    "rollouts_cpu": rollouts / computed,
    "steps": len(measured) / (seen[-1][0] - seen[0][0]),
    "steps_cpu": len(measured) / (seen[-1][1] - seen[0][1]),
    "completion_length": tokens / rollouts,
}))
"""


def run(checkout: Path, program: str, *words: str) -> str:
    """Run a program with the packages of a checkout, and return the last line of its output.

    Raises:
        RuntimeError: The program failed.
    """
    own = checkout / ".venv" / "bin" / "python"
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [str(own) if own.exists() else sys.executable, "-c", program, *words],
            capture_output=True,
            text=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(checkout), "TMPDIR": folder},
            check=False,
        )
    if done.returncode:
        raise RuntimeError(f"{checkout}: {done.stderr.strip()}")
    return (done.stdout.strip().splitlines() or [""])[-1]


def measure(options: argparse.Namespace) -> list[dict[str, dict[str, float]]]:
    """Measure both checkouts in each round, and return the results."""
    sides = {"this": HERE, "other": options.against.resolve()}
    settings: dict[str, Any] = {
        "steps": options.steps + 1,
        "prompts": options.prompts,
        "group_size": 8,
        "learning_rate": 1e-6,
    }
    if options.model == "random":
        settings["max_completion_length"] = 48
    given = json.dumps({"settings": settings, "threads": options.threads})
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        model = options.start or Path(folder)
        if options.start is None:
            run(HERE, _MODEL, folder, options.model)
        for number in range(options.rounds):
            order = list(sides) if number % 2 else list(reversed(sides))
            found = {side: json.loads(run(sides[side], _RUN, str(model), given)) for side in order}
            rounds.append(found)
            line = ", ".join(
                f"{side} {found[side]['rollouts']:.1f} rollouts/s and {found[side]['steps']:.3f}"
                f" steps/s ({found[side]['completion_length']:.0f} tokens a rollout)"
                for side in sides
            )
            print(f"round {number + 1}: {line}", file=sys.stderr, flush=True)
    return rounds


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--against", type=Path, required=True, help="folder of the other checkout")
    add("--model", choices=("tiny", "random"), default="tiny", help="see above (tiny)")
    add("--start", type=Path, help="folder of a model to use instead of --model")
    add("--rounds", type=int, default=4, help="runs of each checkout (default: 4)")
    add("--steps", type=int, default=8, help="measured steps per run (default: 8)")
    add("--prompts", type=int, default=4, help="groups of 8 rollouts per step (default: 4)")
    add("--threads", type=int, default=2, help="PyTorch threads (2)")
    add("--json", type=Path, metavar="FILE", help="file for the results of all rounds")
    options = parser.parse_args()
    rounds = measure(options)
    print(f"{options.model}, {options.threads} threads, load {os.getloadavg()[0]:.1f}")
    for name, title in MEASURES.items():
        ratios = [found["this"][name] / found["other"][name] for found in rounds]
        this, other = (
            statistics.median(found[side][name] for found in rounds) for side in ("this", "other")
        )
        print(
            f"{title:40}{this:9.3f} here{other:9.3f} there, ratio {statistics.median(ratios):.2f}"
            f" ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    if options.json is not None:
        options.json.write_text(json.dumps(rounds, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
