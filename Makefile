# Two commands matter: `make fuzz` (a five-minute campaign on the simulator) and `make test` (what CI runs).
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: fuzz test check clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[sim,dev]'
	touch $@

fuzz: $(VENV)/installed
	$(BIN)/fuzz run --time 5m || test $$? -eq 1  # findings are no failure of make

test: $(VENV)/installed
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist loadfile

check: $(VENV)/installed
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow"

clean:
	rm -rf $(VENV) build *.egg-info
