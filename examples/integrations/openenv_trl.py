"""GRPO with TRL's `GRPOTrainer` on an OpenEnv server.

A rollout function (`rollout_func`) sends each message of the model to the server unchanged. With
`environment_factory`, TRL would parse the calls itself, and calls that it cannot parse would not
reach the server.

Each rollout of a batch has its own session. Tokens that the model did not write are masked. The
reward of an unscored rollout is None, which TRL excludes. It requires
`pip install 'toolgym[openenv,train]'`. Without `--url` the script starts the server itself.

    python examples/integrations/openenv_trl.py
    python examples/integrations/openenv_trl.py --steps 20 --sft-steps 300
    python examples/integrations/openenv_trl.py --url http://127.0.0.1:8000 --model Qwen/Qwen3-0.6B
"""

import argparse
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from adapters.openenv.client import ToolgymEnv
from adapters.openenv.models import ToolgymAction

ENV_ID = "sqlgym/Explore-v0"
COMPLETION, TURN = 512, 96
"""Maximum tokens of a rollout, and of one message."""


class Rollout:
    """One episode as tokens."""

    def __init__(self, client, tokenizer, task_id: str, step: int) -> None:
        self.client, self.tokenizer = client, tokenizer
        # The environment's draws are the same within a group and differ between steps.
        seed = zlib.crc32(f"{step}-{task_id}".encode()) % 2**31
        begun = client.reset(task_id=task_id, seed=seed)
        seen = begun.observation
        self.over, self.rewards, self.scored = begun.done, [], seen.scored
        self.prompt = tokenizer.apply_chat_template(
            seen.messages, tools=seen.tools, add_generation_prompt=True, return_dict=False
        )
        self.completion, self.logprobs, self.mask = [], [], []

    @property
    def is_open(self) -> bool:
        """Whether the model may write another message."""
        return not self.over and len(self.completion) + TURN < COMPLETION

    def add(self, ids: list[int], logprobs: list[float], written: int) -> None:
        """Append tokens that the model wrote (`written` is 1) or received (0)."""
        self.completion += ids
        self.logprobs += logprobs
        self.mask += [written] * len(ids)

    def take_turn(self, model) -> None:
        """Sample a message, send it unchanged, and append the response."""
        ids, logprobs = sampled(model, self.tokenizer, self.prompt + self.completion)
        self.add(ids, logprobs, 1)
        text = self.tokenizer.decode(ids, skip_special_tokens=True)
        seen = self.send(ToolgymAction(text=text))
        if not self.over:
            shown = self.following(seen.messages)
            self.add(shown, [0.0] * len(shown), 0)

    def send(self, action: ToolgymAction):
        """Send an action and return the observation."""
        result = self.client.step(action)
        self.over = result.done
        self.scored = self.scored and result.observation.scored
        self.rewards.append(result.reward or 0.0)
        return result.observation

    def following(self, messages: list) -> list[int]:
        """Return the tokens between two messages of the model."""
        said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "x"}]
        before = self.tokenizer.apply_chat_template(said, return_dict=False)
        stop = len(before) - before[::-1].index(self.tokenizer.eos_token_id)
        whole = self.tokenizer.apply_chat_template(
            said + messages, add_generation_prompt=True, return_dict=False
        )
        return whole[stop:]

    def score(self) -> float | None:
        """Close the episode and return its score, or None after a fault."""
        if not self.over:
            self.send(ToolgymAction(finish=True))
        return sum(self.rewards) if self.scored else None


@torch.no_grad()
def sampled(model, tokenizer, ids: list[int]) -> tuple[list[int], list[float]]:
    """Sample a message; return its tokens and their log-probabilities."""
    asked = torch.tensor([ids], device=model.device)
    told = model.generate(
        asked,
        attention_mask=torch.ones_like(asked),
        max_new_tokens=TURN,
        do_sample=True,
        top_k=0,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        return_dict_in_generate=True,
        output_scores=True,
    )
    new = told.sequences[0, len(ids) :].tolist()
    chances = [scores[0].log_softmax(-1)[token].item() for scores, token in
               zip(told.scores, new, strict=True)]  # fmt: skip
    return new, chances


def rollout_function(url: str):
    """Return a `rollout_func` for TRL; the prompts of a batch are ids of tasks."""

    def play(prompts: list[str], trainer: GRPOTrainer) -> dict:
        model = trainer.accelerator.unwrap_model(trainer.model)
        tokenizer = trainer.processing_class
        with ExitStack() as sessions:
            rollouts = []
            for task_id in prompts:
                client = sessions.enter_context(ToolgymEnv(base_url=url).sync())
                rollouts.append(Rollout(client, tokenizer, task_id, trainer.state.global_step))
            while playing := [each for each in rollouts if each.is_open]:
                for each in playing:
                    each.take_turn(model)
            scores = [each.score() for each in rollouts]
        return {
            "prompt_ids": [each.prompt for each in rollouts],
            "completion_ids": [each.completion for each in rollouts],
            "logprobs": [each.logprobs for each in rollouts],
            "env_mask": [each.mask for each in rollouts],
            "score": scores,
        }

    return play


def reward(completions: list, score: list[float | None], **columns: object) -> list[float | None]:
    """Return the scores of the episodes."""
    return score


def tiny_model(sft_steps: int):
    """Return a model of half a million parameters, trained on a few demonstrations."""
    from adapters.tiny.model import build_model
    from adapters.tiny.tokenizer import train_tokenizer
    from adapters.training.models.demonstrations import demonstrate
    from adapters.training.models.supervised import SftSettings, train_supervised
    from adapters.training.models.tokenized_examples import examples_of
    from toolgym.registration import make

    transcripts = demonstrate(ENV_ID, 64, dataset="tiny")
    tools = make(ENV_ID, dataset="tiny").tool_schemas()
    tokenizer = train_tokenizer(transcripts)
    model = build_model(tokenizer)
    examples = [e for messages in transcripts for e in examples_of(messages, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(steps=sft_steps))
    return model, tokenizer


@contextmanager
def server() -> Iterator[str]:
    """Start a server of tiny databases and yield its address."""
    command = [sys.executable, "-m", "toolgym", "serve", ENV_ID, "--port", "0"]
    options = ["--dataset", "tiny", "--split", "train", "--step-limit", "6"]
    process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def task_ids(url: str, n: int) -> list[str]:
    """Return the ids of the first `n` tasks of the server's first split."""
    import httpx

    split = httpx.get(f"{url}/toolgym/splits", timeout=60).json()[0]["name"]
    asked = {"split": split, "start": 0, "stop": n}
    tasks = httpx.post(f"{url}/toolgym/task_range", json=asked, timeout=60).json()["tasks"]
    return [task["id"] for task in tasks]


def train(url: str, model, tokenizer, steps: int) -> None:
    """Train and print the metrics of each step."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=reward,
            rollout_func=rollout_function(url),
            train_dataset=Dataset.from_dict({"prompt": task_ids(url, 32)}),
            args=GRPOConfig(
                output_dir=folder,
                max_steps=steps,
                num_generations=4,
                per_device_train_batch_size=8,
                max_completion_length=COMPLETION,
                learning_rate=1e-4,
                scale_rewards="none",
                loss_type="dr_grpo",
                logging_steps=1,
                report_to="none",
                save_strategy="no",
                use_cpu=not torch.cuda.is_available(),
                bf16=torch.cuda.is_available(),
                gradient_checkpointing=False,
            ),
        )
        trainer.train()
    for log in trainer.state.log_history[:-1]:
        print(f"step {log['step']}: reward {log['reward']:+.3f}, loss {log['loss']:+.4f}")


def main() -> None:
    """Read the options and train."""
    parser = argparse.ArgumentParser(description="GRPO with TRL on an OpenEnv server.")
    parser.add_argument("--url", help="address of a running server (default: start one)")
    parser.add_argument("--model", help="folder or hub id (default: the tiny model)")
    parser.add_argument(
        "--steps", type=int, default=2, help="optimizer steps of GRPO (default: %(default)s)"
    )
    parser.add_argument(
        "--sft-steps", type=int, default=60, help="supervised steps (default: %(default)s)"
    )
    given = parser.parse_args()
    if given.model is None:
        model, tokenizer = tiny_model(given.sft_steps)
    else:
        model = AutoModelForCausalLM.from_pretrained(given.model)
        tokenizer = AutoTokenizer.from_pretrained(given.model)
    with ExitStack() as running:
        url = given.url or running.enter_context(server())
        train(url, model, tokenizer, given.steps)


if __name__ == "__main__":
    main()
