"""One process of a training by a script, started by `torchrun`; see `test_processes`."""

import json
import re
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import trl
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl.generation.vllm_generation import VLLMGeneration

from adapters.trl import Rollouts
from tests.adapters.conftest import NOTES
from tests.adapters.trl.scripted_rollouts import Speaker, answers, one_right, scripted_trainer
from tests.adapters.trl.scripted_trl import call


def lively(speaker: Speaker) -> list[str]:
    """In every group one rollout is right; every other one counts before."""
    counts = [call("count", text="a" * speaker.member)] * (speaker.member % 2)
    return [*counts, *one_right(speaker)]


def half_dead(speaker: Speaker) -> list[str]:
    """In groups of odd notes none is right."""
    return lively(speaker) if speaker.number % 2 == 0 else answers(99)


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


class Damage(TrainerCallback):
    """At some steps the gradient of the first weight in one process is nan, before it is shared."""

    def __init__(self, steps: list[int], rank: int) -> None:
        self.steps, self.rank = steps, rank

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        def damage(gradient: torch.Tensor) -> torch.Tensor:
            is_due = state.global_step + 1 in self.steps and args.process_index == self.rank
            return gradient * torch.nan if is_due else gradient

        next(kwargs["model"].parameters()).register_hook(damage)


def main(folder: Path, out: Path, script: str, options: dict[str, Any]) -> None:
    """Train, and leave weights after each step and metrics of this process behind."""
    broken = options.pop("broken", [])
    trainer = scripted_trainer(
        AutoModelForCausalLM.from_pretrained(folder / "model"),
        AutoTokenizer.from_pretrained(folder / "model"),
        out / "run",
        globals().get(script),
        env_id=NOTES,
        **options,
    )
    trainer.add_callback(Damage(broken, rank=1))
    server, played = None, list[dict[str, Any]]()
    if script == "server":
        server = serve(trainer)
        trainer.rollouts._prepare = partial(Rollouts._prepare, trainer.rollouts)
    play = trainer.rollout_func

    def noted(prompts: list[Any], trainer: Any) -> Any:
        output, rollouts = play(prompts, trainer), trainer.rollouts
        asked = dict.fromkeys(prompts)
        turns = [len(each.turns) for each in rollouts.episodes]
        figures = {"tasks": [*asked], "scores": output["score"], "turns": turns}
        played.append({**figures, "metrics": rollouts.metrics})
        return output

    trainer.rollout_func = noted
    trainer.train()
    rank = trainer.accelerator.process_index
    torch.save(trainer.recorder.weights, out / f"weights-{rank}.pt")
    told = {
        "trl": trl.__version__,
        "processes": trainer.accelerator.num_processes,
        "metrics": trainer.seen,
        "guards": trainer.guard_callback.guards.state_dict(),
        "played": played,
        "asked": server.asked if server is not None else [],
    }
    (out / f"told-{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
