"""GRPO on a tool environment with TRL's own `GRPOTrainer`.

Two lines are ours: `environment_factory` makes the class that TRL builds one of per rollout, and
`training_dataset` makes prompts whose rows name a task, so that a group shares one question. All
else is TRL as its manual has it. The model is the tiny one, from scratch, after a few steps of
imitation, so that this runs on a CPU; give a folder or a hub id for another one. It needs the
extra `train`.

    python examples/trl_grpo.py
    python examples/trl_grpo.py --steps 20 --warmup 300
    python examples/trl_grpo.py --model Qwen/Qwen3-0.6B
"""

import argparse
import tempfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

from adapters.trl import environment_factory, training_dataset
from toolgym.registration import make

ENV_ID = "sqlgym/Explore-v0"


def tiny_model(warmup: int):
    """A transformer of half a million parameters that has imitated a few demonstrations."""
    from adapters.tiny.model import build_model
    from adapters.tiny.tokenizer import train_tokenizer
    from adapters.training.models.demonstrations import demonstrate
    from adapters.training.models.supervised import WarmupSettings, warm_up
    from adapters.training.models.tokenized_examples import examples_of

    transcripts = demonstrate(ENV_ID, 64, dataset="tiny")
    tools = make(ENV_ID, dataset="tiny").tool_schemas()
    tokenizer = train_tokenizer(transcripts)
    model = build_model(tokenizer)
    examples = [e for messages in transcripts for e in examples_of(messages, tools, tokenizer)]
    warm_up(model, examples, WarmupSettings(steps=warmup))
    return model, tokenizer


def main(model_name: str | None, steps: int, warmup: int) -> None:
    """Train for some steps and print what TRL logged."""
    if model_name is None:
        model, tokenizer = tiny_model(warmup)
        options = {"dataset": "tiny", "step_limit": 6}
    else:
        model = AutoModelForCausalLM.from_pretrained(model_name)
        tokenizer = AutoTokenizer.from_pretrained(model_name)
        options = {"dataset": "bundled"}

    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            environment_factory=environment_factory(ENV_ID, **options),
            train_dataset=training_dataset(ENV_ID, n=32, **options),
            args=GRPOConfig(
                output_dir=folder,
                max_steps=steps,
                num_generations=4,
                per_device_train_batch_size=8,
                max_completion_length=256,
                max_tool_calling_iterations=8,
                learning_rate=1e-4,
                scale_rewards="none",  # a group's small lead stays small
                loss_type="dr_grpo",
                remove_unused_columns=False,  # `reset` needs the column task_id
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
        failures = log.get("tools/failure_frequency", 0.0)
        print(f"step {log['step']}: reward {log['reward']:+.3f}, tool failures {failures:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="GRPO on sqlgym/Explore-v0 with TRL.")
    parser.add_argument("--model", help="a folder or a hub id; the tiny model without it")
    parser.add_argument("--steps", type=int, default=2, help="optimizer steps of GRPO")
    parser.add_argument("--warmup", type=int, default=60, help="steps of imitation (tiny model)")
    given = parser.parse_args()
    main(given.model, given.steps, given.warmup)
