"""Families of small functions for `generate_workflow_tasks.py`.

A family has a text with the parameter `@` in it, a solution, programs with a typical mistake, and
inputs. What a test expects is what the solution returns. A mistaken program must fail a test, and
most of them pass some, so that a wrong program can be nearly right.
"""

import random
from collections.abc import Callable
from typing import Any, NamedTuple


class Family(NamedTuple):
    """One kind of function; `@` stands for the parameter in every text."""

    name: str
    entry_point: str
    parameters: tuple[Any, ...]
    wordings: tuple[str, ...]
    solution: str
    mistakes: tuple[str, ...]
    inputs: Callable[[random.Random], list[tuple[Any, ...]]]


def _ints(rng: random.Random, low: int = -20, high: int = 60, most: int = 9) -> list[int]:
    return [rng.randint(low, high) for _ in range(rng.randint(2, most))]


def _lists(rng: random.Random) -> list[tuple[Any, ...]]:
    return [([4, 10, 15, 7, 30, 21],), ([],), *((_ints(rng),) for _ in range(5))]


def _numbers(rng: random.Random) -> list[tuple[Any, ...]]:
    return [(12,), (0,), (1,), *((rng.randint(2, 400),) for _ in range(5))]


SENTENCES = (
    "Banana bread is ready|the quick brown fox|Level|aaa bbb|Rain in Spain|a|"
    "Noon at the old mill|Mississippi|code review|Tall trees and tiny toads|keep calm"
)
WORDS = SENTENCES.split("|")


def _texts(rng: random.Random) -> list[tuple[Any, ...]]:
    return [("Banana bread",), ("",), *((text,) for text in rng.sample(WORDS, 5))]


FAMILIES: tuple[Family, ...] = (
    Family(
        "sum_multiples",
        "sum_multiples",
        (3, 4, 5, 7),
        (
            (
                "Write a function sum_multiples(numbers) that returns the sum of those "
                "integers in the list that are divisible by @."
            ),
            (
                "The function sum_multiples(numbers) shall add up only the multiples of @ in "
                "a list of integers. Write it."
            ),
        ),
        """\
def sum_multiples(numbers):
    return sum(n for n in numbers if n % @ == 0)
""",
        (
            """\
def sum_multiples(numbers):
    return sum(n for n in numbers if n % @ == 0 and n > 0)
""",
            """\
def sum_multiples(numbers):
    return len([n for n in numbers if n % @ == 0])
""",
        ),
        lambda rng: [([3, 4, 5, 7, 12, 20, -35],), *_lists(rng), ([-60, 420],)],
    ),
    Family(
        "count_above",
        "count_above",
        (5, 10, 20, 25),
        (
            (
                "Write a function count_above(numbers) that returns how many integers of the "
                "list are greater than @."
            ),
            "How many numbers in a list exceed @? Write count_above(numbers) to tell.",
        ),
        """\
def count_above(numbers):
    return sum(1 for n in numbers if n > @)
""",
        (
            """\
def count_above(numbers):
    return sum(1 for n in numbers if n >= @)
""",
            """\
def count_above(numbers):
    return sum(n for n in numbers if n > @)
""",
        ),
        lambda rng: [*_lists(rng), ([5, 10, 20, 25],)],
    ),
    Family(
        "count_letter",
        "count_letter",
        ("a", "e", "l", "t"),
        (
            (
                "Write a function count_letter(text) that counts how often the letter '@' "
                "occurs in a text. Capital and small letters count alike."
            ),
            (
                "Write count_letter(text): it returns the number of times '@' or its capital "
                "stands in the text."
            ),
        ),
        """\
def count_letter(text):
    return text.lower().count('@')
""",
        (
            """\
def count_letter(text):
    return text.count('@')
""",
            """\
def count_letter(text):
    return 1 if '@' in text.lower() else 0
""",
        ),
        lambda rng: [*_texts(rng), ("Alle Tage AETL tatel",)],
    ),
    Family(
        "chunks",
        "chunks",
        (2, 3, 4),
        (
            (
                "Write a function chunks(items) that cuts a list into consecutive lists of @ "
                "items. The last one may be shorter."
            ),
            (
                "Write chunks(items). It splits a list into pieces of length @, in order; "
                "what is left over at the end forms a shorter piece."
            ),
        ),
        """\
def chunks(items):
    return [items[i:i + @] for i in range(0, len(items), @)]
""",
        (
            """\
def chunks(items):
    return [items[i:i + @] for i in range(0, len(items) - @ + 1, @)]
""",
            """\
def chunks(items):
    return [items[i:i + @] for i in range(len(items))]
""",
        ),
        lambda rng: [([1, 2, 3, 4, 5, 6, 7],), *_lists(rng)],
    ),
    Family(
        "rotate",
        "rotate",
        (1, 2, 3),
        (
            (
                "Write a function rotate(items) that moves the last @ item(s) of a list to "
                "its front. Shorter lists wrap round; an empty list stays empty."
            ),
            (
                "A list is rotated to the right by @ place(s). Write rotate(items), which "
                "returns the new list and also works for short and empty lists."
            ),
        ),
        """\
def rotate(items):
    if not items:
        return []
    k = @ % len(items)
    return items[len(items) - k:] + items[:len(items) - k]
""",
        (
            """\
def rotate(items):
    return items[@:] + items[:@]
""",
            """\
def rotate(items):
    return items[-@:]
""",
        ),
        lambda rng: [
            ([1, 2, 3, 4, 5],),
            ([1, 2],),
            ([],),
            *((_ints(rng, most=6),) for _ in range(4)),
        ],
    ),
    Family(
        "digit_sum",
        "digit_sum",
        (2, 8, 10),
        (
            (
                "Write a function digit_sum(n) that returns the sum of the digits of a "
                "non-negative integer written in base @."
            ),
            "Write digit_sum(n), which adds up the base-@ digits of an integer n >= 0.",
        ),
        """\
def digit_sum(n):
    total = 0
    while n:
        total += n % @
        n //= @
    return total
""",
        (
            """\
def digit_sum(n):
    total = 0
    while n >= @:
        total += n % @
        n //= @
    return total
""",
            """\
def digit_sum(n):
    return n % @ + n // @
""",
        ),
        _numbers,
    ),
    Family(
        "nth_largest",
        "nth_largest",
        (2, 3),
        (
            (
                "Write a function nth_largest(numbers) that returns the number in place @ "
                "when the different values of the list are put in descending order, or None "
                "if there are fewer different values."
            ),
            (
                "Write nth_largest(numbers): the value at rank @ from the top, where equal "
                "numbers share a rank. It returns None if there is no such rank."
            ),
        ),
        """\
def nth_largest(numbers):
    values = sorted(set(numbers), reverse=True)
    return values[@ - 1] if len(values) >= @ else None
""",
        (
            """\
def nth_largest(numbers):
    values = sorted(numbers, reverse=True)
    return values[@ - 1] if len(values) >= @ else None
""",
            """\
def nth_largest(numbers):
    values = sorted(set(numbers))
    return values[@ - 1] if len(values) >= @ else None
""",
        ),
        lambda rng: [
            ([5, 5, 3, 1, 9, 9],),
            ([4],),
            ([2, 2, 2],),
            *((_ints(rng),) for _ in range(4)),
        ],
    ),
    Family(
        "clamp",
        "clamp",
        (5, 10, 30),
        (
            (
                "Write a function clamp(numbers) that replaces every number of a list that is"
                " below -@ by -@ and every number above @ by @."
            ),
            (
                "Write clamp(numbers): it keeps each number within -@ and @, both included, "
                "and returns the new list."
            ),
        ),
        """\
def clamp(numbers):
    return [max(-@, min(@, n)) for n in numbers]
""",
        (
            """\
def clamp(numbers):
    return [min(@, n) for n in numbers]
""",
            """\
def clamp(numbers):
    return [n for n in numbers if -@ <= n <= @]
""",
        ),
        lambda rng: [([-40, 40, 3],), *_lists(rng)],
    ),
    Family(
        "caesar",
        "shift_letters",
        (1, 3, 13),
        (
            (
                "Write a function shift_letters(text) that moves every letter of the English "
                "alphabet forward by @, from z on to a again. Capitals stay capitals, and "
                "other characters stay as they are."
            ),
            (
                "Write shift_letters(text), a Caesar cipher with the shift @. It keeps upper "
                "and lower case and leaves everything that is no letter unchanged."
            ),
        ),
        """\
def shift_letters(text):
    result = ''
    for c in text:
        if c.isalpha():
            start = ord('a') if c.islower() else ord('A')
            c = chr((ord(c) - start + @) % 26 + start)
        result += c
    return result
""",
        (
            """\
def shift_letters(text):
    return ''.join(chr(ord(c) + @) if c.isalpha() else c for c in text)
""",
            """\
def shift_letters(text):
    return ''.join(chr((ord(c) - 97 + @) % 26 + 97) if c.islower() else c for c in text)
""",
        ),
        lambda rng: [("Xyz Zoo!",), *_texts(rng)],
    ),
    Family(
        "long_words",
        "long_words",
        (3, 4, 5),
        (
            (
                "Write a function long_words(text) that returns the words of a text that have"
                " more than @ letters, in order. Words are separated by blanks."
            ),
            (
                "Write long_words(text): split the text at blanks and keep the words longer "
                "than @ characters."
            ),
        ),
        """\
def long_words(text):
    return [word for word in text.split() if len(word) > @]
""",
        (
            """\
def long_words(text):
    return [word for word in text.split() if len(word) >= @]
""",
            """\
def long_words(text):
    return sorted(word for word in text.split() if len(word) > @)
""",
        ),
        lambda rng: [*_texts(rng), ("one three zebras four apples to bananas",)],
    ),
    Family(
        "primes_from",
        "next_primes",
        (2, 3, 4),
        (
            (
                "Write a function next_primes(n) that returns the @ smallest prime numbers "
                "greater than n, in ascending order."
            ),
            (
                "Write next_primes(n): a list of the first @ primes after n, where n itself "
                "does not count."
            ),
        ),
        """\
def next_primes(n):
    found = []
    k = max(n + 1, 2)
    while len(found) < @:
        if all(k % d for d in range(2, int(k ** 0.5) + 1)):
            found.append(k)
        k += 1
    return found
""",
        (
            """\
def next_primes(n):
    found = []
    k = max(n, 2)
    while len(found) < @:
        if all(k % d for d in range(2, int(k ** 0.5) + 1)):
            found.append(k)
        k += 1
    return found
""",
            """\
def next_primes(n):
    found = []
    k = n + 1
    while len(found) < @:
        if k % 2:
            found.append(k)
        k += 1
    return found
""",
        ),
        lambda rng: [(10,), (7,), (-5,), *((rng.randint(2, 300),) for _ in range(5))],
    ),
    Family(
        "moving_sums",
        "window_sums",
        (2, 3, 4),
        (
            (
                "Write a function window_sums(numbers) that returns the sums of all runs of @"
                " neighbours in a list, from left to right. A list that is too short gives an"
                " empty list."
            ),
            (
                "Write window_sums(numbers): slide a window of @ numbers over the list and "
                "return the sum at each place."
            ),
        ),
        """\
def window_sums(numbers):
    return [sum(numbers[i:i + @]) for i in range(len(numbers) - @ + 1)]
""",
        (
            """\
def window_sums(numbers):
    return [sum(numbers[i:i + @]) for i in range(len(numbers) - @)]
""",
            """\
def window_sums(numbers):
    return [sum(numbers[i:i + @]) for i in range(0, len(numbers), @)]
""",
        ),
        _lists,
    ),
    Family(
        "repeat_letters",
        "stretch",
        (2, 3),
        (
            (
                "Write a function stretch(text) that repeats every character @ times, except "
                "blanks, which stay single."
            ),
            (
                "Write stretch(text): each character stands @ times in the result, but a "
                "blank only once."
            ),
        ),
        """\
def stretch(text):
    return ''.join(c if c == ' ' else c * @ for c in text)
""",
        (
            """\
def stretch(text):
    return ''.join(c * @ for c in text)
""",
            """\
def stretch(text):
    return text * @
""",
        ),
        _texts,
    ),
    Family(
        "fizz",
        "fizz",
        ((3, 5), (2, 7), (4, 6)),
        (
            (
                "Write a function fizz(n) that returns a list of texts for the numbers 1 to "
                "n: 'Fizz' for multiples of @0, 'Buzz' for multiples of @1, 'FizzBuzz' for "
                "multiples of both, and else the number itself as a text."
            ),
        ),
        """\
def fizz(n):
    result = []
    for i in range(1, n + 1):
        word = 'Fizz' * (i % @0 == 0) + 'Buzz' * (i % @1 == 0)
        result.append(word or str(i))
    return result
""",
        (
            """\
def fizz(n):
    return ['Fizz' if i % @0 == 0 else 'Buzz' if i % @1 == 0 else str(i) for i in range(1, n + 1)]
""",
            """\
def fizz(n):
    return [('Fizz' * (i % @0 == 0) + 'Buzz' * (i % @1 == 0)) or str(i) for i in range(1, n)]
""",
        ),
        lambda rng: [(3,), (0,), (15,), (1,), (rng.randint(20, 30),), (14,)],
    ),
    Family(
        "pairs_with_sum",
        "count_pairs",
        (5, 8, 10),
        (
            (
                "Write a function count_pairs(numbers) that counts the pairs of different "
                "positions in a list whose numbers add up to @."
            ),
            (
                "In how many ways can two numbers at different positions of a list be chosen "
                "so that their sum is @? Write count_pairs(numbers); the order of the two "
                "does not matter."
            ),
        ),
        """\
def count_pairs(numbers):
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            count += numbers[i] + numbers[j] == @
    return count
""",
        (
            """\
def count_pairs(numbers):
    return sum(1 for a in numbers for b in numbers if a + b == @)
""",
            """\
def count_pairs(numbers):
    return sum(1 for n in set(numbers) if @ - n in numbers) // 2
""",
        ),
        lambda rng: [
            ([1, 4, 4, 1, 9, -1, 5, 3, 6, 2],),
            ([],),
            ([5, 5, 4, 4, 0, 5, 5],),
            ([1],),
            *((_ints(rng, 0, 8),) for _ in range(4)),
        ],
    ),
    Family(
        "keep_every",
        "keep_every",
        (2, 3, 4),
        (
            (
                "Write a function keep_every(items) that returns every item of a list whose "
                "place, counted from 1, is divisible by @."
            ),
            (
                "Write keep_every(items): it keeps item number @ and then every item that is "
                "@ places further on. The first item has number 1."
            ),
        ),
        """\
def keep_every(items):
    return items[@ - 1::@]
""",
        (
            """\
def keep_every(items):
    return items[::@]
""",
            """\
def keep_every(items):
    return items[@::@]
""",
        ),
        lambda rng: [([1, 2, 3, 4, 5, 6, 7, 8],), *_lists(rng)],
    ),
    Family(
        "digit_powers",
        "divides_digit_powers",
        (2, 3),
        (
            (
                "Write a function divides_digit_powers(n) for a positive integer n: raise "
                "each of its decimal digits to the power @ and add up the results. It returns"
                " True if the sum is a multiple of n, else False."
            ),
            (
                "Write divides_digit_powers(n), which tells whether n > 0 divides the sum of "
                "its decimal digits, each raised to the power @."
            ),
        ),
        """\
def divides_digit_powers(n):
    return sum(int(d) ** @ for d in str(n)) % n == 0
""",
        (
            """\
def divides_digit_powers(n):
    return n == sum(int(d) ** @ for d in str(n))
""",
            """\
def divides_digit_powers(n):
    return n % sum(int(d) ** @ for d in str(n)) == 0
""",
        ),
        lambda rng: [(153,), (5,), (12,), (10,), (1,), (100,), (36,), (rng.randint(20, 400),)],
    ),
    Family(
        "first_repeat",
        "first_repeat",
        (2, 3),
        (
            (
                "Write a function first_repeat(items) that returns the first item that is met"
                " for time number @ when a list is read from left to right, or None if there "
                "is none."
            ),
            (
                "Write first_repeat(items): read the list from the left and return the item "
                "that is the first to reach @ occurrences; None if no item does."
            ),
        ),
        """\
def first_repeat(items):
    seen = {}
    for item in items:
        seen[item] = seen.get(item, 0) + 1
        if seen[item] == @:
            return item
    return None
""",
        (
            """\
def first_repeat(items):
    for item in items:
        if items.count(item) >= @:
            return item
    return None
""",
            """\
def first_repeat(items):
    return items[0] if items else None
""",
        ),
        lambda rng: [
            ([3, 1, 2, 1, 2, 3, 3, 1],),
            ([1, 2, 2, 1, 2, 1, 1],),
            ([],),
            ([7],),
            ([1, 2, 3],),
            *((_ints(rng, 0, 3),) for _ in range(3)),
        ],
    ),
    Family(
        "round_to",
        "round_down",
        (5, 10, 25),
        (
            (
                "Write a function round_down(numbers) that rounds each integer of a list down"
                " to a multiple of @. Negative numbers go down too, away from zero."
            ),
            (
                "Write round_down(numbers): for each integer give the largest multiple of @ "
                "that is not greater."
            ),
        ),
        """\
def round_down(numbers):
    return [n // @ * @ for n in numbers]
""",
        (
            """\
def round_down(numbers):
    return [int(n / @) * @ for n in numbers]
""",
            """\
def round_down(numbers):
    return [round(n / @) * @ for n in numbers]
""",
        ),
        lambda rng: [([3, 14, 26, 50],), ([-3, -10, -26],), *_lists(rng)],
    ),
    Family(
        "triangle_rows",
        "staircase",
        ("#", "*", "o"),
        (
            (
                "Write a function staircase(n) that returns a list of n texts. Text number i,"
                " counted from 1, consists of i characters '@', filled up with blanks on the "
                "left to a length of n."
            ),
            (
                "Write staircase(n): the lines of a staircase of height n that rises to the "
                "right and is made of '@', each line n characters long."
            ),
        ),
        """\
def staircase(n):
    return [('@' * i).rjust(n) for i in range(1, n + 1)]
""",
        (
            """\
def staircase(n):
    return ['@' * i for i in range(1, n + 1)]
""",
            """\
def staircase(n):
    return [('@' * i).ljust(n) for i in range(1, n + 1)]
""",
        ),
        lambda rng: [(3,), (0,), (1,), (5,), (rng.randint(6, 9),)],
    ),
    Family(
        "run_lengths",
        "long_runs",
        (2, 3),
        (
            (
                "Write a function long_runs(text) that counts the runs of equal characters in"
                " a text that are at least @ long. A run is as long as possible."
            ),
            (
                "Write long_runs(text). It tells how many blocks of @ or more equal "
                "neighbouring characters a text has."
            ),
        ),
        """\
def long_runs(text):
    count = length = 0
    for i, c in enumerate(text):
        length = length + 1 if i and text[i - 1] == c else 1
        count += length == @
    return count
""",
        (
            """\
def long_runs(text):
    return sum(1 for i in range(len(text) - @ + 1) if len(set(text[i:i + @])) == 1)
""",
            """\
def long_runs(text):
    return sum(1 for c in set(text) if text.count(c) >= @)
""",
        ),
        lambda rng: [
            ("aabbbbc",),
            ("",),
            ("abc",),
            ("aaabaaa",),
            ("zzzz",),
            ("Mississippi",),
            ("xxyyxx",),
        ],
    ),
    Family(
        "merge_max",
        "top_total",
        (2, 3, 4),
        (
            (
                "Write a function top_total(numbers) that returns the sum of the @ largest "
                "numbers of a list, or of all if there are fewer."
            ),
            (
                "Write top_total(numbers): add up the @ greatest numbers. A shorter list is "
                "added up as a whole."
            ),
        ),
        """\
def top_total(numbers):
    return sum(sorted(numbers, reverse=True)[:@])
""",
        (
            """\
def top_total(numbers):
    return sum(sorted(set(numbers), reverse=True)[:@])
""",
            """\
def top_total(numbers):
    return sum(numbers[:@])
""",
        ),
        lambda rng: [([9, 9, 1, 4, 9, 9],), *_lists(rng)],
    ),
    Family(
        "collatz",
        "steps_to_one",
        (3, 5),
        (
            (
                "Start with a positive integer n. An even number is halved; an odd number is "
                "multiplied by @ and increased by 1. Write steps_to_one(n), which returns how"
                " many steps lead to 1, or -1 if 1 is not reached in 60 steps."
            ),
        ),
        """\
def steps_to_one(n):
    for step in range(61):
        if n == 1:
            return step
        n = n // 2 if n % 2 == 0 else @ * n + 1
    return -1
""",
        (
            """\
def steps_to_one(n):
    for step in range(61):
        if n == 1:
            return step + 1
        n = n // 2 if n % 2 == 0 else @ * n + 1
    return -1
""",
            """\
def steps_to_one(n):
    step = 0
    while n > 1 and step < 60:
        n = n // 2 if n % 2 == 0 else @ * n + 1
        step += 1
    return step
""",
        ),
        lambda rng: [(6,), (1,), (2,), (27,), (16,), *((rng.randint(3, 40),) for _ in range(3))],
    ),
    Family(
        "vowel_case",
        "mark_vowels",
        ("*", "-", "_"),
        (
            (
                "Write a function mark_vowels(text) that replaces each vowel (a, e, i, o, u, "
                "small or capital) of a text by '@'."
            ),
            (
                "Write mark_vowels(text): every a, e, i, o and u, in either case, becomes "
                "'@'; the rest stays."
            ),
        ),
        """\
def mark_vowels(text):
    return ''.join('@' if c in 'aeiouAEIOU' else c for c in text)
""",
        (
            """\
def mark_vowels(text):
    return ''.join('@' if c in 'aeiou' else c for c in text)
""",
            """\
def mark_vowels(text):
    return ''.join(c for c in text if c not in 'aeiouAEIOU')
""",
        ),
        lambda rng: [*_texts(rng), ("Under Ice",)],
    ),
    Family(
        "group_by_remainder",
        "by_remainder",
        (2, 3, 4),
        (
            (
                "Write a function by_remainder(numbers) that returns a dict. Its keys are the"
                " remainders that the integers of the list leave when divided by @, and each "
                "value is the list of these integers in order."
            ),
            (
                "Write by_remainder(numbers), which groups integers by their remainder modulo"
                " @ into a dict of lists. Remainders that do not occur have no key."
            ),
        ),
        """\
def by_remainder(numbers):
    groups = {}
    for n in numbers:
        groups.setdefault(n % @, []).append(n)
    return groups
""",
        (
            """\
def by_remainder(numbers):
    return {r: [n for n in numbers if n % @ == r] for r in range(@)}
""",
            """\
def by_remainder(numbers):
    groups = {}
    for n in sorted(numbers):
        groups.setdefault(n % @, []).append(n)
    return groups
""",
        ),
        _lists,
    ),
    Family(
        "balance",
        "final_balance",
        (1, 2, 5),
        (
            (
                "An account starts at 0. Write final_balance(moves), which adds the integers "
                "of a list one after the other; whenever the balance falls below 0, a fee of "
                "@ is taken at once. It returns the balance at the end."
            ),
            (
                "Write final_balance(moves): begin with 0, add each move in turn, and after "
                "each move that leaves less than 0 subtract a fee of @. Return what is left."
            ),
        ),
        """\
def final_balance(moves):
    balance = 0
    for move in moves:
        balance += move
        if balance < 0:
            balance -= @
    return balance
""",
        (
            """\
def final_balance(moves):
    total = sum(moves)
    return total - @ if total < 0 else total
""",
            """\
def final_balance(moves):
    balance = 0
    for move in moves:
        balance += move - (@ if move < 0 else 0)
    return balance
""",
        ),
        lambda rng: [
            ([5, -3],),
            ([-4, 10, -20, 3],),
            ([],),
            *((_ints(rng, -20, 20),) for _ in range(5)),
        ],
    ),
    Family(
        "anagram_key",
        "key_of",
        (3, 4),
        (
            (
                "Write a function key_of(text) that takes the letters of a text in small "
                "form, without blanks, puts them in alphabetical order and returns the first "
                "@ of them as a text."
            ),
            (
                "Write key_of(text): ignore blanks and case, sort the characters, and return "
                "the first @ characters."
            ),
        ),
        """\
def key_of(text):
    return ''.join(sorted(text.lower().replace(' ', '')))[:@]
""",
        (
            """\
def key_of(text):
    return ''.join(sorted(text.lower()))[:@]
""",
            """\
def key_of(text):
    return ''.join(sorted(set(text.lower().replace(' ', ''))))[:@]
""",
        ),
        _texts,
    ),
    Family(
        "matrix_diagonal",
        "scaled_trace",
        (2, 3, 10),
        (
            (
                "Write a function scaled_trace(matrix) that returns @ times the sum of the "
                "main diagonal of a square matrix, given as a list of rows. The empty matrix "
                "gives 0."
            ),
        ),
        """\
def scaled_trace(matrix):
    return @ * sum(row[i] for i, row in enumerate(matrix))
""",
        (
            """\
def scaled_trace(matrix):
    return sum(row[i] for i, row in enumerate(matrix))
""",
            """\
def scaled_trace(matrix):
    return @ * sum(row[-1 - i] for i, row in enumerate(matrix))
""",
        ),
        lambda rng: [
            ([[1, 2], [3, 4]],),
            ([],),
            ([[5]],),
            *(([[rng.randint(-9, 9) for _ in range(k)] for _ in range(k)],) for k in (2, 3, 3)),
        ],
    ),
    Family(
        "mid_letters",
        "trim_words",
        (1, 2),
        (
            (
                "Write a function trim_words(text) that removes the first @ and the last @ "
                "character(s) of every word. Words are separated by blanks; words of which "
                "nothing is left vanish, and the rest are joined by single blanks."
            ),
        ),
        """\
def trim_words(text):
    words = [word[@:len(word) - @] for word in text.split() if len(word) > 2 * @]
    return ' '.join(words)
""",
        (
            """\
def trim_words(text):
    return ' '.join(word[@:len(word) - @] for word in text.split())
""",
            """\
def trim_words(text):
    return text[@:len(text) - @]
""",
        ),
        lambda rng: [*_texts(rng), ("I am here",)],
    ),
    Family(
        "gaps",
        "big_gaps",
        (3, 5, 10),
        (
            (
                "Write a function big_gaps(numbers) that sorts a list of integers and returns"
                " the differences between neighbours that are larger than @, from left to "
                "right."
            ),
            (
                "Write big_gaps(numbers): put the numbers in ascending order and list those "
                "distances between neighbours that exceed @."
            ),
        ),
        """\
def big_gaps(numbers):
    values = sorted(numbers)
    return [b - a for a, b in zip(values, values[1:]) if b - a > @]
""",
        (
            """\
def big_gaps(numbers):
    return [b - a for a, b in zip(numbers, numbers[1:]) if b - a > @]
""",
            """\
def big_gaps(numbers):
    values = sorted(numbers)
    return [b - a for a, b in zip(values, values[1:]) if b - a >= @]
""",
        ),
        lambda rng: [([1, 30, 4, 9, 19],), *_lists(rng)],
    ),
)


def fill(text: str, parameter: Any) -> str:
    """The text with the parameter in the place of `@`, or its parts in those of `@0` and `@1`."""
    if isinstance(parameter, tuple):
        for place, part in enumerate(parameter):
            text = text.replace(f"@{place}", str(part))
        return text
    for word in ("item", "place", "character"):
        text = text.replace(f"{word}(s)", word if parameter == 1 else f"{word}s")
    return text.replace("@", str(parameter))
