"""What a firmware engineer finds in an exported folder: names, an application that learns, a README."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linmdp
from linmdp.export.names import c_names, names_code
from linmdp.export.write import Exported, export_learner, export_policy
from linmdp.types import Task
from test_export import STRICT, needs_gcc, said_by

CENTRES = "lsvi-ucb:storage=centres,stationary=true,discount=0.95,lam=0.001,beta=1"
CARTPOLE = "gym:CartPole-v1,H=20,features=fourier,order=1"


def exported(env_spec: str, agent_spec: str, folder: Path) -> Exported:
    env = linmdp.make_env(env_spec)
    return export_learner(linmdp.make_agent(agent_spec, env, 100), env, folder, real="float", steps=20, run="a run")


@needs_gcc
def test_every_state_is_encoded_and_decoded_as_the_task_counts_it(tmp_path: Path) -> None:
    env = linmdp.make_env("inventory:lead=2,capacity=4")
    export_policy(linmdp.make_agent("optimal", env), tmp_path, real="float")
    (main := tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "linmdp_names.h"\nint main(void) {\n'
        "  for (unsigned s = 0; s < LINMDP_S; s++) { const linmdp_fields f = linmdp_decode(s);\n"
        '    printf("%u %u %u %u\\n", f.stock, f.lots_due_in_1, f.lots_due_in_2, linmdp_encode(f)); }\n'
        "  const linmdp_fields wrong = {LINMDP_S, 0, 0};\n"
        "  return linmdp_is_state(linmdp_encode(wrong)) || LINMDP_ACTION_ORDER_6 != 2; }\n"
    )
    found = np.array(said_by(main), dtype=int).reshape(-1, 4)
    sizes = [size for _, size in env.task.state_fields]
    every = np.arange(np.prod(sizes))
    np.testing.assert_array_equal(found, np.stack((*np.unravel_index(every, sizes), every), axis=1))


def test_names_that_c_does_not_allow_are_made_so() -> None:
    features = linmdp.make_env("riverswim:S=4").task.features
    fields = (("Vorrat an Öl", 2), ("int", 2))
    task = Task(
        S=4, A=2, d=8, H=2, reward_range=(0.0, 1.0), features=features, state_fields=fields, action_names=("a b", "a-b")
    )
    names = c_names(task, 0)
    assert names.fields == (("vorrat_an__l", 2), ("x_int", 2))
    assert names.actions == ["a_b", "a_b_1"]
    assert "LINMDP_ACTION_A_B_1 = 1," in names_code(names, True)


def test_names_that_do_not_fit_are_refused() -> None:
    features = linmdp.make_env("riverswim:S=4").task.features
    with pytest.raises(linmdp.InvalidParameter, match="'state_fields' of a task must have S=4 values"):
        Task(S=4, A=2, d=8, H=2, reward_range=(0.0, 1.0), features=features, state_fields=(("place", 3),))
    with pytest.raises(linmdp.InvalidParameter, match="'action_names' of a task must be A=2"):
        Task(S=4, A=2, d=8, H=2, reward_range=(0.0, 1.0), features=features, action_names=("left",))


def test_gymnasium_tasks_have_names_where_they_fit() -> None:
    assert linmdp.make_env("gym:Blackjack-v1").task.state_fields[1] == ("dealer_card", 11)
    large = linmdp.make_env("gym:FrozenLake-v1,map_name=8x8").task
    assert large.state_fields == ()  # its names are those of the small map
    assert large.action_names == ("left", "down", "right", "up")


@needs_gcc
def test_the_application_learns_over_a_line(tmp_path: Path) -> None:
    env = linmdp.make_env("sensor")
    exported("sensor", f"{CENTRES},M=96", tmp_path)
    subprocess.run(["make", "-s", "-C", tmp_path, "application"], check=True)
    sizes = [size for _, size in env.task.state_fields]

    def words(state: int) -> str:
        return " ".join(map(str, np.unravel_index(state, sizes)))

    returns = []
    pipe = subprocess.PIPE
    with subprocess.Popen([tmp_path / "application"], stdin=pipe, stdout=pipe, text=True, bufsize=1) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for k in range(60):
            state, _ = env.reset(seed=0 if k == 0 else None)
            program.stdin.write(f"{words(state)}\n")
            returns.append(0.0)
            for line in iter(program.stdout.readline, "end\n"):
                action = int(line.split()[0])
                assert line.split()[1] == env.task.action_names[action]
                state, reward, *_ = env.step(action)
                returns[-1] += float(reward)
                program.stdin.write(f"{reward} 0 {words(state)}\n")
        program.stdin.close()
    assert program.returncode == 0
    assert np.mean(returns[-20:]) > 6  # random play: 2.9, the best: 8.3


@needs_gcc
def test_the_application_of_a_task_with_numbers_compiles_and_refuses_what_is_none(tmp_path: Path) -> None:
    exported(CARTPOLE, f"{CENTRES},M=40", tmp_path)
    subprocess.run(["make", "-s", "-C", tmp_path, "application"], check=True)
    line = "0.01 0.02 0.03 0.04\n1 0 0.01 0.02 0.03 0.04\n7 0 0.01 0.02 0.03 0.04\n"
    done = subprocess.run([tmp_path / "application"], input=line, capture_output=True, text=True)
    assert [said.split()[1][:4] for said in done.stdout.splitlines()] == ["push", "push"]
    assert (done.returncode, done.stderr) == (1, "observing: status -4\n")  # a reward of 7


def test_the_readme_states_what_the_export_knows(tmp_path: Path) -> None:
    wrote = exported(CARTPOLE, f"{CENTRES},M=40", tmp_path)
    text = (tmp_path / "README.md").read_text()
    for number in (wrote.ram, wrote.stack, wrote.flash):
        assert f"| {number:,} |" in text
    for word in ("From this run: `a run`.", "`pole_angle`", "`LINMDP_ACTION_PUSH_RIGHT`", "20 steps"):
        assert word in text
    assert "$" not in text
    finite = exported("sensor", f"{CENTRES},M=96", tmp_path / "finite")
    assert finite.files[0].parent == tmp_path / "finite"
    assert "| `queue` | 0 .. 2 |" in (tmp_path / "finite" / "README.md").read_text()


@needs_gcc
def test_the_c_of_the_device_page_compiles(tmp_path: Path) -> None:
    """Its two blocks, in a program that declares what a board has."""
    exported("sensor", CENTRES, tmp_path)
    page = (Path(__file__).parent.parent / "docs" / "device.md").read_text()
    loop, names = re.findall(r"^```c\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    board = (
        "void fail(void);\nlinmdp_state read_state(void);\nlinmdp_real perform(int action);\nvoid run_forever(void);\n"
    )
    learner = "static linmdp_learner learner;"
    program = loop.replace(learner, board + learner).replace('linmdp.h"', 'linmdp.h"\n#include "linmdp_names.h"')
    choice = names.replace("...", "return 1;")
    program += f"int choose(unsigned h);\nint choose(unsigned h) {{\n{choice}return 0; }}\n"
    main = tmp_path / "page.c"
    main.write_text(program)
    subprocess.run(["gcc", *STRICT, "-fsyntax-only", main], check=True)
