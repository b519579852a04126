"""beta="auto" against fixed values, at lam=0.1 (docs, choosing-beta). About 10 minutes on two cores."""

from __future__ import annotations

from linmdp.report.tables import markdown
from linmdp.results.summary import Summary
from linmdp.runner.spec import parse_spec
from research.study import Study, outcome


def auto(study: Study) -> str:
    """A row for each environment."""
    rows = [row(env, here) for env, here in study.summaries().items()]
    return markdown(("environment", "best beta", "its regret", "auto", "ratio", "random"), rows)


def row(env: str, here: list[Summary]) -> tuple[str, ...]:
    """Regret of the best fixed beta, of "auto" and of the random policy."""
    regret = {parse_spec(s.agent)[1].get("beta", s.agent): outcome(s) for s in here}
    random, chosen = regret.pop("random"), regret.pop("auto")
    best = min(regret, key=lambda beta: regret[beta])
    lost = regret[best]
    return (f"`{env}`", f"{best:g}", f"{lost:.0f}", f"{chosen:.0f}", f"{chosen / lost:.2f}", f"{random:.0f}")


PARTS = {"auto": auto}
