"""Operators on a model in this process: batches, seeds and what is said when it cannot be had."""

import asyncio
from operator import eq

import pytest

pytest.importorskip("torch", reason="needs the extra `train`")

from adapters.tiny.model import TinySize, build_model
from adapters.tiny.tokenizer import train_tokenizer
from adapters.training.models.demonstrations import demonstrate
from adapters.training.runs.preparation import save
from aflowgym import load_tasks
from aflowgym.backends import make_backend
from aflowgym.backends.transformers import TransformersBackend
from aflowgym.execution.protocols import Request
from toolgym.errors import ConfigurationError, EnvironmentFault

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
        TASK, "Custom", "word " * words, {}, "0", number, seed=1, tokens=10, max_tokens=1000
    )
    return asked._replace(**changed)


REQUESTS = [request(number, words) for number, words in enumerate((3, 40, 9, 1, 25))]


def together(model, requests):
    async def ask():
        return await asyncio.gather(*(model.agenerate(each) for each in requests))

    return asyncio.run(ask())


def are_the_same(replies, others):
    """Equal but for one: rows of another batch round otherwise, and a draw may fall beside it."""
    return sum(map(eq, replies, others)) >= len(others) - 1 and len(replies) == len(others)


@pytest.mark.parametrize("temperature", [pytest.param(0.0, marks=pytest.mark.nightly), 1.0])
def test_a_reply_does_not_depend_on_who_shares_its_batch(pair, temperature):
    alone = [backend(pair, temperature=temperature).generate(each) for each in REQUESTS]

    for batch in (16, 2):
        shared = together(backend(pair, temperature=temperature, batch=batch), REQUESTS)
        assert are_the_same(shared, alone)
    assert len({reply.text for reply in alone}) > 1


def test_another_seed_place_or_number_draws_other_words(pair):
    model = backend(pair)
    first = model.generate(request())

    assert model.generate(request()) == first
    for other in (request(seed=2), request(path="1"), request(number=1)):
        assert model.generate(other).text != first.text


def test_requests_of_one_moment_go_through_the_model_together(pair):
    model, sizes = backend(pair, batch=4), []
    real = model._continue_rows
    model._continue_rows = lambda rows: sizes.append(len(rows)) or real(rows)

    together(model, [request(number) for number in range(9)])

    assert sorted(sizes) == [1, 4, 4]


def test_a_reply_that_did_not_end_says_so(pair):
    reply = backend(pair).generate(request(max_tokens=3))

    assert reply.cut
    assert reply.tokens_out == 3
    assert reply.tokens_in > 0


def test_a_prompt_that_leaves_no_room_is_answered_by_nothing(pair):
    reply, other = together(backend(pair), [request(words=4000), request()])

    assert (reply.text, reply.tokens_out, reply.cut) == ("", 0, True)
    assert other == backend(pair).generate(request())


def test_a_model_that_fails_is_a_fault_for_all_who_wait(pair):
    model = backend(pair)

    def out_of_memory(rows):
        raise RuntimeError("out of memory\nand a long report")

    model._continue_rows = out_of_memory
    with pytest.raises(EnvironmentFault, match=r"out of memory\. If memory is short, lower batch"):
        model.generate(request())
    with pytest.raises(EnvironmentFault, match="out of memory"):
        together(model, REQUESTS)


def test_a_request_that_is_given_up_takes_nothing_from_the_others(pair):
    async def ask():
        model = backend(pair)
        asked = [asyncio.ensure_future(model.agenerate(each)) for each in REQUESTS]
        await asyncio.sleep(0)
        asked[0].cancel()
        return await asyncio.gather(*asked, return_exceptions=True)

    first, *others = asyncio.run(ask())

    assert isinstance(first, asyncio.CancelledError)
    assert not [each for each in others if isinstance(each, BaseException)]
    assert are_the_same(others, [backend(pair).generate(each) for each in REQUESTS[1:]])


def test_a_model_is_found_by_its_folder_and_loaded_once(pair, tmp_path):
    save(*pair, tmp_path / "final")
    name = f"transformers:{tmp_path / 'final'}"
    model = make_backend(name, temperature=1.0, max_new_tokens=8)

    assert make_backend({"name": name, "temperature": 1.0, "max_new_tokens": 8}) is model
    assert model.generate(request()) == backend(pair).generate(request())


def test_what_cannot_be_is_told_with_the_cure(pair, tmp_path):
    with pytest.raises(ConfigurationError, match=r"name the model's folder"):
        make_backend(f"transformers:{tmp_path}")
    with pytest.raises(ConfigurationError, match="has no option 'bach'; there are batch"):
        make_backend("transformers:x", bach=1)
    with pytest.raises(ConfigurationError, match="batch at least 1"):
        backend(pair, batch=0)
