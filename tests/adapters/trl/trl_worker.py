"""One process of a training by a script, started by `torchrun`; see `test_trl_processes`."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl.generation.vllm_generation import VLLMGeneration

from adapters.trl import StableGRPOTrainer
from tests.adapters.conftest import NOTES
from tests.adapters.trl.scripted_trl import call, scripted


def lively(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """In every group one rollout is right."""
    return [spoken(row, place % 4 == 0, place) for place, row in enumerate(inputs)]


def half_dead(batch: int, inputs: list[dict[str, Any]]) -> list[list[str]]:
    """In groups of odd notes none is right."""
    return [
        spoken(row, place % 4 == 0 and number(row) % 2 == 0, place)
        for place, row in enumerate(inputs)
    ]


def number(row: dict[str, Any]) -> int:
    return int(row["task_id"].rpartition("-")[2])


def spoken(row: dict[str, Any], is_right: bool, place: int) -> list[str]:
    """A rollout that depends on its task and its place in the group, and on nothing else."""
    said = [call("answer", value=10 + number(row) if is_right else 99)]
    return [call("count", text="a" * (place % 4))] * (place % 2) + said


class Server:
    """What TRL's client of a vLLM server says, here by a plan that is read off the prompt.

    In every group one rollout is right; of note k each counts k // 2 times before it answers.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.asked = tokenizer, list[int]()

    def generate(self, prompts: list[list[int]], n: int, **options: Any) -> dict[str, Any]:
        self.asked.append(len(prompts))
        texts = [self.tokenizer.decode(prompt) for prompt in prompts]
        said = [self.turn(text, copy) for text in texts for copy in range(n)]
        ids = [self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in said]
        told = [[[-1.0]] * len(turn) for turn in ids]
        return {"prompt_ids": prompts, "completion_ids": ids, "logprobs": told}

    def turn(self, text: str, copy: int) -> str:
        asked, _, since = text.rpartition("Which number is in note ")[2].partition("?")
        counted = since.count("<tool_response>")
        plan = re.search(r"plan (\d)", since)
        place = int(plan[1]) if plan else copy
        if "Answer recorded" in since:
            return "done<|im_end|>"
        if counted < int(asked) // 2:
            return call("count", text=f"plan {place}")
        return call("answer", value=99 if place else 10 + int(asked))


def serve(trainer: Any) -> Server:
    """Let the trainer generate as with a vLLM server, by TRL's own code up to the client."""
    server = Server(trainer.processing_class)
    neutral = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    generation = SimpleNamespace(
        **{name: getattr(trainer, name) for name in (*neutral, "max_completion_length")},
        mode="server",
        accelerator=trainer.accelerator,
        enable_sleep_mode=False,
        logprobs=0,
        structured_outputs_regex=None,
        generation_kwargs={},
        vllm_client=server,
        sync_weights=lambda: None,
    )
    generation.generate = lambda **options: VLLMGeneration.generate(generation, **options)
    trainer.use_vllm, trainer.vllm_mode, trainer._last_loaded_step = True, "server", -1
    trainer.vllm_importance_sampling_correction = False
    trainer.vllm_generation, trainer.batches = generation, 0
    return server


def main(folder: Path, out: Path, script: str, settings: dict[str, Any]) -> None:
    """Train, and leave weights and numbers of this process behind."""
    torch.set_num_threads(1)
    seen: list[dict[str, float]] = []
    by_server = {"trainer_class": StableGRPOTrainer} if script == "server" else {}
    trainer = scripted(
        AutoModelForCausalLM.from_pretrained(folder / "model"),
        AutoTokenizer.from_pretrained(folder / "model"),
        out / "run",
        globals().get(script),
        env_id=NOTES,
        settings=settings,
        on_metrics=lambda step, numbers: seen.append(numbers),
        **by_server,
    )
    server = serve(trainer) if script == "server" else None
    trainer.train()
    rank = trainer.accelerator.process_index
    weights = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    torch.save(weights, out / f"weights-{rank}.pt")
    told = {
        "world": trainer.accelerator.num_processes,
        "numbers": seen,
        "guards": trainer._guard_callback.guards.state_dict(),
        "sampling": trainer._sampling.state_dict() if trainer._sampling is not None else None,
        "batches": trainer.batches,
        "asked": server.asked if server is not None else [],
        "correct": [env._playing.episode.outcome.correct for env in trainer.environments],
        "turns": [len(env._playing.episode.turns) for env in trainer.environments],
    }
    (out / f"told-{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
