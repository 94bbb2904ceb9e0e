"""One process of a training by a script, started by `torchrun`; see `test_processes`."""

import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState
from accelerate.utils import DistributedType
from peft import LoraConfig
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from transformers.distributed import DistributedConfig
from trl import GRPOTrainer
from trl.generation.vllm_generation import VLLMGeneration

from adapters.trl import StableGRPOTrainer
from tests.adapters.conftest import NOTES
from tests.adapters.trl.scripted_trl import Scripted, call, recorded, scripted


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


class ShardedOnCPU(GRPOTrainer):
    """Where accelerate is told to shard, it does so on this CPU.

    Left alone it would on an accelerator only, though PyTorch's FSDP2 does on both.
    """

    def create_accelerator_and_postprocess(self) -> None:
        if self.args.fsdp:
            PartialState._shared_state["distributed_type"] = DistributedType.MULTI_XPU
        super().create_accelerator_and_postprocess()


class Unequal(ShardedOnCPU):
    """The model itself speaks, in one process three times as long as in the other."""

    script, batches = None, 0

    def _generate_single_turn(self, *args: Any, **kwargs: Any) -> Any:
        self.generation_config.max_new_tokens = 4 + 8 * self.accelerator.process_index
        told = super()._generate_single_turn(*args, **kwargs)
        self.generated = [len(ids) for ids in told[0]]
        return told


class UnequalStable(StableGRPOTrainer, Unequal):
    """The same under our own trainer."""


class Faulty(ShardedOnCPU, Scripted):
    """At some steps the gradient of the first weight gets a nan, in some processes."""

    faults: dict[str, list[int]]

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        loss = super().training_step(*args, **kwargs)
        is_due = self.state.global_step + 1 in self.faults.get("steps", ())
        if is_due and self.accelerator.process_index in self.faults["ranks"]:
            gradient = next(p.grad for p in self.model.parameters() if p.requires_grad)
            part = gradient.to_local() if isinstance(gradient, DTensor) else gradient
            part.flatten()[0] = torch.nan
        return loss


class FaultyStable(StableGRPOTrainer, Faulty):
    """The same under our own trainer."""


class Killed(TrainerCallback):
    """Ends the process once the checkpoint of a step is complete, as a kill would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step == self.step:
            os._exit(0)


CLASSES = {"server": StableGRPOTrainer, "unequal": UnequalStable}


def whole(state: Any) -> Any:
    """A state without shards; all processes have to ask for it."""
    if isinstance(state, DTensor):
        return state.full_tensor()
    if isinstance(state, dict):
        return {key: whole(value) for key, value in state.items()}
    return state


def main(folder: Path, out: Path, script: str, settings: dict[str, Any]) -> None:
    """Train, and leave weights and numbers of this process behind."""
    torch.set_num_threads(1)
    seen: list[dict[str, float]] = []
    own = {key: settings.pop(key, None) for key in ("faults", "killed_at", "lora", "loaded_cut")}
    cut = {}
    if own["loaded_cut"]:
        dist.init_process_group("gloo")
        cut = {"distributed_config": DistributedConfig(fsdp_size=dist.get_world_size())}
    trainer = scripted(
        AutoModelForCausalLM.from_pretrained(folder / "model", **cut),
        AutoTokenizer.from_pretrained(folder / "model"),
        out / "run",
        globals().get(script),
        env_id=NOTES,
        settings=settings,
        on_metrics=lambda step, numbers: seen.append(numbers),
        trainer_class=CLASSES.get(script, FaultyStable),
        **({"peft_config": LoraConfig(**own["lora"])} if own["lora"] else {}),
    )
    trainer.faults = own["faults"] or {}
    server = serve(trainer) if script == "server" else None
    states = recorded(trainer)
    if own["killed_at"]:
        trainer.add_callback(Killed(own["killed_at"]))
    trainer.train(resume_from_checkpoint=any((out / "run").glob("checkpoint-*")))
    rank = trainer.accelerator.process_index
    weights = {name: p.detach().clone() for name, p in trainer.model.named_parameters()}
    is_sharded = any(isinstance(weight, DTensor) for weight in weights.values())
    torch.save(whole(weights), out / f"weights-{rank}.pt")
    moments = [each["state"] for each in states.optimizer]
    pairs = zip(states.weights, moments, strict=True)
    torch.save([whole({"weights": w, "moments": m}) for w, m in pairs], out / f"states-{rank}.pt")
    told = {
        "sharded": is_sharded,
        "world": trainer.accelerator.num_processes,
        "numbers": seen,
        "guards": trainer._guard_callback.guards.state_dict(),
        "refills": trainer._refills.state_dict() if trainer._refills is not None else None,
        "batches": trainer.batches,
        "asked": server.asked if server is not None else [],
        "generated": getattr(trainer, "generated", []),
        "correct": [env._playing.episode.outcome.correct for env in trainer.environments],
        "turns": [len(env._playing.episode.turns) for env in trainer.environments],
    }
    (out / f"told-{rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], json.loads(sys.argv[4]))
