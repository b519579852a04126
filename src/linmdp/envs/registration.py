"""Gymnasium ids: `import linmdp`, then gymnasium.make("linmdp/Synthetic-v0", S=100)."""

from __future__ import annotations

NAMES = ("Synthetic", "Hypercube", "Lock", "RiverSwim", "Sensor", "Inventory", "Catalogue")
GYM_IDS = {f"linmdp/{name}-v0": name.lower() for name in NAMES}


def register_envs() -> None:
    """Register every built-in family."""
    from gymnasium.envs.registration import register, registry

    for gym_id, family in GYM_IDS.items():
        if gym_id not in registry:
            register(gym_id, entry_point="linmdp.envs.linear:linear_env", kwargs={"family": family})
