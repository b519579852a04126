"""A card game against a dealer, in the manner of blackjack.

Cards are drawn with replacement from a deck with values from 1 on, of which the highest are more frequent in some
instances. The player has two cards and sees one of the dealer's. To hit is to take a card: beyond the limit the stake
is lost. To stick lets the dealer draw until it has enough: the higher sum within the limit wins, equal sums are a draw,
and a sum of exactly the limit pays more in some instances. In some, a third action doubles the stake for a single
card. An ace counts more where that keeps within the limit, in some instances. Limit, deck, the dealer's duty,
stakes and the order of the actions are drawn. Shown are the player's sum, the dealer's card and whether an ace counts
more, as three whole numbers, or all in one number.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from gymnasium import spaces

from linmdp.envs.general.base import Family, TableInstance
from linmdp.envs.general.explored import explored

State = tuple[int, int, int]
"""The player's sum, the dealer's card, whether an ace counts more in it."""


def make(rng: np.random.Generator) -> TableInstance:
    """Draw a deck and the rules."""
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

    def settled(total: int, card: int, stake: float) -> list[tuple[float, State | None, float]]:
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

    def outcomes(state: State, action: int) -> list[tuple[float, State | None, float]]:
        total, card, soft = state
        what = int(order[action])
        if what == 0:
            return settled(total, card, unit)
        result: list[tuple[float, State | None, float]] = []
        for new, p in enumerate(deck, 1):
            after, ace = dealt(total, soft, new)
            if what == 2:
                result += [(float(p) * q, to, pay) for q, to, pay in settled(after, card, 2 * unit)]
            elif after > limit:
                result.append((float(p), None, -unit))
            else:
                result.append((float(p), (after, card, ace), 0.0))
        return result

    start: dict[State, float] = {}
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


FAMILY = Family(name="cards", half="made", make=make, H=12, episodes={"quick": 1000, "full": 2500})
