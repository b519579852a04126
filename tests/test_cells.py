"""features=cells and storage=stagewise: the choice of numbers, the map, the regression, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import linmdp
from command import linmdp as command
from linmdp.agents import LSVIUCB
from linmdp.agents.exploration.spread import DOUBT, HOPE, Spread, optimistic_turn
from linmdp.agents.horizon import Horizon
from linmdp.agents.incumbent import BEST, CONSTANT, NEWEST, Incumbent
from linmdp.agents.storage.stagewise import followed
from linmdp.envs.adapter import GymTask
from linmdp.errors import InvalidData, InvalidParameter
from linmdp.features import ManyTiles
from linmdp.features.cell_choice import MOST_CHOSEN, Played, alike, described, fitted_cells, forward, moved
from linmdp.features.cells import Cells, Part, read_cells
from linmdp.io.tensorfile import packed
from linmdp.runner.start import shown_env
from linmdp.testing import check_agent
from linmdp.types import Task
from reference_cells import ReferenceStagewise

WIDTH, H = 3, 4


class Hall(gymnasium.Env[Any, Any]):
    """Eight bytes. Actions below 6 move byte 2 left, others right; byte 5 counts, the rest is noise. 6 pays 1."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (8,), np.uint8)
        self.action_space = spaces.Discrete(12)
        self.place = self.time = 0

    def _seen(self) -> np.ndarray:
        found = self.np_random.integers(0, 256, 8)
        found[2], found[5] = self.place, self.time
        return found.astype(np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.time = 3, 0
        return self._seen(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place, self.time = int(np.clip(self.place + (1 if action >= 6 else -1), 0, 6)), self.time + 1
        return self._seen(), float(self.place == 6), False, False, {}


@pytest.fixture(scope="module")
def hall() -> GymTask:
    return GymTask(Hall(), H=8, reward_low=0.0, reward_high=1.0, features="cells", warmup=2000)


def small_cells(sizes: tuple[int, ...] = (5, 4, 6, 9)) -> Cells:
    groups = [[Part(2)], [Part(0)], [Part(0), Part(1)], [Part(0), Part(1), Part(2, 1)]]
    return Cells(WIDTH, groups, sizes, np.array([0, 1, 0]))


def task_of(features: Cells, high: float = 1.0) -> Task:
    return Task(S=None, A=features.A, d=features.d, H=H, reward_range=(-1.0, high), features=features, stationary=True)


def test_phi_has_two_ones_in_each_group_and_norm_1() -> None:
    cells, states = small_cells(), np.random.default_rng(0).integers(0, 50, (20, WIDTH))
    phi = cells.batch(states)
    np.testing.assert_allclose((phi**2).sum(axis=-1), 1.0)
    assert (np.count_nonzero(phi, axis=-1) == 2 * cells.G).all()
    np.testing.assert_array_equal(phi[:, 0], phi[:, 2])  # actions of one class
    assert (cells.active(states) < cells.sizes).all()


def test_a_number_that_stands_alone_has_a_cell_for_every_byte() -> None:
    cells = Cells(2, [[Part(1)], [Part(0)]], [256, 256], np.array([0]))
    states = np.stack([np.arange(256), np.zeros(256, dtype=np.int64)], axis=1)
    assert len(np.unique(cells.active(states)[:, 1])) == 256


episodes = st.lists(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2), st.floats(-1, 1), st.booleans()),
        min_size=1,
        max_size=H,
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=20, deadline=None)
@given(play=episodes, M=st.sampled_from([5, 100]), beta=st.sampled_from([0.0, 0.3]), lam=st.sampled_from([0.125, 1.0]))
def test_stagewise_is_its_transcription(play: Any, M: int, beta: float, lam: float) -> None:
    task = task_of(small_cells())
    agent = LSVIUCB(task, beta=beta, lam=lam, discount=0.9, stationary=True, M=M)
    reference = ReferenceStagewise(task, beta=beta, lam=lam, discount=0.9, M=M)
    for episode in play:
        agent.begin_episode()
        reference.begin_episode()
        state = np.array([0, 0, 0])
        for h, (x, y, action, reward, terminated) in enumerate(episode):
            np.testing.assert_allclose(agent.q_values(h, state), reference.q_values(h, state), atol=1e-9)
            following = np.array([x, y, h + 1])
            for one in (agent, reference):
                one.observe(h, state, action, reward, following, terminated)
            state = following
            if terminated:
                break
        agent.end_episode()


def test_many_passes_are_the_ridge_regression() -> None:
    task = task_of(small_cells())
    agent = LSVIUCB(task, beta=0.0, lam=0.5, discount=0.9, stationary=True)
    rng, phi, rewards = np.random.default_rng(1), [], []
    agent.begin_episode()
    for h in range(H):
        state, action, reward = rng.integers(0, 4, WIDTH), int(rng.integers(3)), float(rng.uniform(-1, 1))
        agent.observe(h, state, action, reward, rng.integers(0, 4, WIDTH), True)
        phi.append(task.features.phi(state)[action])
        rewards.append(reward)
    task.features.passes = 200  # type: ignore[attr-defined]
    agent.end_episode()
    agent.begin_episode()
    X = np.array(phi)
    expected = np.linalg.solve(X.T @ X + 0.5 * np.eye(task.d), X.T @ np.array(rewards))
    for state in rng.integers(0, 4, (20, WIDTH)):
        np.testing.assert_allclose(agent.q_values(0, state), task.features.phi(state) @ expected, atol=1e-8)


def test_the_numbers_that_the_action_moves_are_found(hall: GymTask) -> None:
    cells = hall.task.features
    assert isinstance(cells, Cells)
    assert cells.found["chosen"][0] == 2
    assert cells.classes.tolist() == [0] * 6 + [1] * 6
    assert any("2 classes of 12 actions: 0 1 2 3 4 5; 6 7 8 9 10 11" in line for line in described(cells))


def test_where_nothing_pays_the_most_moved_numbers_are_chosen() -> None:
    rng = np.random.default_rng(0)
    episode = np.repeat(np.arange(20), 10)
    states = np.column_stack([rng.integers(0, 5, (200, 3)), np.tile(np.arange(10), 20)])
    played = Played(states, rng.integers(0, 2, 200), np.zeros(200), episode)
    told = moved(played, 2, rng)
    chosen, explained = forward(played, told, 2)
    assert chosen == [column for column, _ in told][:MOST_CHOSEN]
    assert explained == 0
    assert alike(played, chosen, 2).tolist() == [0, 1]  # so few actions are not merged
    assert alike(played, chosen, 12).tolist() == list(range(12))  # one class could learn nothing


def test_of_two_numbers_that_predict_alike_the_one_that_the_action_moves_is_chosen() -> None:
    rng, steps = np.random.default_rng(0), 20
    episode, step = np.repeat(np.arange(100), steps), np.tile(np.arange(steps), 100)
    place, actions = np.zeros(2000, dtype=np.int64), rng.integers(0, 2, 2000)
    for i in range(1, 2000):  # the first number goes up or down; the second is what it was at every sixth step
        place[i] = 8 if step[i] == 0 else np.clip(place[i - 1] + 2 * actions[i - 1] - 1, 0, 16)
    copied = place[np.arange(2000) - step % 6]
    for columns, chosen in (((place, copied), 0), ((copied, place), 1)):
        states = np.column_stack([*columns, step])
        told = moved(Played(states, actions, np.zeros(2000), episode), 2, rng)
        assert forward(Played(states, actions, copied == 8.0, episode), told, 2)[0][0] == chosen


@given(
    z=st.lists(st.floats(-9, 9), min_size=1, max_size=20),
    on=st.lists(st.booleans(), min_size=20, max_size=20),
    cut=st.integers(0, 19),
)
def test_what_follows_is_added_up_as_one_by_one(z: list[float], on: list[bool], cut: int) -> None:
    n = len(z)
    weight = 0.5 * np.array(on[:n])
    weight[cut % n] = 0.0
    expected = np.array(z)
    for i in range(cut % n - 1, cut % n - n, -1):  # backwards from where nothing follows, around the end
        expected[i % n] += weight[i % n] * expected[(i + 1) % n]
    np.testing.assert_allclose(followed(np.array(z), weight), expected, atol=1e-9)


def test_too_little_play_is_refused() -> None:
    played = Played(np.zeros((3, 2), dtype=np.int64), np.zeros(3, dtype=np.int64), np.zeros(3), np.zeros(3, dtype=int))
    with pytest.raises(InvalidData, match="raise 'warmup'"):
        fitted_cells(played, 2, np.random.default_rng(0))


def test_it_learns_where_to_go(hall: GymTask) -> None:
    result = linmdp.run(hall, linmdp.make_agent("lsvi-ucb-fold", hall), episodes=60, seed=0)
    assert result.rewards[-20:].mean() > 4.5  # three steps to get there, and five of eight that pay; random play: 0.5


def test_agents_on_cells_keep_their_contract() -> None:
    env = GymTask(Hall(), H=6, reward_low=0.0, reward_high=1.0, features="cells", warmup=500)
    for spec in ("lsvi-ucb", "lsvi-ucb-fold:M=30", "lsvi-ucb:beta=0.1,stationary=true,discount=0.9"):
        check_agent(spec, env=env)


def test_a_file_brings_the_same_cells_back(hall: GymTask, tmp_path: Path) -> None:
    cells, path = hall.task.features, tmp_path / "hall.safetensors"
    assert isinstance(cells, Cells)
    cells.save(path)
    again = read_cells(path)
    states = np.random.default_rng(0).integers(0, 256, (50, 9))
    np.testing.assert_array_equal(again.active(states), cells.active(states))
    assert again.found == cells.found
    env = GymTask(Hall(), H=8, reward_low=0.0, reward_high=1.0, features="cells", model=str(path))
    assert env.task.d == cells.d
    with pytest.raises(InvalidParameter, match="'model' parameter of cells"):
        GymTask("Taxi-v3", features="cells", model=str(path))


def test_a_file_that_is_not_groups_of_cells_is_refused(tmp_path: Path) -> None:
    arrays = {"parts": np.array([[0, 7, 0]]), "sizes": np.array([4]), "classes": np.array([0])}
    for meta, change in (({"width": 3}, {}), ({"width": 9}, {"sizes": np.array([0])}), ({}, {})):
        path = tmp_path / "bad.safetensors"
        path.write_bytes(packed("cells", meta, arrays | change))
        with pytest.raises(InvalidData):
            read_cells(path)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("lsvi-ucb:stationary=false", "'discount' parameter"),
        ("lsvi-ucb:storage=sparse", "storage"),
        ("lsvi-ucb:lam=0.1", "'lam' parameter"),
        ("lsvi-phe", "written out"),
        ("lsvi-ucb:max_bytes=1KiB", "max_bytes"),
    ],
)
def test_what_stages_cannot_do_is_refused_in_one_line(hall: GymTask, agent: str, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words) as caught:
        linmdp.make_agent(agent, hall)
    assert "\n" not in str(caught.value)


def test_stages_want_groups_of_cells() -> None:
    with pytest.raises(InvalidParameter, match="not groups of cells"):
        linmdp.make_agent("lsvi-ucb:storage=stagewise", linmdp.make_env("gym:CartPole-v1"))
    with pytest.raises(InvalidParameter, match="whole numbers for cells"):
        linmdp.make_env("gym:CartPole-v1,features=cells")


def test_the_best_plan_acts_until_another_is_better() -> None:
    incumbent, rng = Incumbent(2, 0), np.random.default_rng(0)
    good, bad, better = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([2.0, 2.0])

    def play(w: np.ndarray, mean: float, most: int) -> None:
        incumbent.planned()
        for _ in range(most):
            incumbent.see(mean + rng.normal(), w, 0.5)
            if incumbent.acting == BEST:
                break

    play(good, 10.0, 20)
    for _ in range(20):
        incumbent.see(10.0 + rng.normal(), good, 0.5)
    play(bad, 2.0, 20)
    assert incumbent.acting == BEST
    np.testing.assert_array_equal(incumbent.w, good)
    play(better, 20.0, 20)
    np.testing.assert_array_equal(incumbent.w, better)


def test_every_action_is_tried_alone_and_the_best_acts_until_a_plan_earns_more() -> None:
    incumbent, w, tried = Incumbent(1, 3), np.ones(1), list[int | None]()
    worth = {0: 1.0, 1: 6.0, 2: 0.0, None: 2.0}
    for _ in range(12):
        incumbent.planned()
        tried.append(incumbent.action)
        incumbent.see(worth[incumbent.action], w, 0.0)
    assert tried[:6] == [None, 0, None, 1, None, 2]
    assert incumbent.action == 1  # between two plannings
    for _ in range(20):
        incumbent.planned()
        for _ in range(3):
            incumbent.see(worth[incumbent.action] if incumbent.action is not None else 9.0, w, 0.0)
    assert incumbent.action is None


def test_an_action_is_tried_again_after_one_good_episode() -> None:
    incumbent, w = Incumbent(1, 3), np.ones(1)
    for _ in range(30):  # plans earn 8 or 7; an action earned 9 once, and its fellows nothing
        incumbent.planned()
        worth = {0: 0.0, 1: 9.0, 2: 0.0, None: 7.5 + 0.5 * (-1.0) ** incumbent.episodes[NEWEST, 0]}
        incumbent.see(worth[incumbent.action], w, 0.0)
        incumbent.see(worth[incumbent.action], w, 0.0)
    assert incumbent.episodes[CONSTANT + 1, 0] > 10
    assert incumbent.episodes[CONSTANT, 0] == incumbent.episodes[CONSTANT + 2, 0] == 1


def test_the_plan_before_comes_back_when_the_better_one_was_lucky() -> None:
    incumbent, rng = Incumbent(1, 0), np.random.default_rng(0)
    steady, lucky = np.array([1.0]), np.array([2.0])
    for _ in range(30):
        incumbent.see(10.0 + rng.normal(), steady, 0.5)
    incumbent.planned()
    while incumbent.w[0] != 2.0:
        incumbent.see(20.0, lucky, -0.5)
    assert [incumbent.former[0], float(incumbent.former_beta), float(incumbent.beta)] == [1.0, 0.5, -0.5]
    while incumbent.w[0] == 2.0:
        incumbent.see(2.0 + rng.normal(), lucky, -0.5)
    assert [incumbent.acting, incumbent.w[0], float(incumbent.beta)] == [BEST, 1.0, 0.5]
    assert 8.0 < incumbent.episodes[BEST, 1] < 12.0


def test_no_new_plan_is_tried_in_the_last_fifth_of_the_episodes() -> None:
    for K, tried in ((None, True), (50, False)):
        incumbent, w = Incumbent(1, 0, K), np.ones(1)
        for k in range(50):
            incumbent.planned()
            assert k < 10 or (incumbent.acting == NEWEST) == (k < 40 or tried)
            incumbent.see(10.0 if k < 10 else 1.0, w, 0.0)


def test_plans_hope_and_doubt_in_turn_and_hope_less_often_later() -> None:
    assert [j for j in range(48) if optimistic_turn(j)] == [*range(0, 32, 2), *range(32, 48, 4)]
    explore, widths = Spread(Horizon(4), np.full(4, 9.0)), []
    explore.sums[:] = 4.0, 2.0, 2.0  # a standard deviation of 1/2
    for _ in range(3):
        explore.begin()
        widths.append(float(explore.beta[0]))
    np.testing.assert_allclose(widths, [HOPE, -DOUBT, HOPE])  # times sqrt(4) / 2


def test_the_best_plan_acts_with_its_own_width(hall: GymTask) -> None:
    agent: Any = linmdp.make_agent("lsvi-ucb-fold", hall)
    linmdp.run(hall, agent, episodes=40, seed=0)
    storage, state = agent._planner.storage, hall.reset(seed=0)[0]
    storage.incumbent.w[:], storage.incumbent.acting = storage.w[0], BEST
    storage.incumbent.beta[...] = -1.0
    low = agent.q_values(0, state)
    storage.incumbent.beta[...] = 1.0
    forms = storage._forms(storage.rows(state)[None])[0][storage.features.classes]
    np.testing.assert_allclose(agent.q_values(0, state) - low, 2 * np.sqrt(forms), rtol=1e-6)


@pytest.mark.parametrize(("G", "actions", "M"), [(8, 64, 30_000), (7, 1024, 30_000), (4, 2, 100)])
def test_whatever_the_features_four_mebibytes_are_enough(G: int, actions: int, M: int) -> None:
    groups = [[Part(0), Part(1, g)] for g in range(G)]
    task = task_of(Cells(WIDTH, groups, [1 << 16] * G, np.arange(actions)))
    agent: Any = LSVIUCB(task, M=M)
    most, rng = agent.bytes_after(10**5), np.random.default_rng(0)
    storage = agent._planner.storage
    while len(storage.group) < storage.most:
        storage.numbered(rng.integers(0, 1 << 20, WIDTH))
    assert agent.nbytes <= most <= 4 << 20


def test_memory_is_what_was_forecast(hall: GymTask) -> None:
    agent: Any = linmdp.make_agent("lsvi-ucb:M=500", hall)
    most = agent.bytes_after(60)
    linmdp.run(hall, agent, episodes=60)
    assert agent.nbytes <= most == agent.bytes_after(60)
    limited: Any = linmdp.make_agent("lsvi-ucb:max_bytes=1MiB", hall)
    assert limited.nbytes <= limited.chosen["bytes"] <= 1 << 20
    assert limited.chosen["M"] < 30_000


def test_many_tiles_need_no_matrix() -> None:
    env: Any = linmdp.make_env("gym:MountainCar-v0,H=30,features=tiles,tiles=8,dim=2000")
    assert isinstance(env.task.features, ManyTiles)
    agent: Any = linmdp.make_agent("lsvi-ucb-fold", env)
    linmdp.run(env, agent, episodes=3)
    assert agent.chosen["storage"] == "stagewise"
    assert agent.nbytes < 2 << 20 < env.task.d**2


def test_linearize_writes_cells_and_check_says_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "cells.safetensors"
    made = command(
        "linearize", "Taxi-v3", "--form", "cells", "--transitions", "400", "--horizon", "40", "--out", str(path)
    )
    assert f"{path}: 'Taxi-v3'" in made.out
    assert "1 of 1 numbers" in made.out
    told = command("check", f"gym:Taxi-v3,H=40,features=cells,model={path}")
    assert "groups of" in told.out
    assert "6 classes of 6 actions" in told.out


def test_check_draws_cells(tmp_path: Path) -> None:
    path = tmp_path / "cells.svg"
    told = command("check", "gym:Taxi-v3,H=20,features=cells,warmup=400", "--picture", str(path))
    assert f"drawn: {path}" in told.out
    drawn = path.read_text()
    for words in ("moved by the action", "an episode of random play", "what each of 6 actions does", "number 0"):
        assert words in drawn
    for spec, name, words in (
        ("gym:Taxi-v3,H=20", "a.png", "must be left out without features=cells"),
        ("gym:Taxi-v3,H=20,features=cells", "a.txt", "must be one of"),
    ):
        failed = command("check", spec, "--picture", str(tmp_path / name))
        assert (failed.status, failed.out) == (2, "")
        assert words in failed.err
        assert failed.err.count("\n") == 1


def test_random_play_is_shown_and_done_once_for_all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    spec, told = "gym:Taxi-v3,H=21,features=cells,warmup=420", list[int]()

    @contextmanager
    def bar(what: str, total: int, show: bool) -> Iterator[Any]:
        assert (what, total, show) == ("random play", 420, True)
        told.append(0)

        def advance() -> None:
            told[-1] += 1

        yield advance

    monkeypatch.setattr("linmdp.runner.start.progress_bar", bar)
    first, again = shown_env(spec), shown_env(spec)
    assert told == [420]
    assert again.task.features is first.task.features
    monkeypatch.setattr("linmdp.envs.mapping._chosen", {})
    alone = linmdp.make_env(spec)  # which nobody watches
    assert told == [420]
    one, two = (linmdp.run(env, linmdp.make_agent("lsvi-ucb-fold", env), episodes=5) for env in (again, alone))
    np.testing.assert_array_equal(one.rewards, two.rewards)
    own = [GymTask(Hall(), H=8, features="cells", warmup=420).task.features for _ in range(2)]
    assert own[0] is not own[1]  # nobody knows what an environment that was given does
