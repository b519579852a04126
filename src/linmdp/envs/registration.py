"""Gymnasium ids: `import linmdp`, then gymnasium.make("linmdp/Synthetic-v0", S=100)."""

from __future__ import annotations

GYM_IDS = {
    "linmdp/Synthetic-v0": "synthetic",
    "linmdp/Hypercube-v0": "hypercube",
    "linmdp/Lock-v0": "lock",
    "linmdp/RiverSwim-v0": "riverswim",
    "linmdp/Sensor-v0": "sensor",
    "linmdp/Inventory-v0": "inventory",
    "linmdp/Catalogue-v0": "catalogue",
}


def register_envs() -> None:
    """Register every built-in family."""
    from gymnasium.envs.registration import register, registry

    for gym_id, family in GYM_IDS.items():
        if gym_id not in registry:
            register(gym_id, entry_point="linmdp.envs.linear:linear_env", kwargs={"family": family})
