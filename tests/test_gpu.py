"""What a GPU does in another way than a CPU: runs that play on alone, forms as one product, widths from the data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from linmdp.agents.backend import NUMPY, Backend, backend_for
from linmdp.agents.planner import Planner
from linmdp.errors import InvalidParameter
from linmdp.runner.batch import Job, check_device
from linmdp.runner.registry import make_learner, make_model
from test_lockstep import AUTO, ENVS, STATIONARY, assert_same_runs, kernel_backend, together

SMALL = "synthetic:S=12,A=3,d=4,H=3,start=uniform"
PAPER = "synthetic"


@pytest.mark.parametrize("products", [0, 1 << 20], ids=["forms one by one", "forms together"])
def test_runs_that_do_not_wait_for_each_other_are_the_runs_alone(
    products: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks and rounds far shorter than the run: runs stop between them, within them, and at their ends."""
    backend = kernel_backend()
    monkeypatch.setattr("linmdp.agents.kernels.PRODUCTS_BYTES", products)
    for name, short in (("engine.LEAD", 4), ("run.LEAD", 4), ("run.ROUND", 3)):
        monkeypatch.setattr(f"linmdp.runner.lockstep.{name}", short)
    specs = ["lsvi-ucb-rare-switch:beta=0.3,growth=0.3", "lsvi-ucb-rare-switch:beta=0.1,eta=2,ties=first"]
    assert_same_runs(SMALL, backend, specs, episodes=10)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_forms_as_one_product_are_those_of_the_kernel(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = kernel_backend()
    torch, kernels, rng = backend.xp, backend.kernels(3, 2), np.random.default_rng(0)
    B, H, d, length = 3, 2, 3, 7
    roots = rng.standard_normal((H, B, d, d))
    planner: Any = type("Planner", (), {})()
    planner.w = backend.zeros((H, B, d))
    planner.ridge = type("Ridge", (), {})()
    planner.ridge.Lambda = backend.array(roots @ roots.swapaxes(-1, -2) + np.eye(d))
    planner.ridge.Lambda_inv, planner.ridge.waiting = backend.zeros((H, B, d, d)), backend.zeros((H, B, 1, d))
    planner.ridge.lam, planner.ridge.shift = backend.zeros((B,)), backend.array([0.0, 0.5, -0.5])
    which, found = backend.array([0, 1, 3, 5], "int64"), []
    columns = rng.standard_normal((d, length))
    for room in (0, 1 << 20):
        monkeypatch.setattr("linmdp.agents.kernels.PRODUCTS_BYTES", room)
        planner.storage = type("Storage", (), {})()
        planner.storage.columns = backend.cast(backend.array(columns), dtype)
        planner.storage.forms = backend.zeros((H, B, length), dtype)
        kernels.renew(planner, which)  # type: ignore[union-attr]
        found.append(planner.storage.forms.reshape(H * B, length))
    torch.testing.assert_close(found[1], found[0], rtol=1e-12 if dtype == "float64" else 1e-5, atol=0)
    assert (found[1].sum(-1) > 0).tolist() == [True, True, False, True, False, True]
    shifted = backend.host(planner.ridge.Lambda).reshape(-1, d, d)[5] - 0.5 * np.eye(d)
    x = backend.host(planner.storage.columns).astype(float)
    expected = np.einsum("in,ij,jn->n", x, np.linalg.inv(shifted), x)
    np.testing.assert_allclose(backend.host(found[1])[5], np.abs(expected), rtol=1e-5)


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_widths_from_the_data_with_inverses_by_kernels() -> None:
    assert_same_runs(SMALL, kernel_backend(), ["lsvi-ucb:lam=auto", "lsvi-ucb:replan=0.4"], episodes=6)


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_defaults_on_a_gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    backend = backend_for("cuda")
    for specs in (AUTO[:4], AUTO[-1:] * 2, STATIONARY[:3], ["lsvi-ucb:stationary=true,discount=0.9"] * 2):
        assert_same_runs(ENVS[0], backend, specs, episodes=40)


@pytest.mark.filterwarnings("ignore::linmdp.LinMDPWarning")
def test_runs_with_no_parameter_part_by_rounding_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before there are d samples of a step, a planning at lam ~ 2e-4 multiplies errors from step to step.

    So the paper's MDP runs apart on NumPy and torch after about 26 episodes, and as early on NumPy alone with sums
    that are off by 1e-15 of themselves; the first twenty episodes are the same.
    """
    pytest.importorskip("torch")
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)  # the formulas, not the kernels
    seeded = [("lsvi-ucb:lam=auto", seed) for seed in range(2)]
    usual, other = (together(PAPER, seeded, 32, backend) for backend in (NUMPY, Backend("torch")))
    plan, rng = Planner.plan, np.random.default_rng(0)

    def perturbed(planner: Any, *args: Any, **kwargs: Any) -> None:
        planner.ridge.u *= 1 + 1e-15 * rng.standard_normal(planner.ridge.u.shape)
        plan(planner, *args, **kwargs)

    monkeypatch.setattr(Planner, "plan", perturbed)
    for mine, theirs, moved in zip(usual, other, together(PAPER, seeded, 32), strict=True):
        np.testing.assert_allclose(theirs.rewards[:20], mine.rewards[:20], atol=1e-9)
        np.testing.assert_allclose(moved.rewards[:20], mine.rewards[:20], atol=1e-9)
        assert np.abs(moved.rewards - mine.rewards).max() > 1e-6, "rounding no longer moves it: compare all episodes"


def test_what_a_gpu_cannot_run_says_so() -> None:
    task = make_model(SMALL).task
    for spec in ("lsvi-ucb:beta=0.1,storage=features", "lsvi-phe:beta=0.1", "lsvi-ucb:lam=0.1"):
        with pytest.raises(InvalidParameter, match=r"must be 'cpu' for '.*': a GPU runs LSVI agents with counts"):
            check_device(Job(SMALL, spec, 5, 0, 1, "cuda"), make_learner(spec, task, 5))
    for spec in ("lsvi-ucb:lam=auto", "lsvi-ucb:beta=0.1,stationary=true", "lsvi-ucb:stationary=true,discount=0.9"):
        check_device(Job(SMALL, spec, 5, 0, 1, "cuda"), make_learner(spec, task, 5))
