"""The rollout loop of TRL's `AsyncGRPOTrainer`, in its own process, with a scripted server.

`AsyncRolloutWorker` itself refuses to start where vllm is not installed, so the process is started
here as its `start` does it.
"""

import json
import multiprocessing
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra `train`")
pytest.importorskip("aiohttp", reason="TRL's asynchronous rollouts need aiohttp")

from trl.experimental.async_grpo.async_rollout_worker import _AsyncRolloutLoop, _child_main

from adapters.trl import environment_factory, training_dataset
from tests.adapters.trl.scripted_trl import END, NOTES, call
from tests.chat_server import Body, Response, ScriptedServer
from toolgym import policies, rollout

pytestmark = [pytest.mark.torch, pytest.mark.integration]
TURNS = [
    call("read", note="a", sql=None),
    call("read", nte="a"),
    call("count", text="abc", twice="maybe"),
    call("answer", value=11),
    f"done{END}",
]


class VllmServer(ScriptedServer):
    """Answers `/v1/completions` as vLLM does: the n-th turn of the script after n results."""

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(lambda asked: "")
        self.tokenizer = tokenizer

    def response(self, asked: Body, key: str) -> Response:
        turn = TURNS[self.tokenizer.decode(asked["prompt"]).count("<tool_response>")]
        ids = self.tokenizer(turn, add_special_tokens=False)["input_ids"]
        choice = {"token_ids": ids, "logprobs": {"token_logprobs": [-1.0] * len(ids)}}
        return Response(json.dumps({"choices": [choice]}).encode())


def samples_of(count: int, **loop: Any) -> list[Any]:
    """The first samples of a rollout loop in a spawned process."""
    spawn = multiprocessing.get_context("spawn")
    stop, ready, failed = spawn.Event(), spawn.Event(), spawn.Event()
    samples, problems, metrics = spawn.Queue(), spawn.Queue(maxsize=1), spawn.Queue()
    shared = (samples, spawn.Value("i", 0), stop, ready, spawn.Value("d", 0.0))
    arguments = (_AsyncRolloutLoop, loop, *shared, failed, problems, metrics)
    process = spawn.Process(target=_child_main, args=arguments, daemon=True)
    process.start()
    try:
        return [samples.get(timeout=120) for _ in range(count)]
    finally:
        stop.set()
        process.join(timeout=5)
        process.kill()  # it may wait for its queues to be read


def test_a_rollout_of_the_asynchronous_trainer_earns_the_score_of_the_environment(
    tokenizer: Any,
) -> None:
    dataset = training_dataset(NOTES).filter(lambda row: row["task_id"] == "note-1")
    with VllmServer(tokenizer) as server:
        samples = samples_of(
            2,
            model_name="scripted",
            dataset=dataset,
            reward_funcs=[],
            processing_class=tokenizer,
            eos_token_ids=[tokenizer.eos_token_id],
            environment_factory=environment_factory(NOTES),
            num_generations=2,
            max_inflight_tasks=2,
            vllm_server_url=f"http://127.0.0.1:{server.port}",
        )
    played = policies.ScriptedPolicy([turn.removesuffix(END) for turn in TURNS[:-1]])
    score = rollout.play(NOTES, played, task_id="note-1").score
    assert [each.metrics["rewards/NotesEnvironment"] for each in samples] == [score, score]
