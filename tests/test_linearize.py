"""Linearization: a small model is trained for real, and it has learned; files survive; bad input is one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

import linmdp
from command import linmdp as command
from linmdp.envs.base import check_linear
from linmdp.envs.games import Game, resolved
from linmdp.envs.linear_mdps import synthetic
from linmdp.envs.linearized import distilled
from linmdp.envs.spaces import layout_of
from linmdp.errors import InvalidData, InvalidParameter, LinMDPError
from linmdp.features.learned import LearnedModel, read_model
from linmdp.io.tensorfile import packed, read_tensors
from linmdp.linearize.collect import random_data
from linmdp.linearize.data import Dataset, read_dataset
from linmdp.linearize.measure import linearity, r_squared, ridge
from linmdp.linearize.model import write_model
from linmdp.linearize.train import Settings, Trainer, train
from linmdp.types import Array
from toys import Toy

TRUTH: dict[str, Any] = {"S": 60, "A": 3, "d": 4, "H": 10, "concentration": 0.1, "stationary": True}
SMALL = Settings(d=4, steps=1500, batch=128, hidden=32, lr=1e-2, eval_every=250)
ATARI = pytest.mark.parametrize("game", ["alien", "phoenix"])


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def truth_data() -> Dataset:
    """Uniformly random states and actions of a small linear MDP: each episode is one step."""
    game = Game("linmdp/Synthetic-v0", **TRUTH, start="uniform")
    return random_data(game, transitions=6000, H=1, seed=0)


@pytest.fixture(scope="module")
def learned(truth_data: Dataset) -> LearnedModel:
    return train(truth_data, SMALL)


@pytest.fixture(scope="module")
def lake() -> LearnedModel:
    """FrozenLake: episodes that end."""
    data = random_data(Game("FrozenLake-v1"), transitions=3000, H=30, seed=0)
    return train(data, Settings(d=6, steps=300, batch=64, hidden=16, eval_every=100))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, lake: LearnedModel) -> Path:
    path = tmp_path_factory.mktemp("models") / "lake.safetensors"
    write_model(path, lake)
    return path


def total_variation(P: Array, Q: Array) -> float:
    return float(np.abs(P - Q).sum(axis=-1).mean() / 2)


def test_learned_transitions_beat_the_empirical_ones_and_the_marginal(
    truth_data: Dataset, learned: LearnedModel
) -> None:
    true = synthetic(**TRUTH)
    P = true.features.table() @ true.mu[0]
    s, a, n = truth_data.states[:, 0].astype(int), truth_data.actions, truth_data.next_states[:, 0].astype(int)
    counts = np.zeros_like(P)
    np.add.at(counts, (s, a, n), 1)
    marginal = counts.sum(axis=(0, 1)) / len(n)
    states = np.arange(60, dtype=np.float32)[:, None]
    Q = learned.batch(states) @ learned.mu(states).T * marginal
    error = total_variation(P, Q)
    assert error < 0.8 * total_variation(P, counts / counts.sum(axis=-1, keepdims=True))
    assert error < 0.5 * total_variation(P, np.broadcast_to(marginal, P.shape))
    found = linearity(learned)
    assert found.reward_r2 > 0.8
    assert found.times_chance > 5


def test_learned_model_is_a_mixture_of_measures(truth_data: Dataset, learned: LearnedModel) -> None:
    """phi on the simplex, mu >= 0 with mean 1 under p: so the probabilities sum to one."""
    phi, mu = learned.pairs(truth_data.states, truth_data.actions), learned.mu(truth_data.next_states)
    np.testing.assert_allclose(phi.sum(axis=1), 1.0, atol=1e-12)
    assert phi.min() >= 0
    assert mu.min() > 0
    np.testing.assert_allclose(mu.mean(axis=0), 1.0, atol=0.05)  # over all data; exactly over the training part


@pytest.mark.parametrize("form", ["linear", "energy"])
def test_numpy_phi_equals_torch_phi(form: str) -> None:
    data = random_data(Game("CartPole-v1"), transitions=600, H=50, seed=3)
    trainer = Trainer(data, Settings(d=5, steps=60, batch=32, hidden=8, eval_every=30, form=form))
    trainer.round()
    model, nets = trainer.model(), trainer.nets
    nets.load_state_dict(trainer.best)
    if form == "linear":
        nets.mass.copy_(torch.tensor(1 / model.arrays["mu.scale"]))
    with torch.no_grad():
        x, y = (torch.tensor(model.encoder(states)) for states in (data.states, data.next_states))
        expected = nets.features(x, torch.tensor(data.actions.astype(np.int64))).numpy()
        measures = nets.measures(y).numpy()
    np.testing.assert_allclose(model.mu(data.next_states), measures, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.pairs(data.states, data.actions), expected, atol=1e-5)
    whole = model.batch(data.states[:7])
    np.testing.assert_allclose(whole[np.arange(7), data.actions[:7]], expected[:7], atol=1e-5)
    np.testing.assert_array_equal(model.phi(data.states[3]), model.batch(data.states[3:4])[0])
    assert np.linalg.norm(whole, axis=-1).max() <= 1


def test_training_that_was_interrupted_ends_as_one_that_was_not(tmp_path: Path, truth_data: Dataset) -> None:
    settings = Settings(d=3, steps=90, batch=16, hidden=8, eval_every=30)
    whole = train(truth_data, settings)
    checkpoint = tmp_path / "half"

    class Stop(Exception):
        pass

    def stop(step: int, found: dict[str, float]) -> None:
        if step == 60:
            raise Stop

    with pytest.raises(Stop):
        train(truth_data, settings, checkpoint=checkpoint, on_eval=stop)
    assert checkpoint.exists()
    seen: list[int] = []
    again = train(truth_data, settings, checkpoint=checkpoint, on_eval=lambda step, found: seen.append(step))
    assert seen == [90]
    assert not checkpoint.exists()
    for name, array in whole.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)


def test_checkpoint_of_other_settings_is_not_used(tmp_path: Path, truth_data: Dataset) -> None:
    settings = Settings(d=3, steps=40, batch=16, hidden=8, eval_every=20)
    trainer = Trainer(truth_data, settings)
    trainer.round()
    trainer.save(tmp_path / "c")
    assert not Trainer(truth_data, Settings(d=3, steps=41, batch=16, hidden=8, eval_every=20)).restore(tmp_path / "c")


def test_training_stops_when_the_held_out_loss_no_longer_falls(truth_data: Dataset) -> None:
    settings = Settings(d=3, steps=5000, batch=16, hidden=8, eval_every=20, patience=3)
    trainer = Trainer(truth_data.take(np.arange(100)), settings)  # so few that it soon knows them by heart
    losses = []
    while not trainer.done:
        losses.append(trainer.round()["loss"])
    assert trainer.step < 5000
    assert min(losses) == losses[-4]


def test_held_out_episodes_are_whole(truth_data: Dataset) -> None:
    data = random_data(Game("FrozenLake-v1"), transitions=300, H=20, seed=1)
    rows, held = data.split(0.2, 0)
    assert len(rows) + len(held) == len(data)
    assert not set(data.episode[rows]) & set(data.episode[held])
    assert 0.1 < len(np.unique(data.episode[held])) / len(np.unique(data.episode)) < 0.3


def test_model_file_comes_back_as_it_was(file: Path, lake: LearnedModel) -> None:
    again = read_model(file)
    assert again.meta == read_tensors(file, "model").meta
    for name, array in lake.arrays.items():
        np.testing.assert_array_equal(again.arrays[name], array)
    assert linearity(again)._asdict() == lake.meta["metrics"]
    assert again.meta["env"] == "FrozenLake-v1"
    assert "gymnasium" in again.meta["versions"]


def test_dataset_file_comes_back_as_it_was(tmp_path: Path, truth_data: Dataset) -> None:
    truth_data.save(tmp_path / "d")
    again = read_dataset(tmp_path / "d", "linmdp/Synthetic-v0")
    assert again.fingerprint == truth_data.fingerprint


DAMAGE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "nan": ({}, {"theta": np.full(6, np.nan)}, "'theta' has NaN"),
    "lacking": ({}, {"phi.action": None}, "must hold 'phi.action'"),
    "shape": ({}, {"theta": np.zeros(5)}, "must have shape"),
    "other env": ({"env": "CartPole-v1"}, {}, "The model of 'CartPole-v1' must be for 2 actions"),
    "meta": ({"layout": None}, {}, "lacks a part: 'layout'"),
    "dataset": ({"kind": "dataset"}, {}, "must be a model file"),
}


@pytest.mark.parametrize("kind", ["cut", *DAMAGE])
def test_damaged_model_is_refused_in_one_line(file: Path, tmp_path: Path, kind: str) -> None:
    found, path = read_tensors(file, "model"), tmp_path / "bad.safetensors"
    meta, arrays, words = DAMAGE.get(kind, ({}, {}, "damaged or no safetensors file"))
    meta = {name: value for name, value in (found.meta | meta).items() if value is not None and name != "format"}
    kept = {name: value for name, value in (found.arrays | arrays).items() if value is not None}
    whole = packed(meta.pop("kind"), meta, kept)
    path.write_bytes(whole[: len(whole) // 2] if kind == "cut" else whole)
    with pytest.raises(LinMDPError, match=words) as caught:
        linmdp.make_env(f"linearized:model={path}")
    assert "\n" not in str(caught.value)


def test_distilled_model_is_exactly_linear_and_has_an_end(file: Path, lake: LearnedModel) -> None:
    env: Any = linmdp.make_env(f"linearized:model={file},mode=model,H=20,anchors=60")
    model = env.model
    assert [f.text for f in check_linear(model) if not f.ok] == []
    assert (model.S, model.d, model.H) == (61, lake.d + 1, 20)
    end = model.S - 1
    assert (model.features.phi(end) @ model.mu[0])[:, end] == pytest.approx(1.0)
    assert (model.features.phi(end) @ model.theta[0]) == pytest.approx(0.0)
    assert (model.features.table() @ model.mu[0])[:, :, end].max() > 0.01
    result = linmdp.run(env, linmdp.make_agent("lsvi-ucb", env), episodes=5)
    assert result.regret is not None
    assert (np.diff(result.regret) >= -1e-12).all()


def test_distilled_model_agrees_with_the_one_it_came_from(learned: LearnedModel) -> None:
    """P of the finite model is <phi, mu> p, up to p being replaced by draws from it."""
    model = distilled(learned, H=5, anchors=500)
    states = np.concatenate((learned.arrays["start"][None], learned.held_out.next[:499]))[:, 0].astype(int)
    P = np.zeros((60, 3, 60))
    table = model.features.table() @ model.mu[0]
    for t in range(60):
        P[states, :, t] = table[:, :, states == t].sum(axis=-1)
    every = np.arange(60, dtype=np.float32)[:, None]
    p = np.bincount(states, minlength=60) / len(states)
    direct = learned.batch(every) @ learned.mu(every).T * p
    direct /= direct.sum(axis=-1, keepdims=True)
    seen = np.unique(states)
    assert total_variation(P[seen], direct[seen]) < 0.05


def test_game_mode_pays_real_scores_and_ends_with_the_game(file: Path) -> None:
    env: Any = linmdp.make_env(f"linearized:model={file},mode=game,H=30")
    plain = gymnasium.make("FrozenLake-v1")
    for seed in range(5):
        state, _ = env.reset(seed=seed)
        expected, _ = plain.reset(seed=seed)
        assert state == expected
        for action in np.random.default_rng(seed).integers(4, size=30):
            state, reward, terminated, truncated, _ = env.step(int(action))
            expected, paid, ended, _, _ = plain.step(int(action))
            assert (int(state[0]), reward, terminated) == (expected, paid, ended)
            if terminated or truncated:
                break


def test_published_mode_pays_the_learned_reward_and_never_ends(file: Path, lake: LearnedModel) -> None:
    env: Any = linmdp.make_env(f"linearized:model={file},mode=published,H=30")
    for seed in range(3):
        state, _ = env.reset(seed=seed)
        for h in range(30):
            phi = lake.phi(state)[h % 4]
            state, reward, terminated, truncated, _ = env.step(h % 4)
            assert reward == pytest.approx(float(np.clip(phi @ lake.theta, 0, 1)))
            assert not terminated
        assert truncated


def test_agents_learn_over_learned_features(file: Path) -> None:
    env: Any = linmdp.make_env(f"linearized:model={file},mode=game,H=20")
    agent = linmdp.make_agent("lsvi-ucb:beta=0.1", env, 12)
    result = linmdp.run(env, agent, episodes=12)
    assert result.regret is None
    assert result.updates == 12 * 20


@ATARI
def test_shipped_model_is_small_and_knows_its_game(game: str) -> None:
    model = read_model(game)
    path = Path(linmdp.__file__).parent / "linearize" / "models" / f"{game}.safetensors"
    assert path.stat().st_size < 2_000_000
    assert model.d == 64
    found = linearity(model)
    assert found.times_chance >= 20
    assert found.reward_r2 > 0.5
    assert found.bellman_error < 0.8
    assert [f.text for f in check_linear(distilled(model, H=50, anchors=500)) if not f.ok] == []


@ATARI
def test_shipped_model_plays_its_game(game: str) -> None:
    env: Any = linmdp.make_env(f"linearized:model={game},H=10")
    state, _ = env.reset(seed=0)
    assert state.shape == (128,)
    assert env.task.features.phi(state).shape == (env.task.A, 64)
    rewards = [env.step(a % env.task.A)[1] for a in range(10)]
    assert min(rewards) >= 0
    assert max(rewards) <= 1


def test_ram_ids_are_aliases() -> None:
    assert resolved("ALE/Alien-ram-v5") == ("ALE/Alien-v5", {"obs_type": "ram"})
    assert resolved("ALE/Alien-v5") == ("ALE/Alien-v5", {})
    env: Any = Game("ALE/Phoenix-ram-v5")
    assert env.layout == (("box", 128),)
    assert env.dtype == np.uint8


def test_a_lost_life_ends_the_episode() -> None:
    game = Game("ALE/Alien-ram-v5")
    game.reset(seed=0)
    for _ in range(1000):
        _, _, terminated, _, info = game.step(0)
        if terminated:
            break
    assert terminated
    assert info["lives"] == 2


def test_scale_is_the_99th_percentile_and_rewards_are_cut() -> None:
    data = random_data(Game("FrozenLake-v1"), transitions=300, H=10, seed=0)
    paid = np.zeros(300, dtype=np.float32)
    paid[:200], paid[0] = 10.0, 500.0
    odd = Dataset(**{**vars(data), "rewards": paid})
    assert odd.reward_scale == 10.0
    assert odd.scaled_rewards.max() == 1.0
    assert odd.reward_range == (0.0, 1.0)
    assert Dataset(**{**vars(data), "rewards": -paid}).reward_range == (-1.0, 1.0)
    assert Dataset(**{**vars(data), "rewards": 0 * paid}).reward_scale == 1.0


def test_ridge_and_r_squared_by_hand() -> None:
    assert ridge(np.array([[1.0], [1.0]]), np.array([2.0, 4.0]), lam=1.0) == pytest.approx([2.0])
    assert r_squared(np.array([1.0, 3.0]), np.array([1.0, 3.0])) == 1.0
    assert r_squared(np.array([2.0, 2.0]), np.array([1.0, 3.0])) == 0.0


SPACES = gymnasium.spaces
MIXED = SPACES.Dict(
    {"n": SPACES.Discrete(3, start=1), "x": SPACES.Box(0, 1, (2, 2)), "m": SPACES.MultiDiscrete([2, 5])}
)


@pytest.fixture
def odd() -> str:
    if "linmdp-test/Odd-v0" not in gymnasium.registry:
        made: Any = lambda observations, actions: Toy(observations, actions=actions)  # noqa: E731
        gymnasium.register("linmdp-test/Odd-v0", made, disable_env_checker=True, order_enforce=False)
    return "linmdp-test/Odd-v0"


def test_mixed_observations_are_laid_flat(odd: str) -> None:
    game = Game(odd, observations=MIXED, actions=SPACES.Discrete(2))
    assert game.layout == layout_of("x", SPACES.Tuple(list(MIXED.spaces.values())))
    data = random_data(game, transitions=40, H=4, seed=0)
    kinds = [kind for kind, _ in game.layout]
    assert sorted(kinds) == ["box", "onehot", "onehot", "onehot"]
    model = train(data, Settings(d=2, steps=4, batch=8, hidden=4, eval_every=2))
    assert model.encoder.inputs == 3 + 4 + 2 + 5
    assert model.batch(data.states).shape == (40, 2, 2)


@pytest.mark.parametrize(
    ("observations", "actions", "words"),
    [
        (SPACES.Discrete(3), SPACES.Box(0, 1, (1,)), "action space of '.*' must be Discrete"),
        (SPACES.Text(5), SPACES.Discrete(2), "must be Box, Discrete, or Dict or Tuple"),
        (SPACES.Dict({"t": SPACES.Text(5)}), SPACES.Discrete(2), "must have 1 to 4096 numbers. Got 0"),
        (SPACES.Box(0, 1, (100, 100)), SPACES.Discrete(2), "must have 1 to 4096 numbers"),
    ],
)
def test_spaces_that_can_not_be_learned_are_refused(odd: str, observations: Any, actions: Any, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Game(odd, observations=observations, actions=actions)


def without(module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command line on a machine where `module` is not installed."""
    code = f"import sys; sys.modules[{module!r}] = None; from linmdp.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=600)


def test_command_line_from_nothing_to_a_checked_model(tmp_path: Path) -> None:
    data, model = tmp_path / "d.safetensors", tmp_path / "m.safetensors"
    small = ("--dim", "4", "--steps", "40", "--hidden", "8", "--batch", "16", "--eval-every", "20")
    sizes = ("--transitions", "400", "--horizon", "20", "--data", str(data))
    done = command("linearize", "FrozenLake-v1,is_slippery=false", *sizes, *small, "--only-data")
    assert (done.status, done.out) == (0, "")
    done = command("linearize", "FrozenLake-v1,is_slippery=false", *sizes, *small, "--out", str(model))
    assert done.status == 0, done.err
    assert "x chance" in done.out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.safetensors", "m.safetensors"]
    for mode in ("game", "published", "model"):
        done = command("check", f"linearized:model={model},mode={mode},H=10,anchors=20")
        assert done.status == 0, done.err
        assert "Bellman error" in done.out
        assert ("It is a linear MDP" in done.out) == (mode == "model")
    done = command("linearize", "FrozenLake-v1", *sizes, *small, "--out", str(model))
    assert (done.status, done.out) == (2, "")
    assert "with {}. Got one with {'is_slippery': False}" in done.err
    done = command("linearize", "CartPole-v1", *sizes, *small, "--out", str(model))
    assert "must be of 'CartPole-v1'. Got one of 'FrozenLake-v1'" in done.err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_cuda_without_one_is_one_line() -> None:
    with pytest.raises(InvalidParameter, match="finds no GPU"):
        Settings(device="cuda")


@pytest.mark.parametrize(
    ("module", "arguments", "words"),
    [
        ("torch", ("linearize", "CartPole-v1"), "linearize needs torch, which is not installed"),
        ("ale_py", ("linearize", "ALE/Alien-ram-v5"), "'ALE/Alien-ram-v5' needs ale-py"),
        ("ale_py", ("check", "linearized:model=alien"), "'ALE/Alien-ram-v5' needs ale-py"),
    ],
)
def test_what_is_not_installed_is_named_with_its_extra(
    tmp_path: Path, module: str, arguments: tuple[str, ...], words: str
) -> None:
    out = ("--out", str(tmp_path / "m")) if arguments[0] == "linearize" else ()
    done = without(module, *arguments, *out)
    assert done.returncode == 2
    assert words in done.stderr
    assert "linmdp[linearize]" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_agents_need_no_torch_and_model_mode_no_gymnasium(file: Path) -> None:
    done = without("torch", "run", f"linearized:model={file},H=5", "lsvi-ucb", "--episodes", "3", "--json")
    assert done.returncode == 0, done.stderr
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('gymnasium', 'torch', 'ale_py', 'typer', 'pydantic')))\n"
        "from linmdp.runner.registry import make_model\n"
        f"print(make_model('linearized:model={file},mode=model,anchors=20').S)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) >= 20


def test_training_needs_no_gymnasium(tmp_path: Path, truth_data: Dataset) -> None:
    truth_data.save(tmp_path / "d")
    blocked = ("gymnasium", "ale_py", "typer", "pydantic", "joblib", "matplotlib", "rich", "threadpoolctl")
    code = (
        f"import sys; from pathlib import Path; sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "from linmdp.linearize.data import read_dataset\nfrom linmdp.linearize.model import write_model\n"
        "from linmdp.linearize.train import Settings, train\n"
        f"data = read_dataset(Path({str(tmp_path / 'd')!r}))\n"
        "model = train(data, Settings(d=3, steps=20, hidden=8, eval_every=10))\n"
        f"write_model(Path({str(tmp_path / 'm')!r}), model)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert read_model(tmp_path / "m").d == 3


def test_model_mode_wants_a_linear_model(truth_data: Dataset) -> None:
    model = train(truth_data, Settings(d=3, steps=10, batch=16, hidden=8, eval_every=5, form="energy"))
    with pytest.raises(InvalidParameter, match="form 'linear'"):
        distilled(model, H=5, anchors=10)


def test_dataset_that_is_too_short_is_refused(truth_data: Dataset) -> None:
    one = truth_data.take(np.flatnonzero(truth_data.episode == 0))
    with pytest.raises(InvalidData, match="at least 2 episodes"):
        one.split(0.1, 0)
