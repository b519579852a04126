"""Bandits with contexts, and games of chance: cards and dice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Instance, Outcomes, TableInstance, explored, family
from linmdp.types import Array


class Bandit(Instance):
    """Contexts from `draw`, and means (A,) of a context from `mean`."""

    def __init__(
        self,
        rng: np.random.Generator,
        A: int,
        space: spaces.Space[Any],
        draw: Callable[[np.random.Generator], Any],
        mean: Callable[[Any], Array],
    ) -> None:
        self.draw, self.mean = draw, mean
        some = np.array([mean(draw(rng)) for _ in range(200)])
        self.coins = bool(rng.random() < 0.4)
        self.low, self.unit = float(some.min()), float(some.max() - some.min())
        self.noise = rng.uniform(0.05, 0.5)
        self.scale, self.shift = float(rng.choice([0.1, 1.0, 20.0])), float(rng.choice([0.0, 0.0, -1.0]))
        super().__init__(H=int(rng.integers(1, 5)), A=A, space=space, ends=bool(rng.random() < 0.5))
        self.context: Any = None

    def paid(self, context: Any) -> Array:
        """The mean rewards of all actions, between 0 and 1 before they are scaled."""
        mean: Array = np.clip((self.mean(context) - self.low) / self.unit, 0, 1)
        return self.scale * (mean + self.shift)

    def begin(self) -> None:
        self.context = self.draw(self.np_random)

    def move(self, action: int) -> tuple[float, bool]:
        mean = float(self.paid(self.context)[action])
        self.context = self.draw(self.np_random)
        if self.coins:
            won = self.np_random.random() < mean / self.scale - self.shift
            return self.scale * (float(won) + self.shift), False
        return mean + self.scale * self.noise * self.np_random.standard_normal(), False

    def show(self) -> Any:
        return self.context


@family("bandits", "made", H=4, episodes={"quick": 600, "full": 1500})
def bandits(rng: np.random.Generator) -> Bandit:
    """Bandits with contexts: what an action pays depends on what is seen before, and nothing that is done matters
    later.

    An episode is one to four steps, each with a context of its own. In a third of the instances the context is one of a
    few numbers, and each number and action has a mean of its own, paid with noise or as 0 or 1. In a third it is a
    vector and the mean of an action is linear in it. In a third the mean is a sum of a few bumps and waves of the
    vector, or of its first two coordinates, so that the others tell nothing.
    """
    A, kind = int(rng.integers(2, 7)), rng.integers(3)
    if kind == 0:
        n = int(rng.integers(3, 16))
        means, chances = rng.random((n, A)), rng.dirichlet(np.full(n, 3.0))
        edges = chances.cumsum()[:-1]
        return Bandit(
            rng, A, spaces.Discrete(n), lambda r: int(edges.searchsorted(r.random())), lambda context: means[context]
        )
    k = int(rng.integers(2, 7))
    units, middle = 10 ** rng.uniform(-1, 2, k), rng.normal(0, 2, k)
    space = spaces.Box(
        (units * (middle - 4)).astype(np.float32), (units * (middle + 4)).astype(np.float32), dtype=np.float32
    )

    def draw(r: np.random.Generator) -> Array:
        seen: Array = (units * (middle + np.clip(r.standard_normal(k), -4, 4))).astype(np.float32)
        return np.clip(seen, space.low, space.high)

    if kind == 1:
        slopes, level = rng.normal(0, 1, (A, k)), rng.normal(0, 1, A)
        return Bandit(rng, A, space, draw, lambda x: slopes @ (x / units - middle) + level)
    told = 2 if rng.random() < 0.5 else k
    centres, waves = rng.normal(0, 1, (A, 3, told)), rng.normal(0, 1, (A, told))
    heights, phases = rng.normal(0, 1, (A, 3)), rng.uniform(0, 2 * np.pi, A)

    def bumps(x: Array) -> Array:
        z = (x / units - middle)[:told]
        near = np.exp(-((centres - z) ** 2).sum(axis=2) / (1 + told / 2))
        mean: Array = (heights * near).sum(axis=1) + np.sin(waves @ z + phases) / 2
        return mean

    return Bandit(rng, A, space, draw, bumps)


@family("cards", "made", H=12, episodes={"quick": 1000, "full": 2500})
def cards(rng: np.random.Generator) -> TableInstance:
    """A card game against a dealer, in the manner of blackjack.

    Cards are drawn with replacement from a deck with values from 1 on, of which the highest are more frequent in some
    instances. The player has two cards and sees one of the dealer's. To hit is to take a card: beyond the limit the
    stake is lost. To stick lets the dealer draw until it has enough: the higher sum within the limit wins, equal sums
    are a draw, and a sum of exactly the limit pays more in some instances. In some, a third action doubles the stake
    for a single card. An ace counts more where that keeps within the limit, in some instances. Limit, deck, the
    dealer's duty, stakes and the order of the actions are drawn. Shown are the player's sum, the dealer's card and
    whether an ace counts more, as three whole numbers, or all in one number.
    """
    limit = int(rng.integers(13, 27))
    m = int(rng.integers(5, limit // 2 + 1))
    duty = limit - int(rng.integers(2, 6))
    deck = np.ones(m)
    deck[-1] += int(rng.integers(0, 4))
    deck /= deck.sum()
    more = limit // 2 if rng.random() < 0.7 else 0  # what an ace counts beyond 1
    unit, bonus = float(rng.choice([0.5, 1.0, 10.0])), float(rng.choice([1.0, 1.5]))
    A = int(rng.integers(2, 4))
    order = rng.permutation(A)

    def dealt(total: int, soft: int, card: int) -> tuple[int, int]:
        """Sum and ace after a card; a sum beyond the limit is lost."""
        total += card
        if card == 1 and more and not soft and total + more <= limit:
            return total + more, 1
        if total > limit and soft:
            return total - more, 0
        return total, soft

    @cache
    def dealer(total: int, soft: int) -> tuple[float, ...]:
        """The law of the dealer's last sum, 0 where it is beyond the limit."""
        law = np.zeros(limit + 1)
        if total > limit or total >= duty:
            law[total if total <= limit else 0] = 1.0
        else:
            for card, p in enumerate(deck, 1):
                law += p * np.array(dealer(*dealt(total, soft, card)))
        return tuple(law)

    def settled(total: int, card: int, stake: float) -> Outcomes:
        """Outcomes of a sum against the dealer's card."""
        if total > limit:
            return [(1.0, None, -stake)]
        law = np.array(dealer(*dealt(0, 0, card)))
        won = stake * (bonus if total == limit else 1.0)
        return [
            (float(law[:total].sum()), None, won),
            (float(law[total]), None, 0.0),
            (float(law[total + 1 :].sum()), None, -stake),
        ]

    def outcomes(state: tuple[int, int, int], action: int) -> Outcomes:
        total, card, soft = state
        what = int(order[action])
        if what == 0:
            yield from settled(total, card, unit)
            return
        for new, p in enumerate(deck, 1):
            after, ace = dealt(total, soft, new)
            if what == 2:
                yield from ((float(p) * q, to, pay) for q, to, pay in settled(after, card, 2 * unit))
            elif after > limit:
                yield float(p), None, -unit
            else:
                yield float(p), (after, card, ace), 0.0

    start: dict[tuple[int, int, int], float] = {}
    for one, p in enumerate(deck, 1):
        for two, q in enumerate(deck, 1):
            total, soft = dealt(*dealt(0, 0, one), two)
            for card, r in enumerate(deck, 1):
                start[total, card, soft] = start.get((total, card, soft), 0.0) + float(p * q * r)
    model, states = explored(start, A, 12, outcomes)
    if rng.random() < 0.3:
        return TableInstance(model)
    space = spaces.Tuple([spaces.Discrete(limit + 1), spaces.Discrete(m + 1), spaces.Discrete(2)])
    return TableInstance(model, space=space, shown=lambda s: states[s])


def pig(rng: np.random.Generator) -> TableInstance:
    """Hold or throw."""
    faces, dice, rounds = int(rng.integers(4, 11)), int(rng.integers(1, 3)), int(rng.integers(1, 4))
    bad = int(rng.integers(1, 3)) if faces > 5 and dice == 1 else 1  # faces that lose, from 1 on
    most = 5 * faces
    unit, consolation = float(rng.choice([0.1, 1.0])), float(rng.choice([0.0, 2.0]))
    throws = Counter(sum(t) if min(t) > bad else 0 for t in product(range(1, faces + 1), repeat=dice))
    hold = int(rng.integers(2))

    def outcomes(state: tuple[int, int], action: int) -> Outcomes:
        total, left = state
        following = (0, left - 1) if left > 1 else None
        if action == hold:
            return [(1.0, following, unit * total)]
        chances = [(n / faces**dice, thrown) for thrown, n in throws.items()]
        lost = following, unit * consolation
        return [(p, (min(total + t, most), left), 0.0) if t else (p, *lost) for p, t in chances]

    model, states = explored({(0, rounds): 1.0}, 2, 12 * rounds, outcomes)
    space = spaces.MultiDiscrete([most + 1, rounds + 1])
    return TableInstance(model, space=space, shown=lambda s: np.array(states[s]), ends=bool(rng.random() < 0.5))


def yahtzee(rng: np.random.Generator) -> TableInstance:
    """Which dice to throw again."""
    n = int(rng.integers(2, 4))
    faces, throws = int(rng.integers(4, 7 if n == 2 else 6)), int(rng.integers(2, 4))
    unit, summed = float(rng.choice([0.1, 1.0])), rng.uniform(0.0, 0.5)
    pays = rng.permutation([rng.uniform(0, 3), rng.uniform(3, 10), rng.uniform(6, 20)])  # a pair, a run, all equal
    order = rng.permutation(2**n)

    def paid(dice: tuple[int, ...]) -> float:
        different = len(set(dice))
        run = different == n and dice[-1] - dice[0] == n - 1
        pattern = pays[2] if different == 1 else pays[1] if run else pays[0] if different < n else 0.0
        return float(unit * (summed * sum(dice) + pattern))

    def outcomes(state: tuple[tuple[int, ...], int], action: int) -> Outcomes:
        dice, left = state
        again = [i for i in range(n) if order[action] >> i & 1]
        if not again:
            yield 1.0, None, paid(dice)
            return
        kept = [dice[i] for i in range(n) if i not in again]
        p = faces ** -len(again)
        for new in product(range(1, faces + 1), repeat=len(again)):
            after = tuple(sorted((*kept, *new)))
            yield (p, (after, left - 1), 0.0) if left > 1 else (p, None, paid(after))

    start = Counter(tuple(sorted(t)) for t in product(range(1, faces + 1), repeat=n))
    model, states = explored({(t, throws): c / faces**n for t, c in start.items()}, 2**n, throws, outcomes)
    space = spaces.MultiDiscrete([*[faces + 1] * n, throws + 1])
    return TableInstance(model, space=space, shown=lambda s: np.array([*states[s][0], states[s][1]]))


@family("dice", "kept", H=36, episodes={"quick": 250, "full": 600})
def dice(rng: np.random.Generator) -> TableInstance:
    """Dice games: when to stop, and what to throw again.

    Half of the instances are in the manner of Pig: in each of one to three rounds one or two dice are thrown again and
    again, and what they show is added up, until the player holds, which pays the sum, or a bad face comes up, which
    loses it. The other half is in the manner of Yahtzee: two or three dice are thrown, then chosen ones again, two or
    three times at most; at the end, or where none is chosen, sums, pairs, equal and consecutive faces pay. An action
    chooses a subset of the dice, which lie in order. Faces, rounds, what is bad and what is paid are drawn. Shown are
    whole numbers: the sum and the rounds that are left, or the dice and the throws that are left.
    """
    return pig(rng) if rng.random() < 0.5 else yahtzee(rng)
