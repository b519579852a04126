"""Files that someone else made: every reader returns or refuses in one line, runs nothing, and allocates little."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import tracemalloc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import linmdp
from linmdp.export.write import export_policy
from linmdp.features.learned import read_model
from linmdp.io.tensorfile import packed, read_tensors
from linmdp.linearize.data import read_dataset
from linmdp.results.store import Store
from linmdp.runner.sweep import InvalidSweep, plan, read_sweep
from test_faults import benchmark

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
LIMIT = 64 << 20


class Bench:
    """The fuzzer of the benchmarks folder with its readers, made once."""

    def __init__(self, folder: Path) -> None:
        self.fuzz, self.used, self.spare = benchmark("fuzz"), folder / "used", folder / "spare"
        for part in (made := folder / "made", self.used, self.spare):
            part.mkdir()
        self.readers: dict[str, Any] = self.fuzz.readers(made)

    def tried(self, kind: str, data: bytes) -> Any:
        """What a reader made of it, and the most memory that it took."""
        tracemalloc.start()
        try:
            outcome = self.fuzz.tried(self.readers[kind], data, self.used)
            return outcome, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    before = signal.getsignal(signal.SIGALRM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Bench(tmp_path_factory.mktemp("fuzz"))
        signal.signal(signal.SIGALRM, made.fuzz._too_long)
        yield made
    signal.signal(signal.SIGALRM, before)


KINDS = ("model", "dataset", "agent", "checkpoint", "store", "sweep")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_whole_is_read(kind: str, bench: Bench) -> None:
    assert set(bench.readers) == set(KINDS)
    for data in bench.readers[kind].seeds:
        outcome, _ = bench.tried(kind, data)
        assert outcome == (True, "")


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(kind=st.sampled_from(KINDS), rng=st.randoms(use_true_random=False))
def test_what_is_mutated_is_read_or_refused_in_one_line(bench: Bench, kind: str, rng: random.Random) -> None:
    data = bench.fuzz.mutated(kind, rng.choice(bench.readers[kind].seeds), rng, bench.spare)
    outcome, peak = bench.tried(kind, data)
    assert outcome.ok, outcome.words
    assert peak < LIMIT


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.name)
def test_the_corpus_is_refused_in_one_line(path: Path, bench: Bench) -> None:
    outcome, peak = bench.tried(path.name.rpartition("-")[0], path.read_bytes())
    assert outcome.ok, outcome.words
    assert outcome.words
    assert peak < LIMIT


@pytest.mark.parametrize("kind", ["model", "dataset", "agent", "checkpoint"])
def test_every_truncation_is_refused(kind: str, bench: Bench) -> None:
    data = bench.readers[kind].seeds[0]
    for length in range(0, len(data), max(1, len(data) // 60)):
        outcome, _ = bench.tried(kind, data[:length])
        assert outcome.ok
        assert outcome.words


@pytest.mark.parametrize("kind", ["model", "dataset", "agent", "checkpoint"])
def test_every_flipped_bit_is_refused(kind: str, bench: Bench) -> None:
    """Where files have a checksum; the rest of a header that is padded with spaces says nothing."""
    data, rng = bench.readers[kind].seeds[0], random.Random(0)
    for at in rng.sample(range(len(data)), 120):
        flipped = bytearray(data)
        flipped[at] ^= 1 << rng.randrange(8)
        outcome, _ = bench.tried(kind, bytes(flipped))
        assert outcome.ok
        assert outcome.words or data[at : at + 1] == b" "


def test_the_fuzzer_sees_what_goes_wrong(bench: Bench) -> None:
    def breaks(path: Path) -> None:
        raise KeyError("x")

    def hangs(path: Path) -> None:
        raise bench.fuzz.Hang

    def talks(path: Path) -> None:
        raise linmdp.InvalidData("x" * 999)

    for read, ok in ((breaks, False), (hangs, False), (talks, True), (lambda path: None, True)):
        assert bench.fuzz.tried(bench.fuzz.Reader("x", read, []), b"", bench.used).ok is ok


def test_shipped_models_have_a_checksum() -> None:
    for name in ("alien", "phoenix"):
        assert "sha256" in read_model(name).meta


def forged(path: Path, kind: str, arrays: dict[str, Any] | None = None, **words: Any) -> Path:
    """The file with other arrays and words, as if it had been written so: it has no checksum that could be wrong."""
    file = read_tensors(path, kind)
    meta = {name: value for name, value in file.meta.items() if name not in ("sha256", "kind")}
    path.write_bytes(packed(kind, meta | words, file.arrays | (arrays or {})))
    return path


def model(bench: Bench, folder: Path, **words: Any) -> Path:
    path = folder / "m.safetensors"
    path.write_bytes(bench.readers["model"].seeds[0])
    return forged(path, "model", **words)


@pytest.mark.parametrize("env", ["os:path", "evil:Env-v0", "../../x", "/etc/passwd", "a b", 7, ""])
def test_a_model_can_not_name_a_module_or_a_path_as_its_environment(env: Any, bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(linmdp.InvalidData, match="must be a plain Gymnasium id"):
        read_model(model(bench, tmp_path, env=env))


@pytest.mark.parametrize("value", ["/etc/passwd", "../x", ["x"], {"a": 1}])
def test_a_model_can_not_pass_a_path_to_its_environment(value: Any, bench: Bench, tmp_path: Path) -> None:
    with pytest.raises(linmdp.InvalidData, match="must be a number or a word"):
        read_model(model(bench, tmp_path, kwargs={"xml_file": value}))


def test_a_pipe_or_a_folder_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        for read in (lambda p: read_model(str(p) + ""), read_dataset, read_sweep):
            with pytest.raises(linmdp.LinMDPError):
                read(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('env = "gym:os:x"', "must not name a module"),
        ("seeds = 999999\nepisodes = [1, 2]", "at most 1000000 runs"),
        ("seeds = 10000000000", "must be <= 1000000"),
    ],
)
def test_a_sweep_can_not_import_or_explode(change: str, words: str, tmp_path: Path) -> None:
    path, base = tmp_path / "s.toml", {"env": '"lock"', "agents": '["random"]', "episodes": "1"}
    base |= dict(line.split(" = ", 1) for line in change.splitlines())
    path.write_text('name = "x"\n[[runs]]\n' + "\n".join(f"{k} = {v}" for k, v in base.items()))
    with pytest.raises(InvalidSweep, match=words) as refused:
        plan(read_sweep(path), path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "sql", ["CREATE VIEW v AS SELECT 1", "CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END"]
)
def test_a_store_with_anything_but_its_tables_is_refused_and_left_alone(sql: str, tmp_path: Path) -> None:
    Store(tmp_path).close()
    db = sqlite3.connect(tmp_path / "runs.sqlite")
    db.execute(sql)
    db.commit()
    db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    before = (tmp_path / "runs.sqlite").read_bytes()
    with pytest.raises(linmdp.InvalidData, match="is no store of linmdp"):
        Store(tmp_path)
    assert (tmp_path / "runs.sqlite").read_bytes() == before


def test_names_in_a_file_are_never_paths(tmp_path: Path) -> None:
    """Arrays called ../x stay arrays; a run called ../../x stays in its folder."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "agent"
    env = linmdp.make_env("lock:H=3")
    agent = linmdp.make_agent("lsvi-ucb", env)
    agent.save(path)
    linmdp.load_agent(forged(path, "agent", {"../x": np.zeros(2)}), env)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]
    assert [p.name for p in (tmp_path / "in").iterdir()] == ["agent"]


@pytest.mark.parametrize("size", ["S", "A", "d", "H"])
@pytest.mark.parametrize("value", [10**9, None, -1, 2.5])
def test_the_sizes_in_the_words_about_an_agent_must_be_those_of_its_task(size: str, value: Any, tmp_path: Path) -> None:
    env, path = linmdp.make_env("lock:H=3"), tmp_path / "agent"
    linmdp.make_agent("lsvi-ucb", env).save(path)
    forged(path, "agent", agent=read_tensors(path, "agent").meta["agent"] | {size: value})
    with pytest.raises(linmdp.InvalidData, match=f"Its metadata must say {size}="):
        linmdp.load_agent(path, env)


@pytest.mark.parametrize(
    ("spec", "name", "value"),
    [
        ("lsvi-ucb:lam=0.1,beta=0.1,storage=features", "planner.ridge.lam", 0.0),
        ("lsvi-ucb:lam=0.1,beta=0.1,storage=features", "planner.ridge.Lambda_inv", -1.0),
        ("lsvi-ucb:lam=0.1,beta=0.1", "planner.ridge.Lambda", 0.0),
        ("lsvi-ucb:lam=0.1,beta=0.1", "planner.ridge.delayed", 1000),
        ("lsvi-ucb:storage=centres,lam=0.1,M=6", "auto_beta.numbers", -1.0),
        ("lsvi-ucb:storage=centres,lam=0.1,M=6", "auto_beta.arm", 100),
        ("lsvi-ucb:storage=centres,lam=0.1,M=6", "planner.storage.count", -1),
        ("lsvi-ucb:lam=0.1,storage=states", "planner.storage.1.0.next", 1000),
        ("lsvi-ucb", "planner.w", 1e300),
        ("q-learning:c=0.1", "N", -1),
    ],
)
def test_what_has_to_be_positive_or_in_range_is_so_on_loading(
    spec: str, name: str, value: float, tmp_path: Path
) -> None:
    """Not at the next planning, as an IndexError: also where the checksum is right."""
    env, path = linmdp.make_env("lock:H=4"), tmp_path / "agent"
    agent = linmdp.make_agent(spec, env, 8)
    linmdp.run(env, agent, episodes=8)
    agent.save(path)
    forged(path, "agent", {name: np.full_like(read_tensors(path, "agent").arrays[name], value)})
    with pytest.raises(linmdp.InvalidData, match="of a saved agent must be"):
        linmdp.load_agent(path, env)


DENSE = "lsvi-ucb:lam=0.1,beta=0.1,stationary=true"


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("Lambda", lambda agent, env, folder: linmdp.run(env, agent, episodes=1, verdict=False)),
        ("Lambda_inv", lambda agent, env, folder: export_policy(agent, folder / "c", real="double", run="")),
    ],
)
def test_a_matrix_that_has_no_inverse_is_one_line(name: str, use: Any, tmp_path: Path) -> None:
    """Each number of it can be, so that it loads; the planning that inverts it is not the next one."""
    env, path = linmdp.make_env("gym:CartPole-v1,H=10,features=fourier,order=1"), tmp_path / "agent"
    agent = linmdp.make_agent(DENSE, env, 8)
    linmdp.run(env, agent, episodes=8, verdict=False)
    agent.save(path)
    odd = np.ones_like(read_tensors(path, "agent").arrays["planner.ridge.Lambda"])
    if name == "Lambda_inv":  # any two of three numbers can go together so, and not all three
        odd[...] = np.eye(odd.shape[-1])
        odd[:, :3, :3] = [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]
    changed = {f"planner.ridge.{name}": odd, "planner.ridge.absorbed": np.array(512)}
    loaded = linmdp.load_agent(forged(path, "agent", changed), env)
    with pytest.raises(linmdp.InvalidData, match="a regression has no solution"):
        use(loaded, env, tmp_path)


def test_what_can_be_done_with_a_mutated_store_agent_or_learner_goes_well_or_is_one_line() -> None:
    for row in benchmark("fuzz_uses").rows(300, seed=1):
        assert row.trials == 100
        assert row.failures == 0, row


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("agent.returns.lengths", -1),
        ("agent.plan.numbers", 0.0),
        ("agent.shares", 1e200),
        ("agent.plan.w", np.nan),
        ("agent.experience.action", 2),
    ],
)
def test_a_learner_file_may_not_say_what_no_learner_can_hold(name: str, value: float, tmp_path: Path) -> None:
    path = tmp_path / "learner"
    linmdp.Learner("gym:CartPole-v1,H=10", "auto").learn(8).save(path)
    forged(path, "learner", {name: np.full_like(read_tensors(path, "learner").arrays[name], value)})
    with pytest.raises(linmdp.InvalidData) as refused:
        linmdp.Learner.load(path)
    assert name.split(".")[-1] in str(refused.value) or "plan" in str(refused.value)


def test_forms_of_a_saved_agent_are_not_negative() -> None:
    agent = linmdp.make_agent("lsvi-ucb:storage=counts,lam=0.1", linmdp.make_env("lock:H=4"))
    state = agent.state_dict()
    with pytest.raises(linmdp.InvalidData, match="forms"):
        agent.load_state_dict(state | {"planner.storage.forms": -state["planner.storage.forms"]})


def test_a_random_stream_of_a_learner_file_must_be_one(tmp_path: Path) -> None:
    path = tmp_path / "learner"
    linmdp.Learner("lock:H=4", "random").learn(2).save(path)
    state = read_tensors(path, "learner").meta["state"]
    state["random"][0]["has_uint32"] = -(2**63)
    with pytest.raises(linmdp.InvalidData, match="cannot be used here"):
        linmdp.Learner.load(forged(path, "learner", state=state))


@pytest.mark.parametrize("changed", [{"n": [-5, -3]}, {"n": [8, 0]}, {"plays": 2}, {"k": -1}])
def test_turns_of_an_insured_agent_are_those_of_its_episodes(changed: dict[str, Any]) -> None:
    env = linmdp.make_env("lock:H=4")
    agent = linmdp.make_agent("insured:inner=random", env)
    linmdp.run(env, agent, episodes=8, verdict=False)
    state = agent.state_dict()
    agent.load_state_dict(state)
    with pytest.raises(linmdp.InvalidData, match="turns"):
        agent.load_state_dict(state | {name: np.array(value) for name, value in changed.items()})


def test_a_count_of_minus_zero_is_zero() -> None:
    env = linmdp.make_env("lock:H=4")
    agent = linmdp.make_agent("psrl", env)
    state = agent.state_dict()
    agent.load_state_dict(state | {"C": -np.zeros_like(state["C"])})
    linmdp.run(env, agent, episodes=2, verdict=False)
