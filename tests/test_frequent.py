"""States without a bound in bounded memory: exact while they fit, then those that came least count as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linmdp
from linmdp import LSVIUCB, Task
from linmdp.agents.memory.limited import FEWEST, REST, Joining, most_states
from linmdp.agents.memory.links import END
from linmdp.features import HashedFeatures

A, H = 3, 6


def task(stationary: bool = True) -> Task:
    features = HashedFeatures(A)
    return Task(S=None, A=A, d=features.d, H=H, reward_range=(0.0, 1.0), features=features, stationary=stationary)


def storage(agent: Any) -> Any:
    return agent._planner.storage


def play(agent: Any, states: int, episodes: int, seed: int) -> list[tuple[int, int, int, float, int | None]]:
    """Random transitions, those of some states rare; what was seen: step, state, action, reward, next state."""
    rng, seen = np.random.default_rng(seed), []
    agent.rng = np.random.default_rng(seed)

    def drawn() -> int:
        return 10**9 + 7 * int(states * rng.random() ** 3)

    for _ in range(episodes):
        agent.begin_episode()
        state = drawn()
        for h in range(H):
            action, following, over = agent.act(h, state), drawn(), bool(rng.random() < 0.1)
            reward = float(rng.integers(2))
            agent.observe(h, state, action, reward, following, over)
            seen.append((h, state, action, reward, None if over else following))
            state = following
            if over:
                break
        agent.end_episode()
    return seen


@pytest.mark.parametrize(
    "parameters", [{}, {"beta": 0.3}, {"stationary": False}, {"stationary": True, "discount": 0.9}]
)
def test_while_all_states_fit_nothing_changes(parameters: dict[str, Any]) -> None:
    exact, bounded = LSVIUCB(task(), **parameters), LSVIUCB(task(), storage="sparse", M=4000, **parameters)
    assert isinstance(storage(bounded), Joining)
    assert not isinstance(storage(exact), Joining)
    assert play(exact, 20, 30, seed=1) == play(bounded, 20, 30, seed=1)
    np.testing.assert_array_equal(exact.q_values(1, 10**9 + 7), bounded.q_values(1, 10**9 + 7))


class Relabelled:
    """The literal rule, with every sample at hand: a state that joins the rest is called so in all samples so far."""

    def __init__(self, most: int, M: int) -> None:
        self.most, self.M, self.order = most, M, list[int]()  # order: the number of each state
        self.samples = list[list[Any]]()

    def links(self) -> set[tuple[Any, ...]]:
        return {(h, s, a, to) for h, s, a, _, to in self.samples}

    def came(self, state: int) -> int:
        return sum(s == state for _, s, *_ in self.samples)

    def number(self, state: int) -> None:
        if state not in self.order:
            free = self.order.index(-1) if -1 in self.order else len(self.order)
            self.order[free : free + 1] = [state]

    def known(self) -> list[int]:
        return [s for s in self.order if s != -1]

    def add(self, sample: tuple[Any, ...]) -> None:
        while len(self.known()) + 3 > self.most or (len(self.links()) >= self.M and len(self.known()) > 1):
            self.number(REST)
            others = [s for s in self.known() if s != REST]
            joining = sorted(others, key=self.came)[: max(2, len(others) // 8)]
            self.order = [-1 if s in joining else s for s in self.order]
            for row in self.samples:
                row[1] = REST if row[1] in joining else row[1]
                row[4] = REST if row[4] in joining else row[4]
        self.number(sample[1])
        if sample[4] is not None:
            self.number(sample[4])
        self.samples.append(list(sample))


@given(M=st.integers(FEWEST * A, 90), states=st.integers(3, 60), seed=st.integers(0, 10**6))
def test_it_holds_what_relabelled_samples_say(M: int, states: int, seed: int) -> None:
    agent, slow = LSVIUCB(task(), storage="sparse", M=M), Relabelled(most_states(M, A), M)
    seen = play(agent, states, 12, seed)
    for sample in seen:
        slow.add((0, *sample[1:]))  # one regression for all steps
    held = storage(agent)
    names = {i: int(name) for i, name in enumerate(held.names) if name >= 0}
    assert sorted(names.values()) == sorted(slow.known())
    rows, to, sums = held.links.entries()
    found = {
        (0, names[int(r) // A], int(r) % A, None if int(t) == END else names[int(t)]): n
        for r, t, n in zip(rows, to, sums[0], strict=True)
    }
    expected = {link: sum((h, s, a, t) == link for h, s, a, _, t in slow.samples) for link in slow.links()}
    assert found == expected
    offset = agent._exploration.offset
    for i, name in names.items():
        for a in range(A):
            mine = [r - offset for _, s, b, r, _ in slow.samples if (s, b) == (name, a)]
            assert held.visits[0, i * A + a] == len(mine)
            assert held.ridge.u[0, i * A + a] == pytest.approx(sum(mine), abs=1e-9)
    assert len(held._number) <= held.most
    assert held.links.count <= M + A


def test_memory_does_not_grow_and_what_is_said_is_kept() -> None:
    agent = LSVIUCB(task(), max_bytes="300KiB")  # K is not needed
    assert "M" in agent.chosen
    held, sizes = list[int](), list[tuple[int, ...]]()
    for seed in range(4):
        play(agent, 5000, 250, seed)
        held.append(agent.nbytes)
        sizes.append((storage(agent).visits.size, storage(agent).names.size, storage(agent).links.keys.size))
    assert sizes[1] == sizes[2] == sizes[3]
    assert max(held) <= agent.chosen["bytes"] <= 300 << 10
    assert np.isfinite(agent.q_values(0, 10**9)).all()


@pytest.mark.parametrize("stationary", [True, False])
def test_it_is_saved_and_goes_on(stationary: bool) -> None:
    made: dict[str, Any] = {"storage": "sparse", "M": 30 * (1 if stationary else H), "stationary": stationary}
    agent, other = LSVIUCB(task(), **made), LSVIUCB(task(), **made)
    play(agent, 60, 20, seed=3)
    play(other, 10, 3, seed=4)  # another history, which must go
    other.load_state_dict(agent.state_dict())
    assert REST in storage(agent)._number
    assert play(agent, 60, 20, seed=5) == play(other, 60, 20, seed=5)
    np.testing.assert_array_equal(agent.q_values(0, 10**9), other.q_values(0, 10**9))


def test_a_state_that_joined_the_rest_is_hoped_for_again() -> None:
    agent = LSVIUCB(task(), storage="sparse", M=30)
    play(agent, 60, 30, seed=3)
    unknown = next(10**9 + 7 * i for i in range(60) if 10**9 + 7 * i not in storage(agent)._number)
    assert len(set(agent.q_values(0, unknown).tolist())) == 1
    assert agent.q_values(0, unknown)[0] >= agent.q_values(0, int(storage(agent).names[1])).max() - 1e-9


def test_too_few_links_are_refused() -> None:
    with pytest.raises(
        linmdp.InvalidParameter, match=r"'M' parameter .* must be a whole number in \[12, 10000000\]\. Got 11"
    ):
        LSVIUCB(task(), storage="sparse", M=11)
