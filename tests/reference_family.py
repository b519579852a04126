"""The relatives of LSVI-UCB, transcribed line by line: slow, plain, the judge of the fast code. See `reference`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.types import Array, Task
from reference import TIE, ReferenceLSVI, ReferencePHE, Sample


class ReferenceRestart(ReferenceLSVI):
    """LSVI-UCB-Restart: everything is dropped when (k-1) mod W = 0, and the same episode plans from nothing."""

    def __init__(self, task: Task, *, W: int, **common: Any) -> None:
        super().__init__(task, **common)
        self.W = W

    def begin_episode(self) -> None:
        if self.k % self.W == 0:
            self.samples = [[] for _ in range(self.task.H)]
        super().begin_episode()


class ReferenceAdaRestart(ReferenceLSVI):
    """Ada-LSVI-UCB-Restart: EXP3.P over the W of each block."""

    def __init__(self, task: Task, *, K: int, c: float, arms: int | None, **common: Any) -> None:
        super().__init__(task, **common)
        self.M = min(math.ceil(c * math.sqrt(task.d * K)), K)
        if arms is None:
            J = max(1, math.ceil(math.log(self.M)))
            self.windows = [math.floor(self.M ** (j / J) + 1e-9) for j in range(J + 1)]
        else:
            self.windows = [max(1, self.M // 4**j) for j in reversed(range(arms))]
        D, n = len(self.windows), math.ceil(K / self.M)
        self.a = 0.95 * math.sqrt(math.log(D) / (n * D))
        self.b = math.sqrt(math.log(D) / (n * D))
        self.gamma = min(1.0, 1.05 * math.sqrt(D * math.log(D) / n))
        self.q, self.p, self.j, self.total, self.seed = [0.0] * D, [0.0] * D, 0, 0.0, 0

    def begin_episode(self) -> None:
        self.seed = self.seed or int(self.rng.integers(1, 2**62))
        block, within = self.k // self.M, self.k % self.M
        if within == 0:
            D = len(self.windows)
            if block > 0:
                low, high = self.task.reward_range
                g = (self.total / (self.M * self.task.H) - low) / (high - low)
                for arm in range(D):
                    self.q[arm] += ((g if arm == self.j else 0.0) + self.b) / self.p[arm]
            weights = [math.exp(self.a * (x - max(self.q))) for x in self.q]
            self.p = [(1 - self.gamma) * x / sum(weights) + self.gamma / D for x in weights]
            draw = np.random.default_rng((self.seed, block)).random()
            self.j = next((j for j in range(D) if sum(self.p[: j + 1]) > draw), D - 1)
            self.total = 0.0
        if within % self.windows[self.j] == 0:
            self.samples = [[] for _ in range(self.task.H)]
        super().begin_episode()

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self.total += reward


class ReferenceDetect(ReferenceLSVI):
    """LSVI-UCB that drops everything when the latest returns are below those before them.

    Where features are unit vectors it asks what follows them instead, and keeps the episodes since the change.
    """

    def __init__(self, task: Task, *, errors: float, false_alarms: float, slow: int = 16, **common: Any) -> None:
        super().__init__(task, **common)
        self.errors, self.false_alarms, self.slow = errors, false_alarms, slow
        self.returns: list[float] = []
        self.steps: list[list[tuple[int, Any, int, float, Any, bool]]] = []  # of each episode since the last restart
        rows = [x for state in range(task.S or 0) for x in task.features.phi(state)]
        self.unit = all(sorted(x) == [0.0] * (task.d - 1) + [1.0] for x in rows)

    def begin_episode(self) -> None:
        if self.unit:
            self.look_at_steps()
        else:
            self.look_at_returns()
        self.returns.append(0.0)
        self.steps.append([])
        super().begin_episode()

    def look_at_returns(self) -> None:
        for n in (4, 8, 16, 32, 64):
            latest, before = self.returns[-n:], self.returns[-5 * n : -n]
            if len(self.returns) >= 2 * n:
                fall = float(np.mean(before) - np.mean(latest))
                if fall > self.errors * math.sqrt(np.var(before) / len(before) + np.var(latest) / n) + 1e-9:
                    self.samples, self.returns = [[] for _ in range(self.task.H)], []

    def look_at_steps(self) -> None:
        k = len(self.steps)
        odds = {n: self.odds(n) for n in range(1, min(32, k - 1) + 1)}
        tested = [n for n in (1, 2, 4, 8, 16, 32) if n < k and k % max(1, n // 4) == 0]
        if any(odds[n] > math.log(k**2 / self.false_alarms) + 1e-9 for n in tested):
            kept = min(n for n in odds if odds[n] >= max(odds.values()) - math.log(10))
            met = {(step[0], self.cell(step)) for episode in self.steps[-kept:] for step in episode}
            for episode in self.steps[:-kept]:  # of a slow change, what was not met since stays
                episode[:] = [step for step in episode if kept >= self.slow and (step[0], self.cell(step)) not in met]
            if kept < self.slow:
                self.steps = self.steps[-kept:]
            self.samples = [[] for _ in range(self.task.H)]
            for episode in self.steps:
                for step in episode:
                    super().observe(*step)

    def odds(self, n: int) -> float:
        """log of the Bayes factor for a change n episodes ago: each pair changed with chance 0.1."""
        old, new = ([step for e in part for step in e] for part in (self.steps[:-n], self.steps[-n:]))
        total = 0.0
        for h, cell in {(step[0], self.cell(step)) for step in new}:
            a, b = ([x for x in part if (x[0], self.cell(x)) == (h, cell)] for part in (old, new))
            after = {self.after(x) for x in a + b}
            states = [[sum(self.after(x) == s for x in part) for s in after] for part in (a, b)]
            wins = [[sum(x[3] for x in part), len(part) - sum(x[3] for x in part)] for part in (a, b)]
            factor = -0.5 * len(after) * math.log(1 + len(a) * len(b) / (len(a) + len(b)))
            for first, second in (states, wins):
                both = [x + y for x, y in zip(first, second, strict=True)]
                factor += self.likelihood(first) + self.likelihood(second) - self.likelihood(both)
            total += math.log(0.9 + 0.1 * math.exp(factor))
        return total

    def cell(self, step: Any) -> int:
        return int(self.task.features.phi(step[1])[step[2]].argmax())

    def after(self, step: Any) -> Any:
        return "end" if step[5] else step[4]

    def likelihood(self, counts: list[float]) -> float:
        return sum(c * math.log(c / sum(counts)) for c in counts if c > 0)

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self.returns[-1] += reward
        self.steps[-1].append((h, state, action, reward, next_state, terminated))


class ReferenceAdaChanges(ReferenceDetect):
    """The same, which also drops everything when the second half of an epoch has earned less than the first.

    At the doubled lengths of the epoch 2W = 32, 64, ..., or as soon after as it is asked; not after a slow change.
    """

    def __init__(self, task: Task, *, least: int = 16, **own: Any) -> None:
        super().__init__(task, **own)
        self.least, self.W, self.epoch, self.slowly = least, least, 0, False
        self.all_returns: list[float] = []

    def look_at_steps(self) -> None:
        before, samples = len(self.steps), self.samples
        super().look_at_steps()
        if self.samples is not samples:
            self.slowly = len(self.steps) == before
            self.epoch, self.W = len(self.all_returns), self.least
        else:
            self.look_at_halves()

    def look_at_returns(self) -> None:
        samples = self.samples
        super().look_at_returns()
        if self.samples is not samples:
            self.epoch, self.W = len(self.all_returns), self.least
        else:
            self.look_at_halves()

    def look_at_halves(self) -> None:
        epoch = self.all_returns[self.epoch :]
        if self.slowly or len(epoch) < 2 * self.W:
            return
        first, second = epoch[: self.W], epoch[self.W :]
        error = math.sqrt((np.var(first) + np.var(second)) / self.W)
        self.W *= 2
        if np.mean(first) - np.mean(second) > 3 * error + 1e-9:
            self.samples, self.returns, self.steps = [[] for _ in range(self.task.H)], [], []
            self.epoch, self.W = len(self.all_returns), self.least

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        if h == 0:
            self.all_returns.append(0.0)
        self.all_returns[-1] += reward


class ReferenceOptWLSVI(ReferenceLSVI):
    """OPT-WLSVI as it is published: weights eta^-i that grow, and a ridge lam eta^-(k-1) that grows with them."""

    def __init__(self, task: Task, *, W: int, **common: Any) -> None:
        super().__init__(task, **common)
        self.eta = 1 - 1 / W
        self.arrived: list[list[int]] = [[] for _ in range(task.H)]

    def learn_step(self, h: int) -> None:
        d, k = self.task.d, self.k
        Lambda: Array = self.lam * self.eta ** -(k - 1) * np.eye(d)
        squared: Array = self.lam * self.eta ** (-2 * (k - 1)) * np.eye(d)
        target = np.zeros(d)
        for i, sample in zip(self.arrived[h], self.samples[h], strict=True):
            y = sample.reward
            if h < self.task.H - 1 and sample.next_phi is not None:
                y += max(self.Q(h + 1, sample.next_phi))
            Lambda = Lambda + self.eta**-i * np.outer(sample.phi, sample.phi)
            squared = squared + self.eta ** (-2 * i) * np.outer(sample.phi, sample.phi)
            target = target + self.eta**-i * sample.phi * y
        inverse = np.linalg.inv(Lambda)
        self.w[h] = inverse @ target
        self.inverse[h] = inverse @ squared @ inverse  # the matrix of the bonus

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        super().observe(h, state, action, reward, next_state, terminated)
        self.arrived[h].append(self.k)


class ReferenceSketch(ReferenceLSVI):
    """LSVI-UCB with the Lambda of frequent directions, and the width that its shrinkage asks for."""

    def __init__(self, task: Task, *, m: int, inflate: float, **common: Any) -> None:
        super().__init__(task, **common)
        self.m, self.inflate = m, inflate
        self.betas = [self.beta] * task.H

    def learn_step(self, h: int) -> None:
        d, m = self.task.d, self.m
        B, n, alpha, target = np.zeros((2 * m, d)), 0, 0.0, np.zeros(d)
        for sample in self.samples[h]:
            y = sample.reward
            if h < self.task.H - 1 and sample.next_phi is not None:
                y += max(self.Q(h + 1, sample.next_phi))
            target = target + sample.phi * y
            B[n] = sample.phi
            n += 1
            if n == 2 * m:
                sigma, Vt = np.zeros(2 * m), np.zeros((2 * m, d))
                found = np.linalg.svd(B, full_matrices=False)
                sigma[: len(found.S)], Vt[: len(found.S)] = found.S, found.Vh
                delta = sigma[m - 1] ** 2
                B = np.diag(np.sqrt(np.maximum(sigma**2 - delta, 0))) @ Vt
                alpha, n = alpha + delta, m - 1
        Lambda = B.T @ B + (self.lam + alpha) * np.eye(d)
        self.inverse[h] = np.linalg.inv(Lambda)
        self.w[h] = self.inverse[h] @ target
        following = self.cap_at(h + 1) if h < self.task.H - 1 else 0.0
        norm = math.sqrt(d) * (self.task.reward_range[1] + following)
        self.betas[h] = self.beta + self.inflate * norm * (math.sqrt(self.lam + alpha) - math.sqrt(self.lam))

    def Q(self, h: int, phi: Array) -> Array:
        values = [self.w[h] @ x + self.betas[h] * math.sqrt(x @ self.inverse[h] @ x) for x in phi]
        least = 0.0 if self.inflate else -math.inf  # with its theorem Q is clipped from below as well
        return np.array([min(max(q, least), self.cap_at(h)) for q in values])


class ReferenceBatch(ReferenceLSVI):
    """LSVI-UCB-Batch: B plannings, on a grid that is fixed in advance."""

    def __init__(self, task: Task, *, K: int, batches: int, grid: str, **common: Any) -> None:
        super().__init__(task, **common)
        B = min(batches, K)
        self.grid = [1 + b * (K // B) for b in range(B)]
        if grid == "geometric":
            self.grid = [math.ceil(K ** (b / B) - 1e-9) for b in range(B)]

    def begin_episode(self) -> None:
        self.start_episode()
        self.learns = [True] * self.task.H
        if self.k in self.grid:
            for h in reversed(range(self.task.H)):
                self.learn_step(h)


class ReferenceOptRLSVI(ReferencePHE):
    """OPT-RLSVI: one draw, a default value where little is known, no cap."""

    def __init__(self, task: Task, *, threshold: float, **common: Any) -> None:
        super().__init__(task, draws=1, **common)
        self.threshold = threshold

    def Q(self, h: int, phi: Array) -> Array:
        values, cap = [], self.cap_at(h)
        low = self.threshold * cap / (2 * max(self.beta, 1e-12) * math.sqrt(self.task.d))
        high = 2 * low
        for x in phi:
            norm, drawn = math.sqrt(x @ self.inverse[h] @ x), float(x @ self.perturbed[h][0])
            if norm <= low:
                values.append(drawn)
            elif norm >= high:
                values.append(cap)
            else:
                values.append(((high - norm) * drawn + (norm - low) * cap) / (high - low))
        return np.array(values)


class ReferenceLMC(ReferenceLSVI):
    """LMC-LSVI: J noisy gradient steps on the regression's loss, from the weights of the last planning."""

    def __init__(self, task: Task, *, steps: int, **common: Any) -> None:
        super().__init__(task, **common)
        self.steps, self.seed = steps, 0

    def begin_episode(self) -> None:
        self.seed = self.seed or int(self.rng.integers(1, 2**62))
        self.start_episode()
        H, d = self.task.H, self.task.d
        self.learns = [True] * H
        noise = np.random.default_rng((self.seed, self.k)).standard_normal((H, self.steps, d))
        for h in reversed(range(H)):
            Lambda, target = self.lam * np.eye(d), np.zeros(d)
            for sample in self.samples[h]:
                y = sample.reward
                if h < H - 1 and sample.next_phi is not None:
                    y += max(self.Q(h + 1, sample.next_phi))
                Lambda, target = Lambda + np.outer(sample.phi, sample.phi), target + sample.phi * y
            rho = 1 / (4 * np.linalg.eigvalsh(Lambda)[-1])
            temperature = 2 * self.beta**2  # 1 / kappa
            for j in range(self.steps):
                gradient = 2 * (Lambda @ self.w[h] - target)
                self.w[h] = self.w[h] - rho * gradient + math.sqrt(2 * rho * temperature) * noise[h, j]

    def Q(self, h: int, phi: Array) -> Array:
        return np.array([min(float(x @ self.w[h]), self.cap_at(h)) for x in phi])


class ReferenceTabular:
    """Counts in dictionaries, and backward induction one state and action at a time."""

    def __init__(self, task: Task, *, stationary: bool, K: int) -> None:
        self.task, self.stationary, self.T = task, stationary, K * task.H
        self.rng = np.random.default_rng()
        self.seen: dict[tuple[int, int, int], list[tuple[float, int]]] = {}
        self.arrivals: dict[tuple[int, int], int] = {}
        S = task.S or 0
        self.Q = np.array([[[(task.H - h) * 1.0] * task.A for _ in range(S)] for h in range(task.H)])

    def data(self, h: int, s: int, a: int) -> list[tuple[float, int]]:
        """Rewards and next states (S where the episode ended) of all visits."""
        return self.seen.get((0 if self.stationary else h, s, a), [])

    def begin_episode(self) -> None:
        V = [0.0] * ((self.task.S or 0) + 1)
        for h in reversed(range(self.task.H)):
            for s in range(self.task.S or 0):
                for a in range(self.task.A):
                    self.Q[h, s, a] = min(self.backup(h, s, a, V), self.task.H - h)
            V = [max(q) for q in self.Q[h]] + [0.0]

    def backup(self, h: int, s: int, a: int, V: list[float]) -> float:
        raise NotImplementedError

    def frequencies(self, data: list[tuple[float, int]]) -> list[float]:
        return [sum(to == y for _, to in data) / len(data) for y in range((self.task.S or 0) + 1)]

    def act(self, h: int, state: int) -> int:
        q = self.Q[h, state]
        best = [a for a in range(self.task.A) if q[a] >= max(q) - TIE * max(1.0, self.task.H)]
        return best[0] if len(best) == 1 else int(self.rng.choice(best))

    def observe(self, h: int, state: int, action: int, reward: float, next_state: int, terminated: bool) -> None:
        key = (0 if self.stationary else h, state, action)
        self.seen.setdefault(key, []).append((reward, (self.task.S or 0) if terminated else next_state))
        self.arrivals[h, state] = self.arrivals.get((h, state), 0) + 1

    def end_episode(self) -> None:
        pass

    def q_values(self, h: int, state: int) -> Array:
        q: Array = self.Q[h, state]
        return q


class ReferenceUCBVI(ReferenceTabular):
    """UCBVI with the bonus of its Algorithm 3 or 4."""

    def __init__(self, task: Task, *, bonus: str, c: float, delta: float, **common: Any) -> None:
        super().__init__(task, **common)
        self.bonus, self.c, self.delta = bonus, c, delta

    def backup(self, h: int, s: int, a: int, V: list[float]) -> float:
        data, (S, A, H) = self.data(h, s, a), (self.task.S or 0, self.task.A, self.task.H)
        N, before = len(data), float(self.Q[h, s, a])
        if N == 0:
            return before
        L, P = math.log(5 * S * A * self.T / self.delta), self.frequencies(data)
        mean = sum(p * v for p, v in zip(P, V, strict=True))
        if self.bonus == "hoeffding":
            b = 7 * H * L / math.sqrt(N)
        else:
            variance = sum(p * (v - mean) ** 2 for p, v in zip(P, V, strict=True))
            b = math.sqrt(8 * L * variance / N) + 14 * H * L / (3 * N)
            if h < H - 1:
                total = 0.0
                for y in range(S):
                    arrived = self.arrivals.get((h + 1, y), 0)
                    total += P[y] * (min(10**4 * H**3 * S**2 * A * L**2 / arrived, H**2) if arrived else H**2)
                b += math.sqrt(8 * total / N)
        return min(before, sum(r for r, _ in data) / N + mean + self.c * b)


class ReferenceUCRL2(ReferenceTabular):
    """UCRL2 for episodes: the inner maximum as in its Figure 2."""

    def __init__(self, task: Task, *, c: float, delta: float, **common: Any) -> None:
        super().__init__(task, **common)
        self.c, self.delta = c, delta
        self.counts: dict[tuple[int, int, int], int] | None = None

    def begin_episode(self) -> None:
        now = {key: len(data) for key, data in self.seen.items()}
        old = self.counts
        if old is None or any(n - old.get(key, 0) >= max(1, old.get(key, 0)) for key, n in now.items()):
            self.counts = now
            super().begin_episode()

    def backup(self, h: int, s: int, a: int, V: list[float]) -> float:
        data, (S, A) = self.data(h, s, a), (self.task.S or 0, self.task.A)
        if not data:
            return math.inf
        N = len(data)
        reward = sum(r for r, _ in data) / N + self.c * math.sqrt(
            7 * math.log(2 * S * A * self.T / self.delta) / (2 * N)
        )
        d, P = self.c * math.sqrt(14 * S * math.log(2 * A * self.T / self.delta) / N), self.frequencies(data)
        order = sorted(range(S + 1), key=lambda y: -V[y])  # best first
        P[order[0]] = min(1.0, P[order[0]] + d / 2)
        worst = S
        while sum(P) > 1 + 1e-12:
            y = order[worst]
            P[y] = max(0.0, 1 - (sum(P) - P[y]))
            worst -= 1
        return min(reward, 1.0) + sum(p * v for p, v in zip(P, V, strict=True))


class ReferencePSRL(ReferenceTabular):
    """PSRL: a model from the posterior, table by table, and its optimal policy."""

    def __init__(self, task: Task, *, prior: float, **common: Any) -> None:
        super().__init__(task, **common)
        self.prior = prior
        self.model: dict[tuple[int, int, int], tuple[float, Array]] = {}

    def begin_episode(self) -> None:
        S, A, tables = self.task.S or 0, self.task.A, 1 if self.stationary else self.task.H
        for t in range(tables):
            pairs = [(t, s, a) for s in range(S) for a in range(A)]
            paid = [sum(r for r, _ in self.seen.get(pair, [])) for pair in pairs]
            visits = [len(self.seen.get(pair, [])) for pair in pairs]
            rewards = self.rng.beta(1 + np.array(paid), 1 + np.array(visits) - np.array(paid))
            alpha = []
            for pair in pairs:
                went = [to for _, to in self.seen.get(pair, [])]
                alpha.append([went.count(y) + (self.prior / S if y < S else 0) for y in range(S + 1)])
            draws = self.rng.standard_gamma(np.array(alpha))
            for pair, r, g in zip(pairs, rewards, draws, strict=True):
                self.model[pair] = float(r), g / g.sum()
        super().begin_episode()

    def backup(self, h: int, s: int, a: int, V: list[float]) -> float:
        r, P = self.model[0 if self.stationary else h, s, a]
        return r + float(P @ np.array(V))


class ReferencePlusPlus(ReferenceTabular):
    """LSVI-UCB++ with unknown rewards, from all samples at every planning."""

    def __init__(self, task: Task, *, constants: str, beta: float | None, lam: float, delta: float, K: int) -> None:
        super().__init__(task, stationary=False, K=K)
        d, H = task.d, task.H
        self.constants, self.lam = constants, lam
        L = math.log(d * H * K / (delta * lam))
        self.beta = H * math.sqrt(d * lam) + math.sqrt(d) * L if beta is None else beta
        self.beta_bar = H * math.sqrt(d * lam) + math.sqrt(d**3 * H**2) * L if beta is None else beta
        self.beta_tilde = H**2 * math.sqrt(d * lam) + math.sqrt(d**3 * H**4) * L
        self.lower = np.zeros_like(self.Q)
        self.samples: list[list[tuple[Array, float, int | None, float]]] = [[] for _ in range(H)]
        self.reference = [np.linalg.det(lam * np.eye(d))] * H
        self.fits: list[tuple[Array, Array, Array, Array, Array]] = []

    def matrix(self, h: int) -> Array:
        Sigma: Array = self.lam * np.eye(self.task.d)
        for phi, _, _, sigma in self.samples[h]:
            Sigma = Sigma + np.outer(phi, phi) / sigma**2
        return Sigma

    def begin_episode(self) -> None:
        H, S = self.task.H, self.task.S or 0
        determinants = [float(np.linalg.det(self.matrix(h))) for h in range(H)]
        switch = any(now >= 2 * before for now, before in zip(determinants, self.reference, strict=True))
        self.reference = determinants if switch else self.reference
        self.fits = [None] * H  # type: ignore[list-item]
        V, low = [0.0] * S, [0.0] * S
        for h in reversed(range(H)):
            inverse, sums = np.linalg.inv(self.matrix(h)), [np.zeros(self.task.d) for _ in range(4)]
            for phi, reward, to, sigma in self.samples[h]:
                ahead, behind = (0.0, 0.0) if to is None else (V[to], low[to])
                for i, y in enumerate((reward, ahead, behind, ahead**2)):
                    sums[i] = sums[i] + phi * y / sigma**2
            r, w, w_low, w_square = (inverse @ x for x in sums)
            self.fits[h] = (inverse, r, w, w_low, w_square)
            for s in range(S):
                for a, phi in enumerate(self.task.features.phi(s)):
                    if switch:
                        norm = math.sqrt(phi @ inverse @ phi)
                        up, down = phi @ (r + w) + self.beta * norm, phi @ (r + w_low) - self.beta_bar * norm
                        self.Q[h, s, a] = min(up, self.Q[h, s, a], H - h)
                        self.lower[h, s, a] = max(down, self.lower[h, s, a], 0.0)
            V, low = [max(q) for q in self.Q[h]], [max(q) for q in self.lower[h]]

    def observe(self, h: int, state: int, action: int, reward: float, next_state: int, terminated: bool) -> None:
        d, H, (inverse, _, w, w_low, w_square) = self.task.d, self.task.H, self.fits[h]
        phi = self.task.features.phi(state)[action].copy()
        norm = math.sqrt(phi @ inverse @ phi)
        variance = min(max(phi @ w_square, 0.0), H**2) - min(max(phi @ w, 0.0), H) ** 2
        if self.constants == "practical":
            sigma = math.sqrt(max(variance, 0.25, 0.01 * (H - h) ** 2))
        else:
            E = min(self.beta_tilde * norm, H**2) + min(2 * H * self.beta_bar * norm, H**2)
            D = min(4 * d**3 * H**2 * (phi @ w - phi @ w_low + 2 * self.beta_bar * norm), d**3 * H**3)
            sigma = max(math.sqrt(max(variance + E + D + H, H)), 2 * d**3 * H**2 * math.sqrt(norm))
        self.samples[h].append((phi, reward, None if terminated else next_state, sigma))


class ReferenceSelect(ReferenceLSVI):
    """LSVI-UCB-Select: a sample is stored iff its norm in the live Lambda^-1 reaches Gamma and there is room."""

    def __init__(
        self, task: Task, *, M: int | None, gamma: float | str, stationary: bool = False, **common: Any
    ) -> None:
        super().__init__(task, **common)
        self.M, self.gamma, self.stationary = M, gamma, stationary
        if stationary:
            self.samples = [[]] * task.H
        self.anything = True  # the first episode plans
        self.skipped_norms = 0.0

    def begin_episode(self) -> None:
        self.start_episode()
        if self.anything:
            for h in reversed(range(self.task.H)):
                self.learn_step(h)
        self.anything = False

    def threshold(self, h: int, phi: Array) -> float:
        d, stored = self.task.d, self.samples[h]
        if self.gamma == "theory":
            assert self.M is not None
            return math.sqrt((1 + self.M / (self.lam * d)) ** (d / self.M) - 1) - TIE
        if self.gamma == "auto":
            assert self.M is not None
            sizes = [sample.phi @ sample.phi for sample in stored] or [phi @ phi]
            return math.sqrt(phi @ phi / (self.lam + self.M * sum(sizes) / len(sizes) / d)) + TIE
        return float(self.gamma) * math.sqrt(phi @ phi)

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        phi = self.task.features.phi(state)[action].copy()
        Lambda = self.lam * np.eye(self.task.d)
        for sample in self.samples[h]:
            Lambda += np.outer(sample.phi, sample.phi)
        x = math.sqrt(phi @ np.linalg.inv(Lambda) @ phi)
        room = self.M is None or len(self.samples[h]) < self.M
        if x >= self.threshold(h, phi) and room:
            next_phi = None if terminated else self.task.features.phi(next_state)
            self.samples[h].append(Sample(phi, reward, next_phi))
            self.anything = True
        else:
            self.skipped_norms += x


class ReferenceVTR(ReferenceTabular):
    """UCRL-VTR from all samples at every planning; the base models are arrays r (J, H, S, A) and P (J, H, S, A, S)."""

    def __init__(
        self, task: Task, *, r: Array, P: Array, c: float, lam: float | None, W: int | None, delta: float
    ) -> None:
        super().__init__(task, stationary=False, K=1)
        self.lam = task.H**2 * len(r) if lam is None else lam
        self.r, self.P, self.c, self.W, self.delta, self.k = r, P, c, W, delta, 0
        self.samples: list[tuple[int, Array, float]] = []
        self.ahead: list[list[float]] = []

    def x(self, h: int, s: int, a: int, V: list[float]) -> Array:
        S = self.task.S or 0
        values = [self.r[j, h, s, a] + sum(self.P[j, h, s, a, y] * V[y] for y in range(S)) for j in range(len(self.r))]
        return np.array(values)

    def begin_episode(self) -> None:
        self.k += 1
        J, H = len(self.r), self.task.H
        M, b = self.lam * np.eye(J), np.zeros(J)
        for k, x, y in self.samples:
            weight = 1.0 if self.W is None else (1 - 1 / self.W) ** (self.k - 1 - k)
            M, b = M + weight * np.outer(x, x), b + weight * x * y
        self.inverse, self.theta = np.linalg.inv(M), np.linalg.inv(M) @ b
        beta = 16 * H**2 * J * math.log(1 + H * self.k) * math.log((self.k + 1) ** 2 * H / self.delta) ** 2
        self.root = self.c * math.sqrt(beta)
        super().begin_episode()
        self.ahead = [[max(q) for q in self.Q[h]] for h in range(H)] + [[0.0] * (self.task.S or 0)]

    def backup(self, h: int, s: int, a: int, V: list[float]) -> float:
        x = self.x(h, s, a, V)
        return float(x @ self.theta + self.root * math.sqrt(x @ self.inverse @ x))

    def observe(self, h: int, state: int, action: int, reward: float, next_state: int, terminated: bool) -> None:
        V = self.ahead[h + 1]
        target = reward + (0.0 if terminated else V[next_state])
        self.samples.append((self.k, self.x(h, state, action, V), target))
