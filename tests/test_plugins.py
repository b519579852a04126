"""Doors for others: what is registered, declared by a package or imported works everywhere, and faults are one line."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import linmdp
from command import linmdp as command
from linmdp.envs.mapping import MAPS
from linmdp.plugins import REGISTERED, import_modules
from linmdp.results.store import Store
from linmdp.runner.batch import Job, jobs_for, run_jobs, run_units, units
from linmdp.runner.pool import Dask
from linmdp.runner.registry import AGENTS, ENVS, model_known
from test_pool import Cluster, _workers, cluster, until

__all__ = ["cluster"]
PLUGIN = Path(__file__).parent / "plugin"


class Mine(linmdp.ConstantAgent):
    """Plays one action."""

    name = "mine"


class Maze(gymnasium.Env[Any, Any]):
    """Two rooms; action 1 changes rooms."""

    def __init__(self, size: int = 2) -> None:
        self.observation_space = gymnasium.spaces.Discrete(size)
        self.action_space = gymnasium.spaces.Discrete(2)
        self.size, self.state = size, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self.state = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self.state = (self.state + action) % self.size
        return self.state, float(self.state == self.size - 1), False, False, {}


class WithModel(linmdp.LinearMDPEnv):
    """The lock as an environment of somebody else, which counts its steps."""

    steps = 0

    def step(self, action: int) -> Any:
        WithModel.steps += 1
        return super().step(action)


def lock_model(*, H: int = 4) -> linmdp.LinearModel:
    model: linmdp.LinearModel = linmdp.make_env(f"lock:H={H},A=3").unwrapped.model  # type: ignore[union-attr]
    return model


pytestmark = pytest.mark.usefixtures("as_before")


def test_a_registered_agent_works_by_its_name(tmp_path: Path) -> None:
    assert linmdp.register_agent(Mine) is Mine
    linmdp.register_agent(Mine)  # again: nothing happens
    env = linmdp.make_env("lock:H=4,A=3")
    agent = linmdp.make_agent("mine:action=2", env)
    assert isinstance(agent, Mine)
    agent.save(tmp_path / "agent")
    assert isinstance(linmdp.load_agent(tmp_path / "agent", env), Mine)
    assert "mine" in list(AGENTS)
    assert "\nmine\n    Plays one action.\n    action=0\n" in command("agents").out
    assert command("compare", "lock:H=4,A=3", "mine", "-k", "5", "--jobs", "1").status == 0


def test_decorators_register() -> None:
    @linmdp.register_agent
    class Decorated(linmdp.RandomAgent):
        name = "decorated"

    @linmdp.register_env("decorated")
    def made() -> linmdp.LinearModel:
        return lock_model()

    @linmdp.register_features("decorated")
    def features(view: Any) -> linmdp.TableFeatures:
        return linmdp.one_hot(2, view.A)

    assert AGENTS["decorated"] is Decorated
    assert ENVS["decorated"] is made
    assert MAPS["decorated"] is features


def same_name(name: str) -> type[linmdp.Agent]:
    return type("Other", (linmdp.RandomAgent,), {"name": name, "__doc__": "Another one."})


def positional(task: linmdp.Task, action: int) -> None:
    """No agent."""


class Positional(linmdp.RandomAgent):
    name = "positional"

    def __init__(self, task: linmdp.Task, size: int = 3) -> None:
        super().__init__(task)


class NoName(linmdp.Agent):
    """Without a name."""


class Abstract(linmdp.Agent):
    name = "abstract"


@pytest.mark.parametrize(
    ("register", "words"),
    [
        (lambda: linmdp.register_agent(same_name("random")), "must be free. Got 'random', which is linmdp.agents"),
        (lambda: linmdp.register_agent(same_name("sb3-dqn")), "must have that name and no built-in one"),
        (lambda: linmdp.register_agent(same_name("a,b")), r"must be letters, digits, .* Got 'a,b'"),
        (lambda: linmdp.register_agent(positional), "An agent must be a class derived from"),  # type: ignore[type-var]
        (lambda: linmdp.register_agent(NoName), "An agent must be a class derived from linmdp.Agent, with a 'name'"),
        (lambda: linmdp.register_agent(Positional), "The 'size' parameter of positional must be keyword-only"),
        (lambda: linmdp.register_agent(Abstract), "must define act, policy, q_values"),
        (lambda: linmdp.register_env("lock", lock_model), "The name of a new environment must be free. Got 'lock'"),
        (lambda: linmdp.register_env("my lock", lock_model), "must be letters, digits"),
        (lambda: linmdp.register_env("mine", 3), "must be a function or a class. Got 3"),  # type: ignore[call-overload]
        (lambda: linmdp.register_env("mine", positional), "must take 0 arguments and have defaults"),
        (lambda: linmdp.register_features("fourier", lambda view: view), "The name of a new feature map must be free"),
        (lambda: linmdp.register_features("mine", lambda: 0), "must take 1 argument and have defaults"),
    ],
)
def test_what_can_not_be_registered_is_one_line(register: Any, words: str) -> None:
    with pytest.raises(linmdp.InvalidParameter, match=words) as refused:
        register()
    assert "\n" not in str(refused.value)


def test_a_name_is_not_taken_twice_unless_by_the_same_definition() -> None:
    def again() -> type[linmdp.Agent]:
        class Cell(linmdp.RandomAgent):
            name = "cell"

        return linmdp.register_agent(Cell)

    again()
    latest = again()
    assert AGENTS["cell"] is latest
    with pytest.raises(linmdp.InvalidParameter, match="must be free"):
        linmdp.register_agent(same_name("cell"))
    linmdp.register_env("one", lambda: lock_model())
    with pytest.raises(linmdp.InvalidParameter, match="must be free"):
        linmdp.register_env("one", lambda: lock_model(H=2))


def test_a_registered_model_has_exact_regret_and_runs_in_lockstep() -> None:
    linmdp.register_env("my-lock", lock_model)
    assert model_known("my-lock:H=3")
    jobs = jobs_for("my-lock:H=3", ["lsvi-ucb:beta=1,lam=1"], episodes=20, seeds=8)
    assert [len(unit) for unit in units(jobs)] == [4, 4]
    mine = list(run_jobs(jobs, processes=1))
    same = list(run_jobs([job._replace(env="lock:H=3,A=3") for job in jobs], processes=1))
    for one, two in zip(mine, same, strict=True):
        np.testing.assert_array_equal(one.regret, two.regret)


def test_a_registered_environment_with_a_model_is_played_itself() -> None:
    linmdp.register_env("counting", lambda H=4: WithModel(lock_model(H=H)))
    assert not model_known("counting")
    WithModel.steps = 0
    jobs = jobs_for("counting:H=3", ["lsvi-ucb:beta=1,lam=1"], episodes=5, seeds=2)
    assert all(r.regret is not None for r in run_jobs(jobs, processes=1))
    assert WithModel.steps == 2 * 5 * 3
    assert [
        s.split()[1] for s in command("compare", "counting", "random", "-k", "2", "-j", "1").out.splitlines()[2:]
    ] == [
        "random",
        "optimal",
    ]


def test_a_registered_environment_may_be_wrapped() -> None:
    linmdp.register_env("wrapped", lambda: gymnasium.Wrapper(WithModel(lock_model())))
    checked = command("check", "wrapped", "--agent", "lsvi-ucb:beta=1")
    assert checked.status == 0, checked.err
    assert "the optimal policy earns" in checked.out
    result = linmdp.compare("wrapped", "lsvi-ucb:beta=1,lam=1", episodes=5, jobs=1)
    assert result[-1].agent == "optimal"
    assert result[-1].final_regret == pytest.approx(0)


class Bare(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment with a task and a model, and nothing computed from it."""

    def __init__(self) -> None:
        super().__init__(linmdp.LinearMDPEnv(lock_model()))
        self.model, self.task = lock_model(), lock_model().task

    @property
    def unwrapped(self) -> Any:
        return self


def test_the_optimum_of_a_registered_environment_follows_from_its_model() -> None:
    linmdp.register_env("bare", Bare)
    env: Any = linmdp.make_env("bare")
    best = linmdp.run(env, linmdp.make_agent("optimal", env), episodes=3)
    assert best.final_regret == pytest.approx(0)


def test_any_gymnasium_environment_can_be_registered() -> None:
    linmdp.register_env("maze", Maze)
    env: Any = linmdp.make_env("maze:size=3,H=5,reward_high=2")
    assert (env.task.S, env.task.H, env.task.reward_range) == (3, 5, (0.0, 2.0))
    result = linmdp.run(env, linmdp.make_agent("random", env), episodes=3)
    assert result.regret is None
    with pytest.raises(linmdp.UnknownName, match="Did you mean 'size'"):
        linmdp.make_env("maze:sise=3,H=5")
    unlimited: Any = linmdp.make_env("maze")
    assert unlimited.chosen["H"] == unlimited.task.H
    linmdp.register_env("counting", lambda: WithModel(lock_model()))
    with pytest.raises(linmdp.UnknownName, match="There is no parameter of counting 'H'"):
        linmdp.make_env("counting:H=3")


def broken_maker(*, size: int = 3) -> int:
    return 1 // (size - 3)


def test_a_maker_that_fails_is_one_line() -> None:
    linmdp.register_env("broken", broken_maker)
    with pytest.raises(linmdp.InvalidParameter, match=r"'broken' cannot be made with \{\}: ZeroDivisionError"):
        linmdp.make_env("broken")
    with pytest.raises(linmdp.InvalidData, match=r"must return a Gymnasium environment or a LinearModel. Got 1"):
        linmdp.make_env("broken:size=4")


def test_registered_features_have_parameters_of_their_own() -> None:
    seen: list[int] = []

    def spread(view: Any, *, width: int = 2) -> linmdp.TableFeatures:
        seen.append(width)
        return linmdp.TableFeatures(np.full((view.space.n, view.A, width), 0.1))

    linmdp.register_features("spread", spread)
    env: Any = linmdp.make_env("gym:FrozenLake-v1,features=spread,width=5,is_slippery=false")
    assert env.task.d == 5
    assert env.task.S == 16
    assert seen == [5]
    linmdp.register_features("small", lambda view: linmdp.one_hot(2, view.A))
    with pytest.raises(
        linmdp.InvalidParameter, match=r"'FrozenLake-v1' must be for the states of Discrete\(16\). Got 2"
    ):
        linmdp.make_env("gym:FrozenLake-v1,features=small")
    linmdp.register_features("nothing", lambda view: None)
    with pytest.raises(
        linmdp.InvalidParameter, match=r"features=nothing must make a FeatureMap for 4 actions. Got None"
    ):
        linmdp.make_env("gym:FrozenLake-v1,features=nothing")


def register_what_nobody_can_import() -> list[Job]:
    """An agent, an environment and a feature map that have no name in any module, and runs that need them."""

    class Local(linmdp.ConstantAgent):
        name = "local"

    linmdp.register_agent(Local)
    linmdp.register_env("local", lambda H=4: lock_model(H=H))
    linmdp.register_features("local", lambda view: linmdp.one_hot(16, view.A))
    envs = ("local:H=3", "gym:FrozenLake-v1,H=9,features=local")
    return [Job(env, "local:action=1", 5, seed, 1) for env in envs for seed in range(2)]


def test_what_is_registered_travels_to_other_processes() -> None:
    jobs = register_what_nobody_can_import()
    one, two = (list(run_jobs(jobs, processes=n)) for n in (1, 2))
    assert [r.rewards.tolist() for r in one] == [r.rewards.tolist() for r in two]


MODULE = """
import linmdp

@linmdp.register_agent
class Last(linmdp.RandomAgent):
    '''Plays the last action.'''

    name = "last"

    def act(self, h, state):
        return self.task.A - 1

@linmdp.register_env("my-lock")
def my_lock(*, H=4):
    return linmdp.make_env(f"lock:H={H},A=3").unwrapped.model
"""

SWEEP = """
name = "imported"
[[runs]]
env = "my-lock:H=3"
agents = ["last", "random"]
episodes = 6
seeds = 2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a module and a sweep in it."""
    (tmp_path / "my_agents.py").write_text(MODULE)
    (tmp_path / "sweep.toml").write_text(SWEEP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def in_terminal(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`python -m linmdp ARGUMENTS`, in a process of its own."""
    inherited = os.environ.get("PYTHONPATH", "")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([inherited, str(path)] if path else [inherited])}
    call = [sys.executable, "-m", "linmdp", *arguments]
    return subprocess.run(call, capture_output=True, text=True, env=environment, check=False)


def test_an_imported_module_works_in_every_command_and_with_two_workers(folder: Path) -> None:
    given = ("--import", "my_agents")
    for arguments, words in (
        (("run", "my-lock", "last", "-k", "5"), "| last"),
        (("compare", "my-lock", "last", "-k", "5", "--seeds", "2", "--jobs", "2"), "| last"),
        (("sweep", "sweep.toml", "--out", "out", "--jobs", "2"), ""),
        (("check", "my-lock", "--agent", "last"), "last, 1,000 episodes"),
        (("envs",), "\nmy-lock\n"),
        (("agents",), "\nlast\n    Plays the last action."),
    ):
        done = in_terminal(*arguments, *given)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
        assert "last" in done.stdout + arguments[0] * (arguments[0] in ("sweep", "envs")) or arguments[0] in (
            "sweep",
            "envs",
        )
    assert len(list(Store(folder / "out").results())) == 4
    refused = in_terminal("run", "my-lock", "last", "-k", "5")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_an_imported_module_works_on_a_cluster(folder: Path, cluster: Cluster) -> None:
    """Its name is all that is sent: the workers import it themselves, from the folder it was found in."""
    import_modules(["my_agents"])
    assert REGISTERED.get("linmdp.agents", {}) == {}
    worker = cluster.worker()
    work = units([Job("my-lock:H=3", agent, 6, 0, 1) for agent in ("last", "random")])
    work += units(register_what_nobody_can_import())
    with pytest.warns(linmdp.LinMDPWarning, match="no worker yet"):
        done = {d.place: d.value[0] for d in run_units(work, Dask(cluster.address))}
    here = list(run_jobs([job for unit in work for job in unit], processes=1))
    assert [done[place].rewards.tolist() for place in range(len(work))] == [r.rewards.tolist() for r in here]
    (folder / "my_agents.py").unlink()
    worker.kill()
    until(lambda: not _workers(cluster.address))
    cluster.worker()
    until(lambda: _workers(cluster.address))
    with pytest.raises(linmdp.InvalidParameter, match="The module 'my_agents' of --import must be importable wherever"):
        list(run_units(work, Dask(cluster.address)))


@pytest.mark.parametrize(
    ("text", "words"),
    [("raise ValueError('no\\nway')", "ValueError: no way"), ("import sys; sys.exit(3)", "SystemExit: 3")],
)
def test_a_module_that_can_not_be_imported_is_one_line(folder: Path, text: str, words: str) -> None:
    (folder / "my_agents.py").write_text(text)
    done = command("run", "lock", "random", "--import", "my_agents")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert words in done.err


@pytest.mark.parametrize("given", ["my_agents.py", "./my_agents.py", "./my_agents"])
def test_a_file_in_place_of_a_module_is_told_its_name(given: str, folder: Path) -> None:
    (folder / "my_agents.py").write_text("")
    done = command("run", "lock", "random", "--import", given)
    words = f"linmdp: The '--import' option must be a module's name, as in my_agents. Got '{given}'.\n"
    assert (done.status, done.err) == (2, words)


def test_a_module_whose_agent_is_refused_says_what_is_wrong_with_it(folder: Path) -> None:
    (folder / "my_agents.py").write_text(
        "import linmdp\nlinmdp.register_agent(type('No', (linmdp.Agent,), {'name': 'no'}))"
    )
    done = command("run", "lock", "no", "--import", "my_agents")
    assert done.status == 2
    assert re.match("linmdp: The agent 'no' must define .*policy", done.err)
    assert done.err.endswith(" (in the module 'my_agents' of --import)\n")


def test_an_unknown_name_comes_with_how_to_import_a_module() -> None:
    assert command("run", "elevator", "random").err.endswith("Import the module of your own with --import MODULE.\n")


def test_the_command_to_try_imports_what_was_imported(folder: Path) -> None:
    done = command("check", "gym:FrozenLake-v1,H=5", "--agent", "last", "--import", "my_agents")
    assert re.search(
        r"^try: linmdp run gym:FrozenLake-v1,H=5 last --episodes \d+ --import my_agents  #", done.out, re.M
    )


def test_a_learner_in_an_environment_of_ones_own_is_exported(folder: Path) -> None:
    run = ("run", "my-lock", "lsvi-ucb:storage=centres,lam=1", "-k", "5", "--out", "kept", "--import", "my_agents")
    assert command(*run).status == 0
    done = command("export", "kept", "--c", "c", "--steps", "20", "--import", "my_agents")
    assert done.status == 0, done.err
    assert (folder / "c" / "linmdp.h").is_file()


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plug-in of tests/plugin, as pip installs it."""
    pytest.importorskip("setuptools")
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in ("pyproject.toml", "linmdp_example.py"):
        (source / name).write_bytes((PLUGIN / name).read_bytes())
    offline = ("--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", *offline, "--target", str(site), str(source)]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return site


def test_an_installed_package_goes_through_run_compare_sweep_and_report(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(SWEEP.replace("my-lock", "corridor").replace("last", "cyclic"))
    sweep, out = str(tmp_path / "sweep.toml"), str(tmp_path / "out")
    for arguments, words in (
        (("run", "corridor:H=3", "cyclic:stride=2", "-k", "5", "--seeds", "2", "--jobs", "2"), "cyclic:stride=2"),
        (("run", "gym:MountainCar-v0,H=9,features=powers,degree=3", "cyclic", "-k", "3"), "cyclic"),
        (("compare", "corridor", "cyclic", "lsvi-ucb:beta=1", "-k", "9", "--seeds", "4", "--jobs", "2"), "| optimal"),
        (("sweep", sweep, "--out", out, "--jobs", "2"), ""),
        (("table", out), "cyclic"),
        (("report", out), ""),
        (("agents",), "\ncyclic\n    Plays the actions in turn.\n    stride=1\n"),
        (("envs",), "\ncorridor\n    A corridor with a reward at its end"),
    ):
        done = in_terminal(*arguments, path=installed)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
        assert "warning" not in done.stderr
    assert "cyclic" in (tmp_path / "out" / "report.html").read_text()
    (tmp_path / "clash.py").write_text(MODULE.replace('"last"', '"cyclic"'))
    refused = in_terminal("agents", "--import", "clash", path=Path(f"{installed}{os.pathsep}{tmp_path}"))
    assert "must be free. Got 'cyclic', which is linmdp_example.Cyclic" in refused.stderr
    assert json.loads(in_terminal("run", "corridor", "cyclic", "-k", "2", "--json", path=installed).stdout)["regret"]


def test_a_broken_package_is_a_warning_that_names_it(tmp_path: Path) -> None:
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    points = "[linmdp.agents]\nmissing = not_there:Agent\nother = linmdp:RandomAgent\nrandom = linmdp:ConstantAgent\n"
    (info / "entry_points.txt").write_text(points)
    done = in_terminal("agents", path=tmp_path)
    assert done.returncode == 0
    warned = sorted(done.stderr.splitlines())
    assert len(warned) == 2
    assert warned[0].startswith("warning: the agent 'missing' of the package 'broken' cannot be used: ModuleNotFound")
    assert "the agent 'other' of the package 'broken' cannot be used" in warned[1]
    assert "\nrandom\n    Plays every action with the same probability." in done.stdout, "built-in names stay"
    quiet = in_terminal("run", "lock", "random", "-k", "2", path=tmp_path)
    assert quiet.stderr == "", "no plug-in is imported before its name is needed"
