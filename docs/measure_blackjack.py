"""What Blackjack's policies are worth exactly: the best one, and those that are played after 10,000 hands.

.venv/bin/python docs/measure_blackjack.py SAB FIRST SEEDS     (SAB: true or false; seeds FIRST, FIRST + 1, ...)

Cards are drawn with replacement, and the dealer stands on 17, so that all values follow from sums over thirteen cards.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

import linmdp
from linmdp.features.unit import UnitFeatures

CARDS = dict.fromkeys(range(1, 10), 1 / 13) | {10: 4 / 13}
SIZES, EPISODES, BUST = (32, 11, 2), 10_000, 22
Policy = Callable[[int, int, int], float]
"""From the sum, the dealer's card and whether an ace counts 11 to the probability of another card."""


def with_card(total: int, ace: int, card: int) -> tuple[int, int]:
    """The sum and whether an ace counts 11 in it, after another card."""
    hard = total - 10 * ace + card
    return (hard + 10, 1) if (ace or card == 1) and hard + 10 <= 21 else (hard, 0)


@cache
def dealer_ends(total: int, ace: int) -> tuple[float, ...]:
    """The probability of each sum with which the dealer ends, (23,); over 21 they are one."""
    ends = np.zeros(BUST + 1)
    if total >= 17:
        ends[min(total, BUST)] = 1.0
    else:
        for card, chance in CARDS.items():
            ends += chance * np.array(dealer_ends(*with_card(total, ace, card)))
    return tuple(ends.tolist())


def stick(total: int, dealer: int) -> float:
    """The value of no more cards."""
    ends = np.array(dealer_ends(11, 1) if dealer == 1 else dealer_ends(dealer, 0))
    return float(ends[:total].sum() + ends[BUST] - ends[total + 1 : BUST].sum())


def natural(dealer: int) -> float:
    """The value of a first hand of 21, with sab: it wins against all but another."""
    return 1 - (CARDS[10] if dealer == 1 else CARDS[1] if dealer == 10 else 0.0)


def value(policy: Policy | None, *, sab: bool) -> float:
    """The mean return of a policy; None: of the best one."""
    high, low = range(21, 11, -1), range(11, 3, -1)
    hands = [(n, 0) for n in high] + [(n, 1) for n in high] + [(n, 0) for n in low]
    total = 0.0
    for dealer, shown in CARDS.items():
        V, more = dict[tuple[int, int], float](), dict[tuple[int, int], float]()
        for hand in hands:
            following = [(with_card(*hand, card), chance) for card, chance in CARDS.items()]
            more[hand] = sum(chance * (-1.0 if then[0] > 21 else V[then]) for then, chance in following)
            V[hand] = chosen(policy, hand, dealer, stick(hand[0], dealer), more[hand])
        for one, p in CARDS.items():
            for other, q in CARDS.items():
                hand = with_card(*with_card(0, 0, one), other)
                special = sab and {one, other} == {1, 10}
                worth = chosen(policy, hand, dealer, natural(dealer), more[hand]) if special else V[hand]
                total += shown * p * q * worth
    return total


def chosen(policy: Policy | None, hand: tuple[int, int], dealer: int, stay: float, more: float) -> float:
    """The value of a hand with a policy, or of the better action."""
    if policy is None:
        return max(stay, more)
    another = policy(hand[0], dealer, hand[1])
    return another * more + (1 - another) * stay


def learned(seed: int, *, sab: bool, kernels: bool) -> float:
    """The exact value of the policy after all hands; without `kernels` each pair is learned by itself."""
    env = linmdp.make_env(f"gym:Blackjack-v1,sab={str(sab).lower()}")
    if not kernels:
        env.task = dataclasses.replace(env.task, features=UnitFeatures(int(np.prod(SIZES)), 2))
    agent = linmdp.make_agent("lsvi-ucb-fold", env, episodes=EPISODES)
    linmdp.run(env, agent, episodes=EPISODES, seed=seed)

    def policy(total: int, dealer: int, ace: int) -> float:
        stay, more = agent.q_values(0, int(np.ravel_multi_index((total, dealer, ace), SIZES)))
        return 0.5 if abs(more - stay) < 1e-9 else float(more > stay)

    return value(policy, sab=sab)


def main() -> None:
    """Print the values, those of all seeds and their means."""
    sab, first, seeds = sys.argv[1] == "true", int(sys.argv[2]), int(sys.argv[3])
    print(f"best policy {value(None, sab=sab):.4f}, random {value(lambda *_: 0.5, sab=sab):.4f}")
    for words, kernels in (("each pair by itself", False), ("no parameter", True)):
        found = np.array([learned(seed, sab=sab, kernels=kernels) for seed in range(first, first + seeds)])
        print(f"{words}: mean {found.mean():.4f}, {' '.join(f'{x:.4f}' for x in found)}", flush=True)


if __name__ == "__main__":
    main()
