"""Training phi, mu and theta by noise-contrastive estimation. Needs torch and NumPy; no Gymnasium."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from linmdp.errors import InvalidParameter, check_choice, check_int, check_number
from linmdp.features.learned import FORMS, Encoder, LearnedModel
from linmdp.io.files import write_atomic
from linmdp.io.tensorfile import packed, read_tensors
from linmdp.linearize.data import Dataset
from linmdp.linearize.model import model_of_networks
from linmdp.linearize.networks import Networks, contrastive_loss, imbalance

WARM_UP = 3
"""Iterations outside the graph before it is recorded: libraries allocate their workspaces in the first ones."""


class RecordedUpdate:
    """`update(rows, balance)` as a graph; the optimizer must be capturable and read its rate from a tensor.

    The graph reads the batch, the learning rate and the weight of the balance from fixed places; a call fills those
    and replays.
    """

    def __init__(self, update: Callable[[Any, Any], None], nets: torch.nn.Module, optimizer: Any, batch: int) -> None:
        device = next(nets.parameters()).device
        self._rows = torch.zeros(batch, dtype=torch.int64, device=device)
        self._balance = torch.zeros((), device=device)
        self._rates = [group["lr"] for group in optimizer.param_groups]
        before = _learned(nets, optimizer)
        saved = {name: tensor.detach().clone() for name, tensor in before.items()}
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                update(self._rows, self._balance)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self._graph):
            update(self._rows, self._balance)
        with torch.no_grad():  # warming up has learned something: undo it in place, where the graph reads
            for name, tensor in _learned(nets, optimizer).items():
                tensor.copy_(saved[name]) if name in saved else tensor.zero_()

    def __call__(self, rows: Any, lr: float, balance: float) -> None:
        self._rows.copy_(rows)
        self._balance.fill_(balance)
        for rate in self._rates:
            rate.fill_(lr)
        self._graph.replay()


def _learned(nets: torch.nn.Module, optimizer: Any) -> dict[str, Any]:
    """Every tensor that an iteration changes: of the networks, and of the optimizer once it has begun."""
    found: dict[str, Any] = dict(nets.state_dict(keep_vars=True))
    for i, state in enumerate(optimizer.state.values()):
        found |= {f"optimizer.{i}.{name}": value for name, value in state.items() if torch.is_tensor(value)}
    return found


EVAL_BATCHES = 20
Watch = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Every choice of the training, with a default that works.

    Attributes
    ----------
    d : dimension of phi and mu
    steps : iterations, at most: training stops when the held-out loss has not fallen for `patience` evaluations
    batch : transitions per iteration; each has the others' next states as negatives
    hidden : width of the two hidden layers of each network
    lr : Adam's learning rate at the start; it falls to a hundredth of it along a cosine
    form : "linear" (a linear MDP) or "energy" (the published form)
    balance : weight of the term that keeps all dimensions of phi in use; it fades out over the first half
    reward_weight : weight of the reward's squared error, in units of the reward's variance
    held_out : fraction of the episodes that is kept for evaluation
    eval_every : iterations between two evaluations, each followed by a checkpoint
    """

    d: int = 512
    steps: int = 50_000
    batch: int = 256
    hidden: int = 256
    lr: float = 3e-3
    form: str = "linear"
    balance: float = 1.0
    reward_weight: float = 1.0
    held_out: float = 0.1
    patience: int = 10
    eval_every: int = 500
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name, low in (("d", 2), ("steps", 1), ("batch", 2), ("hidden", 1), ("patience", 1), ("eval_every", 1)):
            check_int("linearize", name, getattr(self, name), low=low)
        check_int("linearize", "seed", self.seed, low=0)
        check_number("linearize", "lr", self.lr, low=0.0, open_low=True)
        check_number("linearize", "balance", self.balance, low=0.0)
        check_number("linearize", "reward_weight", self.reward_weight, low=0.0)
        check_choice("linearize", "form", self.form, FORMS)
        check_choice("linearize", "device", self.device, ("cpu", "cuda"))
        if self.device == "cuda" and not torch.cuda.is_available():
            raise InvalidParameter("The 'device' parameter of linearize must be 'cpu' here: this torch finds no GPU.")


def train(
    data: Dataset,
    settings: Settings,
    *,
    checkpoint: Path | None = None,
    on_eval: Watch | None = None,
    advance: Callable[[int], None] | None = None,
) -> LearnedModel:
    """The model of a dataset. With `checkpoint`, an interrupted training resumes."""
    trainer = Trainer(data, settings)
    if checkpoint and checkpoint.exists() and trainer.restore(checkpoint) and advance:
        advance(trainer.step)
    while not trainer.done:
        before = trainer.step
        found = trainer.round()
        if checkpoint:
            trainer.save(checkpoint)
        if on_eval:
            on_eval(trainer.step, found)
        if advance:
            advance(trainer.step - before)
    model = trainer.model()
    if checkpoint:
        checkpoint.unlink(missing_ok=True)
    return model


class Trainer:
    """The state of a training: networks, optimizer, the best networks so far.

    The batches of a round are drawn from (seed, round), so that an interrupted training resumes as if it had
    not been.
    """

    def __init__(self, data: Dataset, settings: Settings) -> None:
        self.data, self.settings, self.step, self.stale = data, settings, 0, 0
        self.rows, self.held = data.split(settings.held_out, settings.seed)
        self.encoder = Encoder.fit(data.layout, data.states[self.rows])
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.seed)
            sizes = (self.encoder.inputs, data.A, settings.d, settings.hidden)
            nets = Networks(*sizes, settings.form)
        self.nets = nets.to(settings.device)
        cuda = settings.device == "cuda"
        lr = torch.tensor(settings.lr, device="cuda") if cuda else settings.lr
        self.optimizer = torch.optim.Adam(self.nets.parameters(), lr=lr, fused=cuda, capturable=cuda)
        self._recorded: RecordedUpdate | None = None
        self.best_loss = math.inf
        self.best = self._copy()
        self._autocast = torch.autocast(settings.device, dtype=torch.bfloat16, enabled=cuda, cache_enabled=False)
        rewards = data.scaled_rewards
        self._unit = float(max(rewards[self.rows].var(), 1e-6))
        self._x, self._after = (self._put(self.encoder(states)) for states in (data.states, data.next_states))
        self._action, self._reward = self._put(data.actions.astype(np.int64)), self._put(rewards.astype(np.float32))
        self._eval_rows = self._evaluation_rows()

    @property
    def done(self) -> bool:
        """All iterations done, or no improvement for a while."""
        return self.step >= self.settings.steps or self.stale >= self.settings.patience

    def round(self) -> dict[str, float]:
        """Iterations up to the next evaluation, and what it found."""
        s = self.settings
        count = min(s.eval_every, s.steps - self.step)
        rng = np.random.default_rng([s.seed, 2, self.step // s.eval_every])
        for rows in self._put(rng.choice(self.rows, size=(count, s.batch))):
            self._iterate(rows)
        found = self._evaluate()
        self.stale = 0 if found["loss"] < self.best_loss else self.stale + 1
        if not self.stale:
            self.best_loss, self.best = found["loss"], self._copy()
        return found

    def _iterate(self, rows: Any) -> None:
        s, done = self.settings, self.step / self.settings.steps
        lr = s.lr * (0.01 + 0.99 * (1 + math.cos(math.pi * done)) / 2)
        balance = s.balance * max(0.0, 1 - 2 * done)
        if s.device == "cuda":
            self._recorded = self._recorded or RecordedUpdate(self._update, self.nets, self.optimizer, s.batch)
            self._recorded(rows, lr, balance)
        else:
            for group in self.optimizer.param_groups:
                group["lr"] = lr
            self._update(rows, balance)
        self.step += 1

    def _update(self, rows: Any, balance: Any) -> None:
        with self._autocast:
            phi = self.nets.features(self._x[rows], self._action[rows])
            mu = self.nets.training_measures(self._after[rows])
        loss = self._loss(phi, mu, rows)
        if self.settings.form == "linear":
            loss = loss + balance * imbalance(phi)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def _loss(self, phi: Any, mu: Any, rows: Any) -> Any:
        squares = ((phi @ self.nets.theta - self._reward[rows]) ** 2).mean() / self._unit
        return contrastive_loss(self.nets, phi, mu) + self.settings.reward_weight * squares

    @torch.no_grad()
    def _evaluate(self) -> dict[str, float]:
        """Means over held-out batches."""
        losses, first = [], []
        for rows in self._eval_rows:
            phi, mu = self.nets.features(self._x[rows], self._action[rows]), self.nets.measures(self._after[rows])
            losses.append(self._loss(phi, mu, rows))
            true = torch.arange(len(rows), device=rows.device)
            first.append((self.nets.logits(phi, mu).argmax(1) == true).float().mean())
        return {"loss": float(torch.stack(losses).mean()), "rank_first": float(torch.stack(first).mean())}

    def _evaluation_rows(self) -> Any:
        """Held-out batches, the same at each evaluation, (batches, batch)."""
        batch = min(self.settings.batch, len(self.held))
        order = np.random.default_rng([self.settings.seed, 3]).permutation(self.held)
        count = min(EVAL_BATCHES, len(order) // batch)
        return self._put(order[: count * batch].reshape(count, batch))

    def model(self) -> LearnedModel:
        """The best networks so far, normalised and measured."""
        arrays = {name: value.cpu().numpy() for name, value in self.best.items()}
        settings = {**asdict(self.settings), "stopped": self.step}
        return model_of_networks(arrays, self.encoder, self.data, settings, self.rows, self.held)

    def save(self, path: Path) -> None:
        """Write a checkpoint."""
        arrays = {f"now.{name}": value for name, value in self.nets.state_dict().items()}
        arrays |= {f"best.{name}": value for name, value in self.best.items()}
        for i, state in self.optimizer.state_dict()["state"].items():
            arrays |= {f"adam.{i}.{name}": value for name, value in state.items()}
        meta = {**self._identity(), "step": self.step, "stale": self.stale, "best_loss": self.best_loss}
        write_atomic(path, packed("checkpoint", meta, {name: value.cpu().numpy() for name, value in arrays.items()}))

    def restore(self, path: Path) -> bool:
        """Become what `save` wrote; False, and nothing changes, if that was of other data or settings."""
        meta, arrays = read_tensors(path, "checkpoint")
        if any(meta.get(name) != value for name, value in self._identity().items()):
            return False
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}
        self.nets.load_state_dict(_under("now.", tensors))
        self.best = {name: value.to(self.settings.device) for name, value in _under("best.", tensors).items()}
        state: dict[int, dict[str, Any]] = {}
        for name, value in _under("adam.", tensors).items():
            index, _, key = name.partition(".")
            state.setdefault(int(index), {})[key] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        self.step, self.stale, self.best_loss = int(meta["step"]), int(meta["stale"]), float(meta["best_loss"])
        return True

    def _identity(self) -> dict[str, Any]:
        return {"settings": asdict(self.settings), "data": self.data.fingerprint}

    def _copy(self) -> dict[str, Any]:
        return {name: value.detach().clone() for name, value in self.nets.state_dict().items()}

    def _put(self, array: np.ndarray) -> Any:
        return torch.as_tensor(array, device=self.settings.device)


def _under(prefix: str, tensors: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
