"""What the states and actions of well-known Gymnasium environments are called, for whoever reads exported code."""

from __future__ import annotations

import math
from typing import NamedTuple

from linmdp.types import Fields


class FieldNames(NamedTuple):
    """Fields of a state, as in `Task.state_fields`, and the names of the actions."""

    fields: Fields = ()
    actions: tuple[str, ...] = ()


MOVES = ("left", "down", "right", "up")
GYM = {
    "CartPole": FieldNames(
        (("cart_position", 0), ("cart_velocity", 0), ("pole_angle", 0), ("pole_angular_velocity", 0)),
        ("push_left", "push_right"),
    ),
    "MountainCar": FieldNames((("position", 0), ("velocity", 0)), ("push_left", "coast", "push_right")),
    "Acrobot": FieldNames(
        (("cos_1", 0), ("sin_1", 0), ("cos_2", 0), ("sin_2", 0), ("angular_velocity_1", 0), ("angular_velocity_2", 0)),
        ("torque_minus", "torque_none", "torque_plus"),
    ),
    "FrozenLake": FieldNames((("row", 4), ("column", 4)), MOVES),
    "FrozenLake8x8": FieldNames((("row", 8), ("column", 8)), MOVES),
    "CliffWalking": FieldNames((("row", 4), ("column", 12)), ("up", "right", "down", "left")),
    "Taxi": FieldNames(
        (("row", 5), ("column", 5), ("passenger", 5), ("destination", 4)),
        ("south", "north", "east", "west", "pick_up", "drop_off"),
    ),
    "Blackjack": FieldNames((("player_sum", 32), ("dealer_card", 11), ("usable_ace", 2)), ("stick", "hit")),
}


def gym_names(id: str, S: int | None, A: int, numbers: int, sizes: tuple[int, ...]) -> FieldNames:
    """The names of an environment, as far as they fit what is seen of it: S states, or so many numbers in one.

    Where nobody knows names, the whole numbers that a state is made of (of those sizes) are at least counted.
    """
    known = GYM.get(id.partition("-v")[0].rpartition("/")[2], FieldNames())
    fits = math.prod(size for _, size in known.fields) == S if S is not None else len(known.fields) == numbers
    counted = tuple((f"part_{i}", size) for i, size in enumerate(sizes)) if S is not None and len(sizes) > 1 else ()
    return FieldNames(known.fields if fits else counted, known.actions if len(known.actions) == A else ())
