"""What an episode of an Atari game can earn at most, as far as a search finds: a mark to read scores against."""

from __future__ import annotations

import json

from linmdp.envs.emulator import best_episode
from linmdp.experiments.stored_runs import Say
from linmdp.results.store import Store

STEPS, SEEDS = 100_000, 4
"""Steps of the emulator in one search, and searches."""


def ceiling(id: str, H: int, store: Store, say: Say) -> list[float]:
    """The best episode of each search; what the store knows is not searched again."""
    key = f"ceiling of {id}, {H} steps, {STEPS:,} of each of {SEEDS} searches"
    if not store.notes(key):
        say(f"searching for the best episodes of {id}: minutes")
        store.note(key, json.dumps([best_episode(id, H, STEPS, seed) for seed in range(SEEDS)]))
    return [float(score) for score in json.loads(store.notes(key)[-1])]
