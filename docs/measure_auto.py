"""The table of beta="auto" against fixed values, from the store of its sweep. What the store does not have yet is run.

.venv/bin/python docs/measure_auto.py STORE     about 10 minutes on two cores from an empty store
"""

from __future__ import annotations

import sys
from pathlib import Path

from linmdp.io.files import output_folder
from linmdp.report.tables import markdown
from linmdp.results.store import Store
from linmdp.results.summary import Summary, by_agent
from linmdp.runner.spec import parse_spec
from linmdp.runner.sweep import plan, read_sweep, run_key, run_sweep

DOCS = Path(__file__).parent


def main() -> None:
    """One row an environment."""
    jobs, store = plan(read_sweep(DOCS.parent / "examples" / "auto.toml")), Store(output_folder(Path(sys.argv[1])))
    run_sweep(jobs, store, progress=True)
    summaries = by_agent(list(store.results({run_key(job) for job in jobs})))
    rows = [row(env, [s for s in summaries if s.env == env]) for env in dict.fromkeys(job.env for job in jobs)]
    header = ("environment", "best beta", "its regret", "auto", "ratio", "Fold, auto", "ratio", "random")
    (DOCS / "generated/auto.md").write_text(markdown(header, rows) + "\n")


def row(env: str, summaries: list[Summary]) -> tuple[str, ...]:
    """Regret of the best fixed beta, of "auto" and of the random policy."""
    regret = {s.agent: s.regret.mean for s in summaries if s.regret is not None}
    fixed = {
        agent: value for agent, value in regret.items() if isinstance(parse_spec(agent)[1].get("beta"), int | float)
    }
    best = min(fixed, key=lambda agent: fixed[agent])
    auto, fold = regret["lsvi-ucb:lam=0.1,beta=auto"], regret["lsvi-ucb-fold:lam=0.1"]
    ratios = (f"{auto / fixed[best]:.2f}", f"{fold:.0f}", f"{fold / fixed[best]:.2f}", f"{regret['random']:.0f}")
    return (f"`{env}`", f"{parse_spec(best)[1]['beta']:g}", f"{fixed[best]:.0f}", f"{auto:.0f}", *ratios)


if __name__ == "__main__":
    main()
