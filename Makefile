PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: benchmark test lint types fixtures clean

benchmark: $(STAMP)  ## score, gate and bundle the synthetic fixtures
	$(BIN)/python -m geoeval benchmark --allow-product-blocked

test: $(STAMP)  ## all tests, doctests included
	$(BIN)/python -m pytest -q -n auto

lint: $(STAMP)  ## format, lint and types
	$(BIN)/ruff format --check src tests benchmarks scripts
	$(BIN)/ruff check src tests benchmarks scripts
	$(BIN)/mypy --strict src

fixtures: $(STAMP)  ## write the synthetic fixtures again; the bytes do not change
	$(BIN)/python scripts/make_split_fixture.py
	$(BIN)/python scripts/make_compare_fixtures.py
	$(BIN)/python scripts/make_judge_fixtures.py
	$(BIN)/python scripts/make_fixtures.py

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,dask]'
	touch $(STAMP)

clean:
	rm -rf .venv runs dist build
