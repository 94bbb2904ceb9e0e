"""Families of word problems for `generate_workflow_tasks.py`, each a function of a random stream.

A family returns a question in one of several wordings, its exact gold, the worked solution, and the
results of typical slips as distractors. Numbers are drawn so that the story makes sense: nobody is
aged -3, and a price has at most two decimals.
"""

import math
import random
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple


class Problem(NamedTuple):
    """One word problem; the gold and the distractors as they are written."""

    question: str
    gold: str
    solution: str
    distractors: tuple[str, ...]


LISTED = (
    "Amira Bruno Carla Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Liam Maya Nils Olga Pedro "
    "Quinn Rosa Samir Tara Umar Vera Wei Yara Zoe"
)
NAMES = LISTED.split()


def plain(value: Fraction | int) -> str:
    """An integer, a decimal of at most two places, or else a fraction."""
    value = Fraction(value)
    if value.denominator == 1:
        return str(value.numerator)
    if 100 % value.denominator == 0:
        return f"{float(value):.2f}"
    return f"{value.numerator}/{value.denominator}"


def made(
    rng: random.Random,
    wordings: tuple[str, ...],
    gold: Fraction | int | str,
    solution: str,
    slips: tuple[Fraction | int | str, ...],
) -> Problem:
    """A problem in one of its wordings; slips that hit the gold are left out."""
    told = gold if isinstance(gold, str) else plain(gold)
    texts = [slip if isinstance(slip, str) else plain(slip) for slip in slips]
    wrong = tuple(dict.fromkeys(text for text in texts if text != told))
    return Problem(rng.choice(wordings), told, solution, wrong)


def change(rng: random.Random) -> Problem:
    """What is left of a note after two purchases."""
    name = rng.choice(NAMES)
    a, b, p, q = rng.randint(2, 7), rng.randint(2, 9), rng.randint(2, 6), rng.randint(1, 3)
    cost = a * p + b * q
    note = next(n for n in (20, 50, 100) if n > cost)
    wordings = (
        f"{name} buys {a} notebooks at ${p} each and {b} pens at ${q} each, and pays with a "
        f"${note} note. How many dollars of change does {name} get back?",
        f"A notebook costs ${p} and a pen costs ${q}. {name} takes {a} notebooks and {b} pens "
        "to the "
        f"till and hands over ${note}. What is the change, in dollars?",
    )
    solution = f"{a} * {p} + {b} * {q} = {cost} dollars; {note} - {cost} = {note - cost}."
    return made(rng, wordings, note - cost, solution, (cost, note - a * p, note - cost + q))


def discount(rng: random.Random) -> Problem:
    """A price less some percent."""
    price, off = rng.choice(range(20, 200, 4)), rng.choice((5, 10, 15, 20, 25, 30, 40))
    thing = rng.choice(("jacket", "lamp", "suitcase", "chair", "kettle"))
    left = Fraction(price * (100 - off), 100)
    wordings = (
        f"A {thing} costs ${price}. In a sale it is reduced by {off}%. What does it cost now, in "
        "dollars?",
        f"The shop takes {off}% off the price of a {thing}, which used to be ${price}. How many "
        f"dollars is the {thing} in the sale?",
    )
    solution = f"{price} * (100 - {off}) / 100 = {plain(left)} dollars."
    slips = (price - left, Fraction(price * (100 + off), 100), price - off)
    return made(rng, wordings, left, solution, slips)


def average_speed(rng: random.Random) -> Problem:
    """Two speeds, weighted by their times."""
    v, w = rng.sample((30, 40, 50, 60, 80, 90), 2)
    s, t = rng.randint(1, 4), rng.randint(1, 4)
    name = rng.choice(NAMES)
    mean = Fraction(v * s + w * t, s + t)
    hours = [f"{n} hour{'s' if n > 1 else ''}" for n in (s, t)]
    wordings = (
        f"{name} drives for {hours[0]} at {v} km/h and then for {hours[1]} at {w} km/h. What "
        "is the "
        "average speed of the whole trip in kilometres per hour? Give an exact value.",
        f"On a trip, {name} first keeps to {v} km/h for {hours[0]}, then to {w} km/h for "
        f"{hours[1]}. "
        "Find the average speed over the whole time, in km/h, as an exact value.",
    )
    solution = f"({v} * {s} + {w} * {t}) / ({s} + {t}) = {plain(mean)} km/h."
    slips = (Fraction(v + w, 2), v * s + w * t, Fraction(v * t + w * s, s + t))
    return made(rng, wordings, mean, solution, slips)


def recipe(rng: random.Random) -> Problem:
    """A recipe scaled to other guests."""
    people, amount = rng.choice((4, 6, 8)), Fraction(rng.randint(2, 9), rng.choice((2, 3, 4)))
    guests = rng.choice([n for n in range(3, 15) if n != people])
    food = rng.choice(("flour", "rice", "milk", "sugar"))
    dish = {"flour": "bread", "rice": "risotto", "milk": "porridge", "sugar": "jam"}[food]
    need = amount * guests / people
    told = f"{amount.numerator}/{amount.denominator}" if amount.denominator > 1 else str(amount)
    exact = f"{need.numerator}/{need.denominator}" if need.denominator > 1 else str(need)
    wordings = (
        f"A recipe for {people} people needs {told} cups of {food}. How many cups of {food} are "
        f"needed for {guests} people? Give a fraction or a whole number.",
        f"To make {dish} for {people} people you take {told} cups of {food}. You cook for "
        f"{guests}. "
        f"How many cups of {food} do you take, as a fraction or a whole number?",
    )
    solution = f"{told} / {people} * {guests} = {exact} cups."
    return made(rng, wordings, exact, solution, (amount * guests, amount * people / guests, amount))


def work_rate(rng: random.Random) -> Problem:
    """Two workers who work together."""
    a, b = rng.sample(range(2, 13), 2)
    together = Fraction(a * b, a + b)
    one, two = rng.sample(NAMES, 2)
    wordings = (
        f"One pipe fills a tank in {a} hours, another in {b} hours. How many hours do both "
        "together "
        "need? Give an exact value.",
        f"{one} can paint a room in {a} hours and {two} in {b} hours. How many hours does it "
        "take if "
        "they paint it together? Give an exact value.",
    )
    solution = f"In an hour 1/{a} + 1/{b} is done, so it takes {together} hours."
    slips = (Fraction(a + b, 2), Fraction(a + b), Fraction(1, 1) / together)
    return made(rng, wordings, together, solution, slips)


def ages(rng: random.Random) -> Problem:
    """An age from a doubling in the future."""
    older, younger = rng.sample(NAMES, 2)
    ahead = rng.randint(2, 10)
    gap = ahead + rng.randint(2, 15)
    wordings = (
        f"{older} is {gap} years older than {younger}. In {ahead} years {older} will be twice "
        "as old "
        f"as {younger}. How old is {younger} now?",
        f"In {ahead} years, {older} will be exactly twice as old as {younger}. {older} is "
        f"{gap} years "
        f"older. What is the present age of {younger}, in years?",
    )
    solution = f"y + {gap} + {ahead} = 2(y + {ahead}), so y = {gap} - {ahead} = {gap - ahead}."
    return made(rng, wordings, gap - ahead, solution, (gap, gap + ahead, 2 * gap - ahead))


def linear_equation(rng: random.Random) -> Problem:
    """A linear equation in x."""
    a, c = rng.sample(range(2, 10), 2)
    b, d = rng.randint(-12, 12) or 5, rng.randint(-12, 12) or 7
    x = Fraction(d - b, a - c)
    left, right = f"{a}x {'+' if b > 0 else '-'} {abs(b)}", f"{c}x {'+' if d > 0 else '-'} {abs(d)}"
    wordings = (
        f"Solve the equation {left} = {right} for x.",
        f"For which value of x is {left} equal to {right}?",
        f"Find x if {left} = {right}. Give an exact value.",
    )
    solution = f"({a} - {c})x = {d} - ({b}), so x = {x}."
    return made(
        rng, wordings, str(x), solution, (-x, Fraction(d + b, a - c), Fraction(d - b, a + c))
    )


def tickets(rng: random.Random) -> Problem:
    """Two kinds of tickets from a total."""
    adult, child = rng.randint(8, 15), rng.randint(3, 7)
    n, m = rng.randint(10, 60), rng.randint(10, 60)
    money, people = adult * n + child * m, n + m
    place = rng.choice(("museum", "cinema", "zoo", "swimming pool"))
    wordings = (
        f"A {place} charges ${adult} for an adult and ${child} for a child. One morning {people} "
        f"people pay ${money} altogether. How many adults are there?",
        f"Tickets for the {place} cost ${adult} for adults and ${child} for children. {people} "
        f"tickets were sold for ${money} in all. How many of them were for adults?",
    )
    solution = f"If all were children: {child * people} dollars. ({money} - {child * people}) / "
    solution += f"({adult} - {child}) = {n} adults."
    return made(rng, wordings, n, solution, (m, people // 2, money // adult))


def consecutive(rng: random.Random) -> Problem:
    """Three consecutive integers from their sum."""
    step, word = rng.choice(((1, "integers"), (2, "even integers"), (2, "odd integers")))
    first = rng.randint(5, 60)
    if step == 2:
        first += (first % 2 == 0) == (word == "odd integers")
    total = 3 * first + 3 * step
    wordings = (
        f"The sum of three consecutive {word} is {total}. What is the largest of them?",
        f"Three consecutive {word} add up to {total}. Find the greatest one.",
    )
    solution = f"The middle one is {total} / 3 = {first + step}, the largest {first + 2 * step}."
    return made(rng, wordings, first + 2 * step, solution, (first, first + step, first + 3 * step))


def percent_change(rng: random.Random) -> Problem:
    """An increase in percent."""
    old = rng.choice((20, 40, 50, 80, 120, 160, 200, 250))
    grown = rng.choice([p for p in (5, 10, 15, 20, 25, 30, 45, 60) if old * p % 100 == 0])
    new = old + old * grown // 100
    what = rng.choice(("members of a choir", "subscribers of a newsletter", "pupils of a school"))
    subject, whole = what.split(" of ")
    wordings = (
        f"The number of {what} rises from {old} to {new}. By what percent does it rise?",
        f"Last year {whole} had {old} {subject}; this year it has {new}. What is the percentage "
        "increase?",
    )
    solution = f"({new} - {old}) / {old} * 100 = {grown} percent."
    slips = (new - old, Fraction(100 * new, old), grown + 5)
    return made(rng, wordings, grown, solution, slips)


def ratio(rng: random.Random) -> Problem:
    """A sum shared in a ratio."""
    a, b = rng.sample(range(2, 8), 2)
    g = math.gcd(a, b)
    a, b = a // g, b // g
    unit = rng.randint(3, 20)
    one, two = rng.sample(NAMES, 2)
    total = unit * (a + b)
    wordings = (
        f"{one} and {two} share ${total} in the ratio {a}:{b}. How many dollars does {one} get?",
        f"A prize of ${total} is divided between {one} and {two} in the ratio {a} to {b}. What "
        "is the "
        f"share of {one}, in dollars?",
    )
    solution = f"One part is {total} / ({a} + {b}) = {unit}; {one} gets {a} * {unit} = {a * unit}."
    return made(rng, wordings, a * unit, solution, (b * unit, unit, Fraction(total, 2)))


def mean_score(rng: random.Random) -> Problem:
    """The next score for a wanted mean."""
    scores = [rng.randint(55, 95) for _ in range(rng.randint(3, 5))]
    count = len(scores)
    total = sum(scores)
    options = [m for m in range(60, 95) if 50 <= m * (count + 1) - total <= 100]
    mean = rng.choice(options or [total // count])
    need = mean * (count + 1) - total
    name = rng.choice(NAMES)
    listed = ", ".join(map(str, scores[:-1])) + f" and {scores[-1]}"
    wordings = (
        f"{name} has scored {listed} points in {count} tests. How many points are needed in "
        "the next "
        f"test for a mean of {mean}?",
        f"So far the test results of {name} are {listed}. What must the next result be if the "
        "average "
        f"of all {count + 1} is to be {mean}?",
    )
    solution = f"{mean} * {count + 1} - {total} = {need}."
    return made(rng, wordings, need, solution, (mean, mean * count - total + mean - 1, need + 10))


def rectangle(rng: random.Random) -> Problem:
    """An area from perimeter and difference of sides."""
    width, more = rng.randint(3, 20), rng.randint(2, 12)
    length = width + more
    around = 2 * (width + length)
    what = rng.choice(("garden", "field", "courtyard", "playground"))
    wordings = (
        f"A rectangular {what} is {more} metres longer than it is wide, and its perimeter is "
        f"{around} "
        "metres. What is its area in square metres?",
        f"The fence around a rectangular {what} is {around} metres long. The longer side "
        "exceeds the "
        f"shorter one by {more} metres. Find the area of the {what} in square metres.",
    )
    solution = f"2(w + w + {more}) = {around}, so w = {width} and the area is {width * length}."
    slips = (width * around // 2, width + length, length * length, width * more)
    return made(rng, wordings, width * length, solution, slips)


def quadratic(rng: random.Random) -> Problem:
    """Both roots of a quadratic equation."""
    p, q = sorted(rng.sample([n for n in range(-9, 10) if n], 2))
    if p == -q:
        q += 1
    p, q = sorted((p, q))
    b, c = -(p + q), p * q
    x = "x" if abs(b) == 1 else f"{abs(b)}x"
    middle = f" {'+' if b > 0 else '-'} {x}" if b else ""
    text = f"x^2{middle} {'+' if c > 0 else '-'} {abs(c)} = 0"
    wordings = (
        f"What are the solutions of {text}? List them separated by a comma.",
        f"Find all x with {text}. Separate the values by a comma.",
    )
    solution = f"The roots have the sum {p + q} and the product {c}: they are {p} and {q}."
    return made(rng, wordings, f"{p}, {q}", solution, (f"{-q}, {-p}", f"{p}", f"{p}, {q + 1}"))


def hypotenuse(rng: random.Random) -> Problem:
    """The diagonal of a rectangle, as a root."""
    a, b = sorted(rng.sample(range(2, 12), 2))
    square = a * a + b * b
    outside = max(n for n in range(1, 20) if square % (n * n) == 0)
    inside = square // outside**2
    root = f"\\sqrt{{{inside}}}" if inside > 1 else ""
    exact = f"{outside if outside > 1 or not root else ''}{root}"
    wordings = (
        f"The legs of a right triangle are {a} cm and {b} cm long. What is the exact length of its "
        "hypotenuse, in cm?",
        f"A rectangle measures {a} cm by {b} cm. Give the exact length of its diagonal in "
        "centimetres.",
    )
    solution = f"The square of the length is {a}^2 + {b}^2 = {square}, so it is {exact} cm."
    slips = (a + b, str(square), f"\\sqrt{{{a + b}}}", f"\\sqrt{{{square + 1}}}")
    return made(rng, wordings, exact, solution, slips)


def mixture(rng: random.Random) -> Problem:
    """The strength of a mixture."""
    low, high = sorted(rng.sample((5, 10, 20, 25, 40, 60), 2))
    n, m = rng.randint(1, 6), rng.randint(1, 6)
    percent = Fraction(low * n + high * m, n + m)
    litres = [f"{k} litre{'s' if k > 1 else ''}" for k in (n, m)]
    wordings = (
        f"A chemist mixes {litres[0]} of a {low}% salt solution with {litres[1]} of a {high}% "
        "solution. What percent of the mixture is salt? Give an exact value.",
        f"{litres[0].capitalize()} of {low}% juice and {litres[1]} of {high}% juice are poured "
        "together. What percentage of the blend is juice? Give an exact value.",
    )
    solution = f"({low} * {n} + {high} * {m}) / {n + m} = {plain(percent)} percent."
    slips = (Fraction(low + high, 2), low + high, Fraction(low * m + high * n, n + m))
    return made(rng, wordings, percent, solution, slips)


def handshakes(rng: random.Random) -> Problem:
    """Pairs out of n."""
    n = rng.randint(5, 30)
    pairs = n * (n - 1) // 2
    wordings = (
        f"{n} people meet and everyone shakes hands once with everyone else. How many "
        "handshakes are "
        "there?",
        f"In a league of {n} teams each team plays every other team exactly once. How many matches "
        "are played?",
        f"How many straight lines join {n} points, if no three of them lie on one line?",
    )
    solution = f"{n} * {n - 1} / 2 = {pairs}."
    return made(rng, wordings, pairs, solution, (n * (n - 1), n * n, n * (n + 1) // 2))


def marbles(rng: random.Random) -> Problem:
    """Two draws without replacement."""
    red, blue, green = (rng.randint(2, 9) for _ in range(3))
    total = red + blue + green
    wordings = (
        f"A bag holds {red} red, {blue} blue and {green} green marbles. Two are drawn without "
        "putting "
        "the first back. What is the probability that both are red, as a fraction?",
        f"From a box with {red} red, {blue} blue and {green} green balls, two balls are taken "
        "at the "
        "same time. Find the probability, as a fraction, that both are red.",
    )
    chance = Fraction(red * (red - 1), total * (total - 1))
    solution = f"{red}/{total} * {red - 1}/{total - 1} = {chance}."
    slips = (
        str(Fraction(red * red, total * total)),
        str(Fraction(red, total)),
        f"{red}/{total - 1}",
    )
    return made(rng, wordings, str(chance), solution, slips)


def sequence(rng: random.Random) -> Problem:
    """The sum of an arithmetic sequence."""
    first, step, n = rng.randint(2, 20), rng.randint(2, 9), rng.randint(8, 30)
    last = first + (n - 1) * step
    total = n * (first + last) // 2
    wordings = (
        f"A theatre has {n} rows. The first row has {first} seats and each row has {step} "
        "seats more "
        "than the one before it. How many seats are there altogether?",
        f"{rng.choice(NAMES)} saves ${first} in the first week and ${step} more each week than "
        "in the "
        f"week before. How many dollars have been saved after {n} weeks?",
    )
    solution = f"The last term is {last}; {n} * ({first} + {last}) / 2 = {total}."
    return made(rng, wordings, total, solution, (last, n * first + step, total + last + step))


def machine(rng: random.Random) -> Problem:
    """Minutes of work, told in hours."""
    parts, minutes = rng.randint(3, 12), rng.randint(2, 9)
    batches = rng.randint(15, 60)
    hours = Fraction(batches * minutes, 60)
    wordings = (
        f"A machine makes {parts} parts in {minutes} minutes. How many hours does it need for "
        f"{parts * batches} parts? Give an exact value.",
        f"Every {minutes} minutes a printer finishes {parts} posters. In how many hours are "
        f"{parts * batches} posters finished? Give an exact value.",
    )
    solution = f"{batches} * {minutes} = {batches * minutes} minutes, which is {hours} hours."
    slips = (batches * minutes, Fraction(batches, 60), Fraction(batches * parts, 60))
    return made(rng, wordings, hours, solution, slips)


def buses(rng: random.Random) -> Problem:
    """A quotient that is rounded up."""
    seats = rng.choice((12, 18, 24, 36, 45))
    people = seats * rng.randint(3, 9) + rng.randint(1, seats - 1)
    need = -(-people // seats)
    wordings = (
        f"{people} pupils go on a trip in buses with {seats} seats each. How many buses are "
        "needed?",
        f"A camp expects {people} guests and has tents for {seats} guests each. What is the "
        "smallest "
        "number of tents that will do?",
    )
    solution = f"{people} / {seats} is more than {need - 1}, so {need} are needed."
    return made(rng, wordings, need, solution, (need - 1, Fraction(people, seats), need + 1))


def interest(rng: random.Random) -> Problem:
    """Capital with simple interest."""
    money, rate, years = (
        rng.choice(range(200, 3000, 50)),
        rng.choice((2, 3, 4, 5, 6)),
        rng.randint(2, 6),
    )
    gain = Fraction(money * rate * years, 100)
    name = rng.choice(NAMES)
    wordings = (
        f"{name} puts ${money} into an account with {rate}% simple interest a year. How many "
        "dollars "
        f"are in the account after {years} years?",
        f"A loan of ${money} carries simple interest of {rate}% a year. What must be paid back in "
        f"total after {years} years, in dollars?",
    )
    solution = f"{money} + {money} * {rate} / 100 * {years} = {plain(money + gain)} dollars."
    slips = (gain, money + gain / years, money + rate * years)
    return made(rng, wordings, money + gain, solution, slips)


def posts(rng: random.Random) -> Problem:
    """Spaces and what stands between them."""
    gap, spaces = rng.randint(2, 9), rng.randint(8, 40)
    long = gap * spaces
    wordings = (
        f"Along a straight path of {long} metres a lamp stands every {gap} metres, one at each end "
        "included. How many lamps are there?",
        f"A straight fence is {long} metres long and has a post every {gap} metres, with a post at "
        "both ends. How many posts does it have?",
    )
    solution = f"{long} / {gap} = {spaces} spaces, so {spaces + 1} in all."
    return made(rng, wordings, spaces + 1, solution, (spaces, spaces - 1, spaces + 2))


def catching_up(rng: random.Random) -> Problem:
    """When the faster one catches up."""
    slow, lead = rng.choice((4, 5, 6, 12)), rng.randint(1, 4)
    fast = slow + rng.choice((2, 3, 4, 6, 8))
    one, two = rng.sample(NAMES, 2)
    hours = Fraction(slow * lead, fast - slow)
    word = f"{lead} hour{'s' if lead > 1 else ''}"
    wordings = (
        f"{one} sets out at {slow} km/h. {two} follows {word} later on the same road at {fast} "
        "km/h. "
        f"How many hours after setting out does {two} catch up? Give an exact value.",
        f"{two} starts {word} after {one} and rides at {fast} km/h, while {one} keeps going at "
        f"{slow} "
        f"km/h. How many hours does {two} ride before drawing level? Give an exact value.",
    )
    solution = (
        f"The lead is {slow * lead} km and shrinks by {fast - slow} km an hour: {hours} hours."
    )
    slips = (hours + lead, Fraction(slow * lead, fast), Fraction(slow * lead, fast + slow))
    return made(rng, wordings, hours, solution, slips)


FAMILIES: tuple[Callable[[random.Random], Problem], ...] = (
    change, discount, average_speed, recipe, work_rate, ages, linear_equation, tickets,
    consecutive, percent_change, ratio, mean_score, rectangle, quadratic, hypotenuse, mixture,
    handshakes, marbles, sequence, machine, buses, interest, posts, catching_up,
)  # fmt: skip
