"""Operators on a model in this process: seeds, and what is said when it cannot be had."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import train_tokenizer
from adapters.training.models.demonstrations import demonstrate
from adapters.training.runs.preparation import save
from aflowgym import load_tasks
from aflowgym.backends import make_backend
from aflowgym.backends.transformers import TransformersBackend
from aflowgym.operators import OPERATORS
from aflowgym.operators.context import Request
from toolgym.errors import ConfigurationError, EnvironmentFault
from toolgym.generation import Engine

pytestmark = pytest.mark.torch
TASK = load_tasks("bundled", "train")[0]


@pytest.fixture(scope="module")
def pair():
    tokenizer = train_tokenizer(demonstrate("sqlgym/Explore-v0", 20, dataset="tiny"))
    return build_model(tokenizer, size=TinySize(hidden=32, heads=2, feed_forward=64)), tokenizer


def backend(pair, **changed):
    return TransformersBackend(*pair, **{"temperature": 1.0, "max_new_tokens": 8, **changed})


def request(number=0, words=3, **changed):
    asked = Request(
        TASK, OPERATORS["Custom"], "word " * words, {}, "0", number, seed=1, max_tokens=1000
    )
    return asked._replace(**changed)


def at_once(model, requests):
    with ThreadPoolExecutor(len(requests)) as pool:
        return list(pool.map(model.generate, requests))


def test_another_seed_place_or_number_draws_other_words(pair):
    model = backend(pair)
    first = model.generate(request())

    assert model.generate(request()) == first
    for other in (request(seed=2), request(branch="1"), request(number=1)):
        assert model.generate(other).text != first.text


def test_a_reply_that_did_not_end_or_had_no_room_says_so(pair):
    reply = backend(pair).generate(request(max_tokens=3))
    empty = backend(pair).generate(request(words=4000))

    assert (reply.tokens_out, reply.cut) == (3, True)
    assert (empty.text, empty.tokens_out, empty.cut) == ("", 0, True)


def test_requests_of_threads_are_batched_and_get_the_replies_that_they_get_alone(pair, monkeypatch):
    asked = [request(number, words=3 + 2 * number, max_tokens=4 + number) for number in range(12)]
    alone = [backend(pair).generate(each) for each in asked]
    sizes, generate = [], Engine.generate
    model = backend(pair, batch=8)

    def counted(self, generations, **options):
        sizes.append(len(generations))
        while len(sizes) == 1 and len(model._waiting) < len(asked):
            time.sleep(0.001)  # the first batch ends after all requests have arrived
        generate(self, generations, **options)

    monkeypatch.setattr(Engine, "generate", counted)

    assert at_once(model, asked) == alone
    assert sizes[1] == min(8, len(asked) - sizes[0])
    assert sum(sizes) == len(asked)


def test_a_batch_that_fails_is_split_until_the_error_is_that_of_one_request(pair, monkeypatch):
    asked = [request(number, words=400 if number == 5 else 3) for number in range(8)]
    alone = [backend(pair).generate(each) for each in asked]
    generate = Engine.generate

    def small_memory(self, generations, **options):
        if len(generations) > 3 or any(len(each.prompt) > 400 for each in generations):
            raise RuntimeError("out of memory")
        generate(self, generations, **options)

    monkeypatch.setattr(Engine, "generate", small_memory)
    model = backend(pair)

    def outcome(each):
        try:
            return model.generate(each)
        except EnvironmentFault as fault:
            return str(fault)

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(outcome, asked))
    assert got.pop(5).startswith("the model failed on a request: out of memory.")
    assert got == [*alone[:5], *alone[6:]]


def test_a_model_is_found_by_its_folder_and_loaded_once(pair, tmp_path):
    save(*pair, tmp_path / "final")
    name = f"transformers:{tmp_path / 'final'}"
    model = make_backend(name, temperature=1.0, max_new_tokens=8)

    assert make_backend({"name": name, "temperature": 1.0, "max_new_tokens": 8}) is model
    assert model.generate(request()) == backend(pair).generate(request())


def test_what_cannot_be_is_told_with_the_cure(pair, tmp_path):
    with pytest.raises(ConfigurationError, match=r"is not a model folder"):
        make_backend(f"transformers:{tmp_path}")
    with pytest.raises(
        ConfigurationError, match="has no option 'size'; there are batch, max_new_tokens"
    ):
        make_backend("transformers:x", size=1)
    with pytest.raises(ConfigurationError, match="max_new_tokens and batch at least 1"):
        backend(pair, max_new_tokens=0)
