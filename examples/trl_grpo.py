"""GRPO on a tool environment with TRL's own `GRPOTrainer`.

`Rollouts` plays the episodes and returns their scores as rewards, `grpo_config` makes a
`GRPOConfig` with safe defaults, and `GuardCallback` checks each update. By default it trains the
tiny model after a few supervised steps, which runs on a CPU. `--model` takes a folder or a hub id.
It requires the extra `train`.

    python examples/trl_grpo.py
    python examples/trl_grpo.py --steps 20 --sft-steps 300
    python examples/trl_grpo.py --model Qwen/Qwen3-0.6B
"""

import argparse
import tempfile

from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOTrainer

from adapters.trl import GuardCallback, Rollouts, grpo_config
from toolgym.registration import make

ENV_ID = "sqlgym/Explore-v0"


def tiny_model(sft_steps: int):
    """Return a model of half a million parameters, trained on a few demonstrations."""
    from adapters.tiny.model import build_model
    from adapters.tiny.tokenizer import train_tokenizer
    from adapters.training.models.demonstrations import demonstrate
    from adapters.training.models.supervised import SftSettings, train_supervised
    from adapters.training.models.tokenized_examples import examples_of

    transcripts = demonstrate(ENV_ID, 64, dataset="tiny")
    tools = make(ENV_ID, dataset="tiny").tool_schemas()
    tokenizer = train_tokenizer(transcripts)
    model = build_model(tokenizer)
    examples = [e for messages in transcripts for e in examples_of(messages, tools, tokenizer)]
    train_supervised(model, examples, SftSettings(steps=sft_steps))
    return model, tokenizer


def print_step(step: int, metrics: dict[str, float], episodes: list) -> None:
    """Print the mean reward and the share of valid calls of a step."""
    print(f"step {step}: reward {metrics['reward']:+.3f}, valid calls {metrics['validity']:.0%}")


def main(model_name: str | None, steps: int, sft_steps: int) -> None:
    """Train and print the metrics of each step."""
    if model_name is None:
        model, tokenizer = tiny_model(sft_steps)
        options = {"dataset": "tiny", "step_limit": 6}
    else:
        model = AutoModelForCausalLM.from_pretrained(model_name)
        tokenizer = AutoTokenizer.from_pretrained(model_name)
        options = {"dataset": "bundled"}

    rollouts = Rollouts(ENV_ID, options)
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model,
            args=grpo_config(
                output_dir=folder,
                max_steps=steps,
                num_generations=4,
                gradient_accumulation_steps=2,
                max_completion_length=512,
                learning_rate=1e-4,
                beta=0.0,  # no KL term: TRL would load the reference model by name
                save_strategy="no",
                disable_tqdm=True,
            ),
            rollout_func=rollouts,
            reward_funcs=rollouts.score,
            train_dataset=rollouts.dataset(32),
            processing_class=tokenizer,
            callbacks=[GuardCallback(rollouts, on_step=print_step)],
        )
        trainer.train()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="GRPO on sqlgym/Explore-v0 with TRL.")
    parser.add_argument("--model", help="folder or hub id (default: the tiny model)")
    parser.add_argument(
        "--steps", type=int, default=2, help="optimizer steps of GRPO (default: %(default)s)"
    )
    parser.add_argument(
        "--sft-steps", type=int, default=60, help="supervised steps (default: %(default)s)"
    )
    given = parser.parse_args()
    main(given.model, given.steps, given.sft_steps)
