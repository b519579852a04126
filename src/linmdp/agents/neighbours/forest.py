"""Extremely randomised trees for regression (Geurts, Ernst, Wehenkel, 2006)."""

from __future__ import annotations

import numpy as np

from linmdp.agents.base import Component
from linmdp.types import Array, IntArray


class Forest(Component):
    """Trees whose cuts are drawn at random; of one cut for each feature a node takes the one that explains most.

    All nodes lie in one table: those of tree t begin at `t * each`, the children of a node side by side.

    Attributes
    ----------
    feature, cut : (nodes,) a row goes right if its feature is at least the cut; feature -1: a leaf
    left : (nodes,) the left child; the right one is next to it
    value : (nodes,) the mean of a leaf
    """

    _arrays = ("feature", "cut", "left", "value")

    def __init__(self, trees: int, most: int, n_min: int) -> None:
        """Space for `trees` trees of at most `most` rows each; a node of fewer than `n_min` rows is not split."""
        self.trees, self.n_min, self.each = trees, n_min, 2 * most
        nodes = trees * self.each
        self.feature, self.cut = np.full(nodes, -1, dtype=np.int32), np.zeros(nodes, dtype=np.float32)
        self.left, self.value = np.zeros(nodes, dtype=np.int32), np.zeros(nodes)

    def grow(self, X: Array, y: Array, rng: np.random.Generator) -> None:
        """Other trees, from all rows X (n, k), float32, with values y (n,)."""
        for tree in range(self.trees):
            self._grow(tree * self.each, X, y, rng)
        self.refresh(self.leaves(X), y)

    def _grow(self, root: int, X: Array, y: Array, rng: np.random.Generator) -> None:
        """One tree, all nodes of a depth at once: the rows in `order`, node by node, and where each node `starts`."""
        order, starts, nodes, free = np.arange(len(y)), np.zeros(1, dtype=np.int64), np.array([root]), root + 1
        while len(nodes):
            sizes = np.diff(starts, append=len(order))
            values = y[order]
            feature, cut, gain = self._cuts(X[order], values, starts, sizes, rng)
            varied = np.minimum.reduceat(values, starts) < np.maximum.reduceat(values, starts)
            split = (sizes >= self.n_min) & varied & (gain >= 0)
            self.feature[nodes] = np.where(split, feature, -1)
            self.cut[nodes] = cut
            self.left[nodes[split]] = free + 2 * np.arange(split.sum())
            place = np.repeat(np.arange(len(nodes)), sizes)
            kept = split[place]
            order, place = order[kept], place[kept]
            right = X[order, feature[place]] >= cut[place]
            child = self.left[nodes[place]] + right
            arranged = child.argsort(kind="stable")
            order = order[arranged]
            nodes, starts = np.unique(child[arranged], return_index=True)
            free += len(nodes)

    def _cuts(
        self, X: Array, y: Array, starts: IntArray, sizes: IntArray, rng: np.random.Generator
    ) -> tuple[IntArray, Array, Array]:
        """The best cut drawn for each node: feature, place, what it takes from the squared error (-1: none splits)."""
        low, high = np.minimum.reduceat(X, starts), np.maximum.reduceat(X, starts)
        share = rng.random(low.shape, dtype=np.float32)
        cuts = np.minimum(np.nextafter(low, np.inf) + share * (high - low), high)  # both sides get a row
        y = y - np.repeat(np.add.reduceat(y, starts) / sizes, sizes)
        right = np.repeat(cuts, sizes, axis=0) <= X
        n = np.add.reduceat(right, starts, dtype=np.float64)
        total = np.add.reduceat(np.where(right, y[:, None], 0.0), starts)
        among = sizes[:, None] - n
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.where((n > 0) & (among > 0), total**2 * (1 / n + 1 / among), -1.0)  # sums of both sides cancel
        best = gain.argmax(axis=1)
        at = np.arange(len(starts)), best
        return best, cuts[at], gain[at]

    def leaves(self, X: Array) -> IntArray:
        """The leaf of each row in each tree, (trees, n)."""
        at = np.repeat(self.each * np.arange(self.trees), len(X))
        row, where = np.tile(np.arange(len(X)), self.trees), np.arange(len(at))
        while len(where):
            node = at[where]
            feature = self.feature[node]
            inner = feature >= 0
            where, node, feature = where[inner], node[inner], feature[inner]
            at[where] = self.left[node] + (X[row[where], feature] >= self.cut[node])
        return at.reshape(self.trees, len(X))

    def refresh(self, leaves: IntArray, y: Array) -> None:
        """Values of the leaves that rows are in, `leaves` (trees, n), as means of y; the trees stay what they are."""
        flat, nodes = leaves.ravel(), self.trees * self.each
        count = np.bincount(flat, minlength=nodes)
        self.value[:] = np.bincount(flat, np.tile(y, self.trees), minlength=nodes) / np.maximum(count, 1)

    def predict(self, X: Array) -> Array:
        """The mean over the trees, (n,)."""
        found: Array = self.value[self.leaves(X)].mean(axis=0)
        return found
