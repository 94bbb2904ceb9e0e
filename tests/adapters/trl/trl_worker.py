"""One process of a training by a script, started by `torchrun`; see `test_processes`."""

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import trl
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl.generation.vllm_generation import VLLMGeneration

from adapters.trl import GuardCallback, Rollouts
from tests.adapters.conftest import NOTES
from tests.adapters.trl.scripted_rollouts import ScriptedRollouts, trainer_of
from tests.adapters.trl.scripted_trl import call


def lively(task_id: str, member: int) -> list[str]:
    """In every group one rollout is right; some count before."""
    said = [call("answer", value=10 + number(task_id) if member == 0 else 99)]
    return [call("count", text="a" * member)] * (member % 2) + said


def half_dead(task_id: str, member: int) -> list[str]:
    """In groups of odd notes none is right."""
    return lively(task_id, member if number(task_id) % 2 == 0 else member + 1)


def number(task_id: str) -> int:
    return int(task_id.rpartition("-")[2])


class Server:
    """What TRL's client of a vLLM server says, here by a plan that is read off the prompt.

    Of note k, a rollout counts k // 2 times before it answers, and says each time which prompt it
    was of those that the server was first asked for. Every fourth of these is right.
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer, self.asked = tokenizer, list[int]()

    def generate(self, prompts: list[list[int]], n: int, **options: Any) -> dict[str, Any]:
        self.asked.append(len(prompts))
        texts = [self.tokenizer.decode(prompt) for prompt in prompts]
        said = [self.turn(text, place) for place, text in enumerate(texts)]
        ids = [self.tokenizer(text, add_special_tokens=False)["input_ids"] for text in said]
        told = [[[-1.0]] * len(turn) for turn in ids]
        return {"prompt_ids": prompts, "completion_ids": ids, "logprobs": told}

    def turn(self, text: str, place: int) -> str:
        asked, _, since = text.rpartition("Which number is in note ")[2].partition("?")
        if not asked.isdigit():  # a prompt that fills up
            return "nothing<|im_end|>"
        plan = re.search(r"plan (\d+)", since)
        place = int(plan[1]) if plan else place
        if since.count("<tool_response>") < int(asked) // 2:
            return call("count", text=f"plan {place}")
        return call("answer", value=99 if place % 4 else 10 + int(asked))


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
    trainer.vllm_generation = generation
    return server


class Watch(TrainerCallback):
    """Keeps the weights after each step, 0 for before the first, and breaks gradients.

    At some steps the gradient of the first weight in one process is nan, before it is shared.
    """

    def __init__(self, broken: list[int], rank: int) -> None:
        self.broken, self.rank = broken, rank
        self.weights: list[dict[str, torch.Tensor]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.on_step_end(args, state, control, **kwargs)

        def damage(gradient: torch.Tensor) -> torch.Tensor:
            is_due = state.global_step + 1 in self.broken and args.process_index == self.rank
            return gradient * torch.nan if is_due else gradient

        next(kwargs["model"].parameters()).register_hook(damage)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        named = kwargs["model"].named_parameters()
        self.weights.append({name: p.detach().clone() for name, p in named})


class Noted:
    """Rollouts, of which the tasks are noted that TRL asks for."""

    def __init__(self, rollouts: Rollouts) -> None:
        self.rollouts, self.asked, self.played = rollouts, list[list[str]](), list[dict[str, Any]]()

    def __call__(self, prompts: Any, trainer: Any) -> Any:
        self.asked.append(list(dict.fromkeys(prompt[-1]["content"] for prompt in prompts)))
        output = self.rollouts(prompts, trainer)
        self.played.append(
            {
                "metrics": self.rollouts.metrics,
                "scores": output["score"],
                "turns": [len(each.turns) for each in self.rollouts.episodes],
            }
        )
        return output


def main(folder: Path, out: Path, script: str, settings: dict[str, Any]) -> None:
    """Train, and leave weights and metrics of this process behind."""
    broken, max_draws = settings.pop("broken", []), settings.pop("max_draws", None)
    model = AutoModelForCausalLM.from_pretrained(folder / "model")
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    if script == "server":
        rollouts = Rollouts(NOTES, max_draws=max_draws)
    else:
        rollouts = ScriptedRollouts(globals()[script], NOTES, max_draws=max_draws)
    seen: list[dict[str, float]] = []
    trainer: Any = trainer_of(
        model,
        tokenizer,
        out / "run",
        rollouts,
        on_step=lambda step, metrics, episodes: seen.append(metrics),
        **settings,
    )
    trainer.rollout_func = noted = Noted(rollouts)
    watch = Watch(broken, 1)
    trainer.add_callback(watch)
    server = serve(trainer) if script == "server" else None
    trainer.train()
    rank = trainer.accelerator.process_index
    torch.save(watch.weights, out / f"weights-{rank}.pt")
    guard = next(
        each for each in trainer.callback_handler.callbacks if isinstance(each, GuardCallback)
    )
    told = {
        "trl": trl.__version__,
        "processes": trainer.accelerator.num_processes,
        "metrics": seen,
        "guards": guard.guards.state_dict(),
        "refills": rollouts.state_dict(),
        "tasks": noted.asked,
        "played": noted.played,
        "asked": server.asked if server is not None else [],
    }
    (out / f"told-{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
