"""A small byte-level BPE tokenizer, trained in a second on the transcripts it is meant for.

Three choices make transcripts short and copying easy. Digits are single tokens, so a number that
the model has never seen is spelt from ten that it knows. A word is a word with underscores and
all, so `table_name` is one token wherever it stands. The scaffolding of a JSON call (`",
"arguments": {"` and the like) is cut out whole before merging, so that a call costs its content
and little else; an argument padded with `null` costs two tokens.

Being byte-level, it can spell any text, if at length. What is saved is a tokenizer of transformers,
chat format included, that `AutoTokenizer.from_pretrained` reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from adapters.tiny import template

Message = Mapping[str, Any]

VOCABULARY: Final = 1024

# Scaffolding of a call, then one digit, a word, a quote, other punctuation, blanks.
_PIECES: Final = "|".join(
    [
        r"\n?\{\"name\": \"",
        r"\", \"arguments\": \{\"?",
        r"\": null, \"",
        r"\": null\}\}\n?",
        r"\": \"",
        r"\", \"",
        r"\"\}\}\n?",
        r"\": ",
        r"\}\}\n?",
        r"\p{N}",
        r" ?[\p{L}_]+",
        r"\"",
        r" ?[^\s\p{L}\p{N}_\"]+",
        r"\s+",
    ]
)


def train_tokenizer(
    transcripts: Iterable[Sequence[Message]], vocabulary: int = VOCABULARY
) -> PreTrainedTokenizerFast:
    """Train the tokenizer on chat messages.

    Args:
        transcripts: Conversations; take them from the training split only.
        vocabulary: How many tokens there are at most, bytes and control tokens included.

    Returns:
        A tokenizer that pads on the left and carries the chat format. The same transcripts always
        give the same tokenizer.
    """
    core = Tokenizer(models.BPE())
    pieces = pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.pre_tokenizer = pre_tokenizers.Sequence([pieces, byte_level])
    core.decoder = decoders.ByteLevel()
    control = [AddedToken(t, special=True, normalized=False) for t in template.CONTROL_TOKENS]
    calls = [AddedToken(t, special=False, normalized=False) for t in template.CALL_TOKENS]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(calls),
        special_tokens=control,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = (text for transcript in transcripts for text in _texts(transcript))
    core.train_from_iterator(texts, trainer)
    core.add_tokens(calls)
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=core,
        eos_token=template.END_OF_TURN,
        pad_token=template.PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = template.CHAT_TEMPLATE
    tokenizer.response_template = template.RESPONSE_TEMPLATE
    return tokenizer


def _texts(transcript: Sequence[Message]) -> Iterator[str]:
    """What stands between control tokens when a transcript is rendered."""
    for message in transcript:
        if message["role"] == "system":
            continue  # the chat format leaves it out
        if message.get("content"):
            yield message["content"]
        for call in message.get("tool_calls") or []:
            function = call["function"]
            yield f" {function['name']}"  # as it stands in the list of tools
            yield "\n" + json.dumps(function, ensure_ascii=False) + "\n"
