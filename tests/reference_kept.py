"""`Merging`, at most M links of unit vectors, as docs/bounded-memory.md defines it: one link at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linmdp.types import Task
from reference import ReferenceLSVI

Link = tuple[int, int, int]
"""A step (0 where all share one regression), a unit vector and a state, S for the end of an episode."""


class ReferenceKept(ReferenceLSVI):
    """LSVI-UCB on unit vectors with at most M links; the true samples are kept to judge it by."""

    def __init__(self, task: Task, *, M: int, stationary: bool = False, **common: Any) -> None:
        super().__init__(task, **common)
        self.M, self.stationary = M, stationary
        self.samples = [[]] * task.H if stationary else self.samples
        self.links: dict[Link, float] = {}
        self.merged = [0.0] * (1 if stationary else task.H)

    def group(self, h: int) -> int:
        return 0 if self.stationary else h

    def vector(self, state: Any, action: int) -> int:
        return int(self.task.features.phi(state)[action].argmax())

    def observe(self, h: int, state: Any, action: int, reward: float, next_state: Any, terminated: bool) -> None:
        g, cell = self.group(h), self.vector(state, action)
        if self.task.H > 1 and (self.stationary or h < self.task.H - 1):
            link = (g, cell, self.task.S or 0) if terminated else (g, cell, int(next_state))
            if link not in self.links and len(self.links) == self.M:
                self.merge()
            if link in self.links or len(self.links) < self.M:
                self.links[link] = self.links.get(link, 0.0) + 1.0
            else:
                self.merged[g] += 1
                if not any(sample.phi[cell] for sample in self.samples[h]):
                    return
        super().observe(h, state, action, reward, next_state, terminated)

    def mean_w(self, h: int) -> Any:
        return np.mean(self.w, axis=0) if self.stationary else self.w[h]

    def worth(self, g: int, to: int) -> float:
        """V of what follows step g, without bonus, in the mean over the steps of a regression."""
        if to == self.task.S:
            return 0.0
        w = self.mean_w((g + 1) % self.task.H)
        return round(max(float(w[self.vector(to, a)]) for a in range(self.task.A)), 9)

    def margin(self, g: int, cell: int) -> float:
        """How far a unit vector would have to move to change which action is best, anywhere."""
        found, w = math.inf, self.mean_w(g)
        for s in range(self.task.S or 0):
            q = sorted((float(w[self.vector(s, a)]), self.vector(s, a)) for a in range(self.task.A))
            for value, vector in q:
                if vector == cell:
                    second = q[-2][0] if len(q) > 1 else value
                    found = min(found, q[-1][0] - second if value == q[-1][0] else q[-1][0] - value)
        return round(found, 9)

    def merge(self) -> None:
        links = sorted(self.links, key=lambda link: (link[:2], self.worth(link[0], link[2]), link[2]))
        value = [self.worth(g, to) for g, _, to in links]
        totals = {link[:2]: sum(w for other, w in self.links.items() if other[:2] == link[:2]) for link in links}
        groups = range(len(self.merged))
        everywhere = [self.worth(g, to) for g in groups for to in range((self.task.S or 0) + 1)]
        slight = 1e-3 * (max(everywhere) - min(everywhere)) + 1e-12
        loss, beside = [], [[math.inf, math.inf] for _ in links]
        for i, link in enumerate(links):
            if i and links[i - 1][:2] == link[:2]:
                beside[i][0] = value[i] - value[i - 1]
            if i + 1 < len(links) and links[i + 1][:2] == link[:2]:
                beside[i][1] = value[i + 1] - value[i]
            share = self.links[link] / totals[link[:2]]
            loss.append(round(share * min(beside[i]) / (self.margin(*link[:2]) + slight), 9))
        out: list[int] = []
        for i in sorted(range(len(links)), key=lambda i: loss[i]):
            if loss[i] < math.inf and not {i - 1, i + 1} & set(out) and len(out) < max(1, len(links) // 8):
                out.append(i)
        for i in sorted(out):
            below, above = beside[i]
            lower = 1.0 if above == math.inf else 0.0 if below == math.inf else 0.5
            if math.isfinite(below + above) and below + above > 0:
                lower = above / (below + above)
            weight = self.links.pop(links[i])
            visits = sum(sample.phi[links[i][1]] for sample in self.samples[links[i][0]])
            self.merged[links[i][0]] += visits * weight / totals[links[i][:2]]
            if lower:
                self.links[links[i - 1]] += lower * weight
            if lower < 1:
                self.links[links[i + 1]] += (1 - lower) * weight

    def learn_step(self, h: int) -> None:
        d, g = self.task.d, self.group(h)
        Lambda, right = self.lam * np.eye(d), np.zeros(d)
        for sample in self.samples[h]:
            Lambda += np.outer(sample.phi, sample.phi)
            right += sample.phi * sample.reward
        for cell in range(d) if h < self.task.H - 1 else ():
            mine = {to: weight for (of, vector, to), weight in self.links.items() if (of, vector) == (g, cell)}
            for to, weight in mine.items():
                V = 0.0 if to == self.task.S else max(self.Q(h + 1, self.task.features.phi(to)))
                right[cell] += (Lambda[cell, cell] - self.lam) * weight / sum(mine.values()) * V
        self.inverse[h] = np.linalg.inv(Lambda)
        self.w[h] = self.inverse[h] @ right
