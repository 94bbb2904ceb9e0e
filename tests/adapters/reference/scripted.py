"""An engine whose tokens the test decides; log-probabilities and all that follows are real."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from adapters.training.models.token_log_probs import token_log_probs
from adapters.training.models.tokenized_examples import Example
from toolgym.generation import Generation, Reply


class ScriptedEngine:
    """Generates what a script says, in place of `toolgym.generation.Engine`.

    Args:
        model: Computes the log-probabilities.
        stop: Tokens that end a turn.
        say: The sampled tokens of a stream. A generation has no room behind the last one.
    """

    def __init__(self, model: Any, stop: Collection[int], say: Callable[[str], list[int]]) -> None:
        self.model, self.stop, self.say = model, stop, say

    def generate(
        self,
        generations: Sequence[Generation],
        reply: Reply,
        *,
        temperature: float = 1.0,
        turn_tokens: int | None = None,
    ) -> None:
        """Take turns until every generation is ended or full."""
        said = {id(each): list(self.say(each.stream)) for each in generations}
        playing = list(generations)
        while playing:
            for each in playing:
                left, begin = said[id(each)], len(each.tokens)
                while left and len(each.tokens) < each.max_tokens:
                    each.tokens.append(left.pop(0))
                    if each.tokens[-1] in self.stop or len(each.tokens) - begin == turn_tokens:
                        break
                each.mask += [1] * (len(each.tokens) - begin)
                each.turns.append((begin, len(each.tokens)))
                if not left:
                    each.max_tokens = len(each.tokens)
            answers = reply(playing)
            for each, answer in zip(playing, answers, strict=True):
                each.tokens += answer or []
                each.mask += [0] * len(answer or [])
            pairs = zip(playing, answers, strict=True)
            playing = [each for each, answer in pairs if answer is not None]
        for each in generations:
            learn = (False,) * len(each.prompt) + tuple(map(bool, each.mask))
            text = Example((*each.prompt, *each.tokens), learn)
            with torch.no_grad():
                values, _ = token_log_probs(self.model, [text], temperature=temperature or 1.0)
            left_over = iter(values.tolist())
            each.log_probs = [next(left_over) if bit else 0.0 for bit in each.mask]
