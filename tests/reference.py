"""The algorithms, transcribed line by line from their papers: slow, plain, the judge of the fast code.

Everything is recomputed from the stored samples; every matrix is inverted afresh; Adaptive keeps its m+1 matrices.
Lists count steps h from 0. Where the paper is open, the choices are those of the design: Q_h uses Lambda_h, the
value after the last step and after a terminal state is 0, all steps of Adaptive reset together before planning,
and actions within `TIE` of the best are tied.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from linmdp.types import Array, Task

TIE = 1e-9


class Sample(NamedTuple):
    phi: Array
    reward: float
    next_phi: Array | None  # (A, d); None after a terminal state


class ReferenceLSVI:
    """Algorithm 1, and the parts that Algorithms 2 and 3 share with it."""

    def __init__(self, task: Task, *, beta: float, lam: float, cap: str = "H", ties: str = "first") -> None:
        self.task, self.beta, self.lam, self.cap, self.ties = task, beta, lam, cap, ties
        self.rng = np.random.default_rng()
        self.k = 0
        self.samples: list[list[Sample]] = [[] for _ in range(task.H)]
        # Q_h as (w_h, Lambda_h^-1): before anything is learned w = 0 and Lambda = lam I
        self.w: list[Array] = [np.zeros(task.d) for _ in range(task.H)]
        self.inverse: list[Array] = [np.eye(task.d) / lam for _ in range(task.H)]
        self.learns = [False] * task.H

    def cap_at(self, h: int) -> float:
        r_max = self.task.reward_range[1]
        return (self.task.H if self.cap == "H" else self.task.H - h) * r_max

    def Q(self, h: int, phi: Array) -> Array:
        """min(w'phi + beta (phi' Lambda^-1 phi)^(1/2), H) for each row of phi, one at a time."""
        values = []
        for x in phi:
            M = self.w[h] @ x + self.beta * math.sqrt(x @ self.inverse[h] @ x)
            values.append(min(M, self.cap_at(h)))
        return np.array(values)

    def learn_step(self, h: int) -> None:
        """Lines 5 to 11 of Algorithm 1 for one step."""
        d = self.task.d
        Lambda = self.lam * np.eye(d)
        u, z = np.zeros(d), np.zeros(d)
        for sample in self.samples[h]:
            Lambda += np.outer(sample.phi, sample.phi)
            u += sample.phi * sample.reward
            if h < self.task.H - 1 and sample.next_phi is not None:
                z += sample.phi * max(self.Q(h + 1, sample.next_phi))
        self.inverse[h] = np.linalg.inv(Lambda)
        self.w[h] = self.inverse[h] @ (u + z)

    def begin_episode(self) -> None:
        self.start_episode()
        for h in reversed(range(self.task.H)):
            self.learns[h] = True
            self.learn_step(h)

    def start_episode(self) -> None:
        self.k += 1
        self.tie_draws = self.rng.random(self.task.H)  # one number a step, whether it is needed or not

    def act(self, h: int, state: Any) -> int:
        q = self.Q(h, self.task.features.phi(state))
        slack = TIE * max(1.0, abs(self.cap_at(0)))
        best = [a for a in range(self.task.A) if q[a] >= max(q) - slack]
        if self.ties == "first" or len(best) == 1:
            return best[0]
        return best[int(self.tie_draws[h] * len(best))]

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        if self.learns[h]:
            next_phi = None if terminated else self.task.features.phi(next_state)
            self.samples[h].append(Sample(self.task.features.phi(state)[action].copy(), reward, next_phi))

    def end_episode(self) -> None:
        pass

    def q_values(self, h: int, state: Any) -> Array:
        return self.Q(h, self.task.features.phi(state))


class ReferenceStationary(ReferenceLSVI):
    """Algorithm 1 for a task whose dynamics do not depend on h: every sample counts at every step."""

    def __init__(self, task: Task, **common: Any) -> None:
        super().__init__(task, **common)
        self.samples = [[]] * task.H  # one list, seen H times


class ReferenceRareSwitch(ReferenceLSVI):
    """LSVI-UCB that plans only when some determinant has grown by a factor eta since the last planning."""

    def __init__(self, task: Task, *, eta: float, **common: Any) -> None:
        super().__init__(task, **common)
        self.eta, self.reference = eta, [0.0] * task.H

    def begin_episode(self) -> None:
        self.start_episode()
        self.learns = [True] * self.task.H
        log_dets = []
        for samples in self.samples:
            Lambda = self.lam * np.eye(self.task.d)
            for sample in samples:
                Lambda += np.outer(sample.phi, sample.phi)
            log_dets.append(np.linalg.slogdet(Lambda)[1])
        grown = [now - before for now, before in zip(log_dets, self.reference, strict=True)]
        if self.k == 1 or max(grown) > math.log(self.eta):
            self.reference = log_dets
            for h in reversed(range(self.task.H)):
                self.learn_step(h)


class ReferencePHE(ReferenceLSVI):
    """LSVI-PHE: the largest of several perturbed regressions, each drawn afresh at every planning."""

    def __init__(self, task: Task, *, draws: int, **common: Any) -> None:
        super().__init__(task, **common)
        self.draws, self.seed = draws, 0
        self.perturbed: list[list[Array]] = [[np.zeros(task.d)] * draws] * task.H

    def begin_episode(self) -> None:
        self.seed = self.seed or int(self.rng.integers(1, 2**62))
        self.start_episode()
        self.learns = [True] * self.task.H
        noise = np.random.default_rng((self.seed, self.k)).standard_normal((self.task.H, self.draws, self.task.d))
        for h in reversed(range(self.task.H)):
            self.learn_step(h)
            root = np.linalg.cholesky(self.inverse[h])
            self.perturbed[h] = [self.w[h] + self.beta * (root @ g) for g in noise[h]]

    def Q(self, h: int, phi: Array) -> Array:
        return np.array([min(max(w @ x for w in self.perturbed[h]), self.cap_at(h)) for x in phi])


class ReferenceEvidence:
    """lam="auto": the shortfall W = cap - Q is regressed, its width and lam follow from the data. Sums are sums.

    `absorbing`: a state in which an episode ended counts as a sample of each action, that falls short of everything.
    """

    def __init__(self, task: Task, *, stationary: bool, ties: str = "first", absorbing: bool = False) -> None:
        self.task, self.stationary, self.ties, self.absorbing = task, stationary, ties, absorbing
        self.rng = np.random.default_rng()
        self.lam, self.last_lam = 1e-4, 1e-4
        one: list[Any] = []
        self.samples = [one] * task.H if stationary else [[] for _ in range(task.H)]
        self.fits: list[tuple[Array, Array, float]] = [(np.zeros(task.d), np.eye(task.d) / 1e-4, 0.0)] * task.H
        low, high = task.reward_range
        self.best, self.room = max(high, 0.0), max(high, 0.0) - min(low, 0.0)
        columns = np.array([task.features.phi(s) for s in range(task.S or 0)]).reshape(-1, task.d)
        self.unit = bool(len(columns) and np.isin(columns, (0.0, 1.0)).all() and (columns.sum(1) == 1).all())

    def W(self, h: int, phi: Array) -> Array:
        w, inverse, beta = self.fits[h]
        raw = [x @ w - beta * math.sqrt(x @ inverse @ x) for x in phi]
        return np.asarray(np.clip(raw, 0.0, (self.task.H - h) * self.room))

    def begin_episode(self) -> None:
        self.tie_draws = self.rng.random(self.task.H)
        d, H, evidence, size = self.task.d, self.task.H, 0.0, 0.0
        self.last_lam = lam = self.lam
        for h in reversed(range(H)):
            Lambda: Array = lam * np.eye(d)
            z, total, yy, n = np.zeros(d), 0.0, 0.0, 0
            for phi, cost, next_phi, over in self.samples[h]:
                ahead = 0.0
                if h < H - 1:
                    ahead = (H - h - 1) * self.best if over else float(self.W(h + 1, next_phi).min())
                known = [(x, (H - h) * self.best) for x in next_phi] if over and self.absorbing else []
                for x, y in [(phi, cost + ahead), *known]:
                    Lambda, z, n = Lambda + np.outer(x, x), z + x * y, n + 1
                    total, yy = total + y, yy + y * y
            inverse = np.linalg.inv(Lambda)
            w, dof = inverse @ z, d - lam * np.trace(inverse)
            rss = max(0.0, float(yy - w @ z - lam * w @ w))
            spread = yy / max(n, 1) - (total / max(n, 1)) ** 2
            rss = 0.0 if rss <= 1e-7 * yy else rss  # rounding
            spread = 0.0 if max(n, 1) * spread <= 1e-7 * yy else spread
            variance = (rss + 0.01 * spread) / (max(n - dof, 0.0) + 0.01)
            self.fits[h] = w, inverse, 3 / math.sqrt(H) * math.sqrt(variance)
            evidence, size = evidence + variance * float(dof), size + float(w @ w)
        every = [x for samples in (self.samples[:1] if self.stationary else self.samples) for x in samples]
        if every:
            trace = sum(phi @ phi for phi, _, _, _ in every) / len(every)
            floor = (0.01 if self.task.S is None else 0.1) * trace / d
            if self.unit:
                floor = 0.03
            self.lam = min(max(evidence / max(size, 1e-12), floor), max(trace, floor))

    def q_values(self, h: int, state: Any) -> Array:
        return np.asarray((self.task.H - h) * self.best - self.W(h, self.task.features.phi(state)))

    def act(self, h: int, state: Any) -> int:
        q = self.q_values(h, state)
        best = [a for a in range(self.task.A) if q[a] >= max(q) - TIE * max(1.0, self.task.H * self.best)]
        return best[0] if self.ties == "first" or len(best) == 1 else best[int(self.tie_draws[h] * len(best))]

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        phi = self.task.features.phi(state)[action].copy()
        self.samples[h].append((phi, self.best - reward, self.task.features.phi(next_state), terminated))

    def end_episode(self) -> None:
        pass


class ReferenceFixed(ReferenceLSVI):
    """Algorithm 2."""

    def __init__(self, task: Task, *, K: int, rho: float, **common: Any) -> None:
        super().__init__(task, **common)
        self.phase = max(2, math.floor(round(K**rho, 9)))  # K^rho, not its rounding error
        self.K_0 = 0

    def begin_episode(self) -> None:
        self.start_episode()
        H = self.task.H
        self.learns = [False] * H
        if self.k < self.K_0 + self.phase:
            for h in reversed(range(H)):
                self.learn_step(h)
                self.learns[h] = True
        elif self.k == self.K_0 + self.phase:
            self.K_0 += self.phase
            self.samples = [[] for _ in range(H)]


class ReferenceAdaptive(ReferenceLSVI):
    """Algorithm 3. `budget` is a count here."""

    def __init__(
        self,
        task: Task,
        *,
        K: int,
        rho: float,
        m: int,
        tau: float,
        budget: int,
        proxy: str = "all",
        **common: Any,
    ) -> None:
        super().__init__(task, **common)
        self.length, self.m, self.tau, self.budget, self.proxy = K**rho, m, tau, budget, proxy
        self.learn_its, self.tot_its = [0] * task.H, [0] * task.H
        self.L = [self.lam * np.eye(task.d) for _ in range(task.H)]
        self.history: list[list[Array]] = [[np.linalg.inv(L)] for L in self.L]
        self.seen: list[Array | None] = [None] * task.H
        self.resetting = False

    def LEARN(self, h: int) -> bool:
        window = self.history[h][-(self.m + 1) :]
        if len(window) < self.m + 1:
            return True
        return max(float(np.linalg.norm(X - Y)) for X in window for Y in window) >= self.tau

    def begin_episode(self) -> None:
        self.start_episode()
        H = self.task.H
        self.learns = [False] * H
        self.resetting = any(self.learn_its[h] >= self.budget or self.tot_its[h] >= self.length for h in range(H))
        if self.resetting:
            self.samples = [[] for _ in range(H)]
            self.learn_its, self.tot_its = [0] * H, [0] * H
            if self.proxy == "phase":
                self.L = [self.lam * np.eye(self.task.d) for _ in range(H)]
                self.history = [[np.linalg.inv(L)] for L in self.L]
            return
        for h in reversed(range(H)):
            self.tot_its[h] += 1
            if self.LEARN(h):
                self.learn_its[h] += 1
                self.learn_step(h)
                self.learns[h] = True

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self.seen[h] = self.task.features.phi(state)[action].copy()

    def end_episode(self) -> None:
        if self.resetting and self.proxy == "phase":
            self.seen = [None] * self.task.H
            return
        for h, phi in enumerate(self.seen):
            if phi is not None:
                self.L[h] = self.L[h] + np.outer(phi, phi)
            self.history[h].append(np.linalg.inv(self.L[h]))
        self.seen = [None] * self.task.H


class Centre:
    """A next state, the weights with which it stands for those of samples, and bounds of how far these are from it."""

    def __init__(self, phi: Array) -> None:
        self.phi, self.weights, self.S, self.G = phi, dict[int, float](), 0.0, 0.0

    @property
    def n(self) -> float:
        return sum(self.weights.values())

    def stand_for(self, weights: dict[int, float]) -> None:
        for i, weight in weights.items():
            self.weights[i] = self.weights.get(i, 0.0) + weight


class ReferenceCentres(ReferenceLSVI):
    """LSVI-UCB-Centres as its page defines it, one sample at a time; the true samples are kept to judge it by."""

    WIDER = 1.5

    def __init__(self, task: Task, *, M: int, inflate: float = 0.0, stationary: bool = False, **common: Any) -> None:
        super().__init__(task, **common)
        self.M, self.inflate, self.stationary, H, d = M, inflate, stationary, task.H, task.d
        self.samples = [[]] * H if stationary else self.samples
        sets = 1 if stationary else H
        self.centres: list[list[Centre]] = [[] for _ in range(sets)]
        self.W: list[Array] = [np.zeros((d, d)) for _ in range(sets)]
        self.tau, self.E, self.betas = [0.0] * sets, [0.0] * H, [self.beta] * H

    def set_of(self, h: int) -> int:
        return 0 if self.stationary else h

    def distance(self, x: Array, y: Array) -> float:
        return max(float(np.linalg.norm(a - b)) for a, b in zip(x, y, strict=True))

    def stretch(self, g: int, x: Array, y: Array) -> float:
        """The same in the norm of Lambda^-1 of the next step, as it was at the last planning."""
        inverse = self.inverse[0 if self.stationary else g + 1]
        return max(math.sqrt((a - b) @ inverse @ (a - b)) for a, b in zip(x, y, strict=True))

    def outer(self, x: Array, y: Array) -> Array:
        return np.asarray(sum(np.outer(a - b, a - b) for a, b in zip(x, y, strict=True)))

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        g = self.set_of(h)
        if terminated or (g == self.task.H - 1 and not self.stationary) or not self.learns[h]:
            return
        i, phi = len(self.samples[h]) - 1, self.task.features.phi(next_state)
        least = min((self.distance(phi, c.phi) for c in self.centres[g]), default=math.inf)
        if least > self.tau[g] * (1 + 1e-9):
            self.centres[g].append(Centre(phi.copy()))
            self.centres[g][-1].stand_for({i: 1.0})
        else:
            for c, share in self.shares(phi, self.centres[g], 2 * self.tau[g]):
                c.stand_for({i: share})
                c.S += share * self.distance(phi, c.phi) ** 2
                c.G += share * self.stretch(g, phi, c.phi) ** 2
                self.W[g] = self.W[g] + share * self.outer(phi, c.phi)
        while len(self.centres[g]) > self.M:
            self.merge(g)

    def shares(self, phi: Array, centres: list[Centre], reach: float) -> list[tuple[Centre, float]]:
        """Who stands for a next state: the nearest six within reach, less those with a weight below 0."""
        near = sorted(centres, key=lambda c: self.distance(phi, c.phi))[:6]
        if self.distance(phi, near[0].phi) == 0:
            return [(near[0], 1.0)]
        near = [c for c in near if self.distance(phi, c.phi) <= reach * (1 + 1e-9)] or near[:1]
        ridge = 1e-6 * sum(float(np.sum((c.phi - phi) ** 2)) for c in near)
        while True:
            products = [[float(np.sum((c.phi - phi) * (o.phi - phi))) for o in near] for c in near]
            weights = np.linalg.solve(np.array(products) + ridge * np.eye(len(near)), np.ones(len(near)))
            if min(weights) > 0:
                return [(c, float(weight / sum(weights))) for c, weight in zip(near, weights, strict=True)]
            near = [c for c, weight in zip(near, weights, strict=True) if weight > 0]

    def merge(self, g: int) -> None:
        centres = sorted(self.centres[g], key=lambda c: -c.n)
        least = min(self.distance(c.phi, o.phi) for i, c in enumerate(centres) for o in centres[:i])
        self.tau[g] = max(self.WIDER * self.tau[g], least)
        kept: list[Centre] = []
        for c in centres:
            if all(self.distance(c.phi, o.phi) > self.tau[g] + 1e-7 for o in kept):
                kept.append(c)
        X: Array = np.zeros((self.task.d, self.task.d))
        before, before_n = 0.0, {id(c): (c.n, c.S, c.G, dict(c.weights)) for c in centres}
        for c in (c for c in centres if c not in kept):
            n, S, G, weights = before_n[id(c)]
            for o, share in self.shares(c.phi, kept, self.tau[g]):
                o.S += share * (math.sqrt(S) + self.distance(c.phi, o.phi) * math.sqrt(n)) ** 2
                o.G += share * (math.sqrt(G) + self.stretch(g, c.phi, o.phi) * math.sqrt(n)) ** 2
                o.stand_for({i: share * weight for i, weight in weights.items()})
                X, before = X + share * n * self.outer(c.phi, o.phi), before + S
        if before and np.trace(X):
            gamma = math.sqrt(np.trace(X) / np.trace(self.W[g]))
            self.W[g] = (1 + gamma) * self.W[g] + (1 + 1 / gamma) * X
        else:
            self.W[g] = self.W[g] + X
        self.centres[g] = kept

    def Q(self, h: int, phi: Array) -> Array:
        values = [self.w[h] @ x + self.betas[h] * math.sqrt(x @ self.inverse[h] @ x) for x in phi]
        low = -math.inf if self.inflate == 0 else 0.0
        return np.array([max(min(value, self.cap_at(h)), low) for value in values])

    def learn_step(self, h: int) -> None:
        d, last = self.task.d, h == self.task.H - 1
        Lambda, right = self.lam * np.eye(d), np.zeros(d)
        for sample in self.samples[h]:
            Lambda += np.outer(sample.phi, sample.phi)
            right += sample.phi * sample.reward
        self.inverse[h] = np.linalg.inv(Lambda)
        self.E[h] = 0.0 if last else self.bound(h)
        for centre in [] if last else self.centres[self.set_of(h)]:
            for i, weight in centre.weights.items():
                right += weight * self.samples[h][i].phi * max(self.Q(h + 1, centre.phi))
        self.w[h] = self.inverse[h] @ right
        self.betas[h] = self.beta + self.inflate * self.E[h]

    def begin_episode(self) -> None:
        self.start_episode()
        if self.stationary:  # the bounds of step h are in the Lambda that all steps have now
            for h in range(self.task.H):
                Lambda = self.lam * np.eye(self.task.d)
                for sample in self.samples[h]:
                    Lambda += np.outer(sample.phi, sample.phi)
                self.inverse[h] = np.linalg.inv(Lambda)
        for h in reversed(range(self.task.H)):
            self.learns[h] = True
            self.learn_step(h)

    def bound(self, h: int) -> float:
        """E_h."""
        g, w = self.set_of(h), self.w[h + 1]
        n, S, G = (sum(getattr(c, name) for c in self.centres[g]) for name in ("n", "S", "G"))
        slope, width = float(np.linalg.norm(w)) * math.sqrt(S), math.sqrt(G)
        if self.task.d <= self.M:
            slope = min(slope, math.sqrt(w @ self.W[g] @ w))
            width = min(width, math.sqrt(np.trace(self.inverse[h + 1] @ self.W[g])))
        lowest = -float(np.linalg.norm(w)) if self.inflate == 0 else 0.0
        return min(slope + self.betas[h + 1] * width, (self.cap_at(h + 1) - lowest) * math.sqrt(n))
