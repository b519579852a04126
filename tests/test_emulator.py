"""The search for the best episode of a game: it can go back, and it finds what is easy to find."""

from __future__ import annotations

import pytest

pytest.importorskip("ale_py")

from emulator import Emulator, best_episode

PHOENIX = "ALE/Phoenix-ram-v5"


def test_the_emulator_goes_back_with_its_chance() -> None:
    emulator = Emulator(PHOENIX, seed=3)
    for action in (1, 2, 3, 1, 1):
        emulator.step(action)
    state = emulator.state()
    rams = []
    for _ in range(2):
        emulator.restore(state)
        steps = [emulator.step(action) for action in (4, 1, 2, 7, 1, 5, 0, 1) * 3]
        rams.append((steps, emulator.ale.getRAM().tobytes()))
    assert rams[0] == rams[1]


def test_a_longer_search_finds_no_less_and_more_than_random_play() -> None:
    few, many = (best_episode(PHOENIX, 30, steps, seed=0) for steps in (100, 6000))
    emulator = Emulator(PHOENIX, seed=0)
    random, _ = emulator.playout(0, 30)
    assert many >= few
    assert many > random
