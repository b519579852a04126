# Every target makes .venv when it is missing; nothing outside this folder is touched.
PYTHON ?= python3
BIN := .venv/bin
PIP := @$(BIN)/pip install --quiet --disable-pip-version-check --root-user-action=ignore -c constraints.txt

.PHONY: demo reproduce test lint bench bench-micro trust audit docs wheel clean

demo: .venv/report  ## what it is for, in a minute: it learns before your eyes, and leaves demo/demo.html
	@$(BIN)/linmdp demo --out demo

reproduce: .venv/report  ## the paper's nine figures and a report, in reproduced/ (about 5 minutes)
	$(BIN)/linmdp reproduce --scale quick --out reproduced
	$(BIN)/linmdp report reproduced
	@echo "Look at reproduced/report.html"

test: .venv/test lint  ## tests, ruff, mypy --strict
	$(BIN)/pytest -n 2 --dist worksteal

lint: .venv/test
	$(BIN)/ruff check src tests benchmarks docs research
	$(BIN)/ruff format --check src tests benchmarks docs research
	$(BIN)/mypy

bench: .venv/test  ## ratios of speed and memory, into docs/generated (about 20 minutes)
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python benchmarks/sweeps.py

bench-micro: .venv/test
	$(BIN)/pytest benchmarks -o addopts=-q --benchmark-only

trust: .venv/test  ## every promise of reliability, tried many times, into docs/generated/trust.md (about half an hour)
	-$(PIP) -e '.[fuzz]'  # not everywhere; without it a row is left out
	$(BIN)/python benchmarks/trust.py

audit: .venv/test  ## what is installed is what is locked, and unchanged; needs no network
	$(BIN)/python benchmarks/audit.py

docs: .venv/docs  ## the site, in docs/_build/html
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

wheel: .venv/core  ## wheel and sdist into dist/, tried in an empty environment
	$(BIN)/python benchmarks/wheel.py

clean:
	rm -rf .venv demo reproduced docs/_build

.venv/core: pyproject.toml constraints.txt
	@echo "Setting up .venv, once (a minute or two)"
	@$(PYTHON) -m venv .venv
	$(PIP) -e .
	@touch $@

.venv/report: .venv/core
	$(PIP) -e '.[report]'
	@touch $@

.venv/test: .venv/core
	$(PIP) -e '.[test]'
	-$(PIP) -e '.[box2d,minigrid]'  # not everywhere; without them a few tests are skipped
	@touch $@

.venv/docs: .venv/core
	$(PIP) -e '.[docs]'
	@touch $@
