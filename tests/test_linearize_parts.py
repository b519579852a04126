"""Parts of the learned features: weights for each action, the clock, what the action controls."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import linmdp
from linmdp.envs.games import Game
from linmdp.errors import InvalidParameter
from linmdp.features.learned import LearnedModel, read_model
from linmdp.features.learned_blocks import WEIGHTS, features_of
from linmdp.linearize.collect import random_data
from linmdp.linearize.data import Dataset
from linmdp.linearize.measure import explained
from linmdp.linearize.model import write_model
from linmdp.linearize.train import Settings, Trainer, train

TINY: dict[str, Any] = {"d": 6, "steps": 200, "batch": 64, "hidden": 16, "lr": 1e-2, "eval_every": 50}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def walk() -> Dataset:
    """A walk on 0, ..., 9: the action moves the first number, the second counts steps, the third is noise."""
    rng, n, H = np.random.default_rng(0), 3000, 10
    step, actions = np.arange(n) % H, rng.integers(3, size=n)
    states, following = np.zeros((2, n, 3), dtype=np.uint8)
    for i in range(n):
        states[i] = following[i - 1] if step[i] else (rng.integers(10), 0, rng.integers(200))
        following[i] = (np.clip(int(states[i, 0]) + actions[i] - 1, 0, 9), step[i] + 1, rng.integers(200))
    return Dataset(
        meta={"env": "Walk-v0", "kwargs": {}, "A": 3, "layout": [["box", 3]], "H": H, "seed": 0},
        states=states,
        actions=actions.astype(np.int32),
        rewards=(following[:, 0] == 9).astype(np.float32),
        next_states=following,
        terminated=np.zeros(n, dtype=np.bool_),
        episode=(np.arange(n) // H).astype(np.int32),
        step=step.astype(np.int32),
    )


@pytest.fixture(scope="module")
def plain(walk: Dataset) -> LearnedModel:
    return train(walk, Settings(**TINY))


def test_psi_is_phi_with_all_actions_in_equal_shares(walk: Dataset, plain: LearnedModel) -> None:
    a = plain.arrays
    x = np.maximum(plain.encoder(walk.states[:5]) @ a["phi.0.weight"].T + a["phi.0.bias"], 0)
    z = x @ a["phi.1.weight"].T + a["phi.1.bias"] + np.full(3, 1 / 3) @ a["phi.action"]
    out = np.maximum(z, 0) @ a["phi.2.weight"].T + a["phi.2.bias"]
    expected = np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(plain.psi(walk.states[:5]), expected, rtol=1e-5)


@pytest.mark.parametrize("clock", [0, 4])
def test_blocks_and_clock_are_those_made_by_hand(walk: Dataset, plain: LearnedModel, clock: int) -> None:
    H, states, half = 10, walk.states[:7], math.sqrt(0.5)
    steps = np.arange(7, dtype=np.uint8)[:, None]
    seen = np.concatenate((states, steps), axis=1) if clock else states
    shared, added, blocks = (features_of(plain, H, weights, clock) for weights in WEIGHTS)
    for i in range(7):
        times = [math.cos(math.pi * j * i / H) / math.sqrt(clock) for j in range(clock)]
        psi, phi = plain.psi(states[i : i + 1])[0], plain.phi(states[i])
        for a in range(3):
            own = np.zeros((3, max(clock, 1)))
            own[a] = times or [1.0]
            block = np.zeros((3, plain.d + clock))
            block[a] = half * np.concatenate((psi, times)) if clock else psi
            expected = half * np.concatenate((phi[a], times)) if clock else phi[a]
            np.testing.assert_allclose(shared.phi(seen[i])[a], expected, atol=1e-12)
            np.testing.assert_allclose(added.phi(seen[i])[a], half * np.append(phi[a], own), atol=1e-12)
            np.testing.assert_allclose(blocks.phi(seen[i])[a], block.ravel(), atol=1e-12)
    for features in (shared, added, blocks):
        whole = features.batch(seen)
        assert whole.shape == (7, 3, features.d)
        assert np.linalg.norm(whole, axis=-1).max() <= 1 + 1e-9
        np.testing.assert_allclose(whole[2], features.phi(seen[2]), atol=1e-6)


def test_shared_weights_without_a_clock_are_the_model_itself(plain: LearnedModel) -> None:
    assert features_of(plain, 10, "shared", 0) is plain


@pytest.fixture(scope="module")
def lake_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = random_data(Game("FrozenLake-v1"), transitions=600, H=30, seed=0)
    path = tmp_path_factory.mktemp("models") / "lake.safetensors"
    write_model(path, train(data, Settings(**TINY | {"steps": 50})))
    return path


@pytest.mark.parametrize(
    ("options", "d"),
    [
        ("actions=blocks", 4 * 6),
        ("clock=3", 6 + 3),
        ("actions=blocks,clock=3", 4 * 9),
        ("actions=added", 6 + 4),
        ("actions=added,clock=3", 6 + 4 * 3),
    ],
)
@pytest.mark.parametrize("mode", ["game", "published"])
def test_environments_have_the_features_that_were_asked_for(lake_file: Path, options: str, d: int, mode: str) -> None:
    env: Any = linmdp.make_env(f"linearized:model={lake_file},H=12,mode={mode},{options}")
    clock = "clock" in options
    assert env.task.d == d
    state, _ = env.reset(seed=0)
    assert len(state) == 1 + bool(clock)
    for h in range(12):
        if clock:
            assert state[-1] == h
        assert env.observation_space.contains(state)
        assert env.task.features.phi(state).shape == (4, env.task.d)
        state, _, terminated, truncated, _ = env.step(h % 4)
        if terminated or truncated:
            break
    result = linmdp.run(env, linmdp.make_agent("lsvi-ucb-fold", env), episodes=4)
    assert result.episodes == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("clock=-1", "'clock' parameter of linearized"),
        ("mode=model,clock=2", "'clock' parameter of linearized must be 0 for mode 'model'"),
        ("mode=model,actions=added", "'actions' parameter of linearized must be 'shared' for mode 'model'"),
        ("actions=3", "'actions' parameter of linearized must be one of"),
        ("actions=blocks,clock=600", "must have d = A [*] p at most 2048"),
    ],
)
def test_options_that_make_no_sense_are_refused(lake_file: Path, options: str, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        linmdp.make_env(f"linearized:model={lake_file},{options}")


def test_model_files_from_before_these_options_have_blocks_and_a_clock() -> None:
    model = read_model("phoenix")
    assert "inverse_weight" not in model.meta["settings"]
    env: Any = linmdp.make_env("linearized:model=phoenix,H=10,actions=blocks,clock=8")
    state, _ = env.reset(seed=0)
    assert (state.dtype, state.shape) == (np.uint8, (129,))  # an agent keeps states: bytes stay bytes
    assert env.task.d == 8 * (64 + 8)


def test_inverse_loss_falls_and_the_action_is_guessed_better_than_by_chance(walk: Dataset) -> None:
    trainer = Trainer(walk, Settings(**TINY | {"steps": 500}, inverse_weight=3.0))
    rows = trainer._eval_rows[0]

    def loss() -> float:
        with torch.no_grad():
            return float(trainer._inverse_loss(rows))

    before = loss()
    while not trainer.done:
        trainer.round()
    assert before == pytest.approx(math.log(3), abs=0.1)
    assert loss() < 0.8 * math.log(3)
    assert not any(name.startswith("inverse") for name in trainer.model().arrays)


def test_inverse_weight_makes_psi_tell_what_the_action_moves(walk: Dataset, plain: LearnedModel) -> None:
    other = train(walk, Settings(**TINY, inverse_weight=1.0))
    half = len(walk) // 2
    before, after = (explained(m, walk.states[:half], walk.states[half:], np.array([0]))[0] for m in (plain, other))
    assert after > max(before, 0.5)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="'inverse_weight' parameter of linearize"):
        Settings(inverse_weight=-1.0)
