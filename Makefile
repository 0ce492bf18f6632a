# Two commands for people: `make demo` and `make test`. Each makes its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# what one process of the tests has compiled, the others and those that they start read
COMPILED_ONCE := PYTHONDONTWRITEBYTECODE=

.PHONY: demo test lint types check contract certify test-long test-backends test-dask test-federated torture audit auditors fuzz redteam reproduce reproduce-quick papers bench league freeze-oracles docs planner test-page \
	sessions coverage lock test-locked wheel sbom clean

demo: $(VENV)/.demo
	$(BIN)/python -m examples.digits

# a few cases of every claim, each process on one thread
test: $(VENV)/.test
	$(ONE_THREAD) $(COMPILED_ONCE) $(BIN)/python -m pytest -q -n auto --dist loadfile -m "not long"

# what make test leaves out: many draws, and every case of the grids
test-long: $(VENV)/.test
	$(ONE_THREAD) $(COMPILED_ONCE) $(BIN)/python -m pytest -q -n auto -m long

# how much of src the tests of make test reach where every library is, branches counted (large download); out/coverage.json has
# the lines that are not reached
coverage: $(VENV)-coverage/.ready
	$(ONE_THREAD) $(VENV)-coverage/bin/python -m pytest -q -n auto --dist loadfile -m "not long" \
		--cov=dpmanifolds --cov-branch --cov-report=term:skip-covered --cov-report=json:out/coverage.json

# make test with the versions of requirements/test.lock, which make lock writes anew
test-locked: $(VENV)-locked/.ready
	$(ONE_THREAD) $(VENV)-locked/bin/python -m pytest -q -n auto --dist loadfile -m "not long"

lock:
	$(PYTHON) -m venv --clear $(VENV)-locked
	$(VENV)-locked/bin/python -m pip --disable-pip-version-check -q install -e ".[test]"
	{ echo "# Versions that the tests pass with, on Linux: written by make lock."; \
		$(VENV)-locked/bin/python -m pip --disable-pip-version-check freeze --exclude-editable; } > requirements/test.lock

# wheel and source archive, in dist
wheel: $(VENV)-build/.ready
	$(VENV)-build/bin/python -m build -q --outdir dist

# what the package pulls in, as CycloneDX, from an environment that has nothing else: out/sbom.json
sbom: $(VENV)-build/.ready
	$(PYTHON) -m venv --clear $(VENV)-bare
	$(VENV)-bare/bin/python -m pip --disable-pip-version-check -q install .
	mkdir -p out
	$(VENV)-build/bin/cyclonedx-py environment --pyproject pyproject.toml -o out/sbom.json $(VENV)-bare/bin/python

# the geometry and statistics on PyTorch and JAX (installs both: large)
test-backends: $(VENV)-backends/.ready
	$(VENV)-backends/bin/python -m pytest -q -n auto tests/manifolds tests/statistics tests/descent tests/test_domains.py

# Dask arrays and bags on a cluster of processes, one of which is killed now and then
test-dask: $(VENV)-dask/.ready
	$(VENV)-dask/bin/python -m pytest -q -n 2 --dist loadfile \
		tests/records/test_dask.py tests/descent/test_dask_descent.py tests/data/test_lazy_descriptors.py

# several sites, with the engines that add their answers up, on the loopback
test-federated: $(VENV)-federated/.ready
	$(ONE_THREAD) $(VENV)-federated/bin/python -m pytest -q -n 2 tests/federated tests/cli/test_site_commands.py tests/audits/test_sites.py

# that a record's integers depend on that record alone, bit for bit: every manifold and loss, NumPy, PyTorch and JAX
contract: $(VENV)-backends/.ready
	DPMANIFOLDS_CONTRACT=400 $(VENV)-backends/bin/python -m pytest -q -n auto tests/sums tests/descent/test_contract.py

# the last steps of the proofs, by interval arithmetic
certify: $(VENV)/.test
	$(BIN)/python certificates/sensitivity.py

# the ledger under concurrent processes, kill -9, a full disk and damaged files
torture: $(VENV)/.test
	$(BIN)/python -m tests.ledger.torture

# attacks on every mechanism and release, thousands of draws each; writes the tables of docs/audits.md
audit: $(VENV)/.test
	$(BIN)/python -m audits.table --draws 8000 --write docs/audits.md
	$(BIN)/python -m audits.decisions --draws 16000 --write docs/audits.md

# every promise before auditors that others wrote (half an hour); AUDITORS is a Python that has this package, its tests,
# dp-recorder and DP-Auditorium, which are on no package index
AUDITORS ?= $(BIN)/python
auditors: $(VENV)/.test
	$(ONE_THREAD) $(AUDITORS) -m pytest -q tests/audits/test_outside.py
	$(ONE_THREAD) $(AUDITORS) -m audits.outside

# attacks: random neighbours at the edge of random domains, and 10,000 promises against the truth in mpmath (20 minutes)
redteam: $(VENV)/.test
	$(BIN)/python -m tests.redteam.neighbours --trials 1500
	$(BIN)/python -m tests.redteam.profiles --comparisons 10000

# 100,000 generated calls of the public functions and readers
fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --calls 100000

# the papers' figures and claims, their key numbers checked; DATA=folder for the real data sets
reproduce-quick: $(VENV)/.test
	$(BIN)/python -m papers all --quick --jobs 2 --out out/papers $(if $(DATA),--data $(DATA))

reproduce: $(VENV)/.test
	$(BIN)/python -m papers all --jobs 2 --out out/papers $(if $(DATA),--data $(DATA))

# docs/papers.md and its figures, from what the last of these two runs left
papers: $(VENV)/.test
	$(BIN)/python -m papers.pages --out out/papers --write docs/papers.md

# words are counted, the pages' Python and the examples are run, then the site is built into out/docs; every warning and
# every dead link is an error
docs: $(VENV)-docs/.ready
	$(VENV)-docs/bin/python docs/count_words.py
	$(VENV)-docs/bin/python docs/run_pages.py
	$(VENV)-docs/bin/python -m examples.build
	$(VENV)-docs/bin/python -m sphinx -q -W --keep-going -b html docs out/docs
	$(VENV)-docs/bin/python docs/check_links.py out/docs

# the planner page, one file in the wheel, from its sources in docs/planner
planner:
	$(PYTHON) docs/planner/build.py

# the planner page in headless Chromium (Debian: apt-get install chromium); screenshots go to out/page
test-page: $(VENV)-page/.ready
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || { echo "test-page needs chromium on the PATH"; exit 1; }
	DPMANIFOLDS_SHOTS=out/page $(VENV)-page/bin/python -m pytest -q tests/planner

# three first sessions from the built wheel, in empty directories, with Chromium for the planner page; writes docs/sessions
sessions:
	$(PYTHON) docs/first_sessions.py

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.lint
	$(BIN)/mypy

check: lint types test

# every benchmark, then one table and two figures (geomstats needs numpy<2.4: its own environment)
bench: $(VENV)-bench/.ready
	$(VENV)-bench/bin/python benchmarks/summary.py --out out/bench

# private means against published mechanisms, at the same promise; writes docs/league.md (within the hour); DATA=folder for the real data sets
league: $(VENV)/.test
	$(ONE_THREAD) $(BIN)/python -m benchmarks.league --jobs 2 --out out/league --write docs/league.md $(if $(DATA),--data $(DATA))

freeze-oracles: $(VENV)-bench/.ready
	$(VENV)-bench/bin/python tests/manifolds/freeze_oracles.py

$(VENV)/pyvenv.cfg:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/pyvenv.cfg pyproject.toml
	$(PIP) install -e ".[plot]"
	@touch $@

$(VENV)/.test: $(VENV)/pyvenv.cfg pyproject.toml
	$(PIP) install -e ".[test]"
	@touch $@

$(VENV)/.lint: $(VENV)/pyvenv.cfg pyproject.toml
	$(PIP) install -e ".[lint]"
	@touch $@

$(VENV)-backends/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-backends
	$(VENV)-backends/bin/python -m pip --disable-pip-version-check -q install -e ".[test,backends]"
	@touch $@

$(VENV)-dask/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-dask
	$(VENV)-dask/bin/python -m pip --disable-pip-version-check -q install -e ".[test,dask]"
	@touch $@

$(VENV)-federated/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-federated
	$(VENV)-federated/bin/python -m pip --disable-pip-version-check -q install -e ".[test,federated,flower,flare]"
	@touch $@

$(VENV)-coverage/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-coverage
	$(VENV)-coverage/bin/python -m pip --disable-pip-version-check -q install -e ".[test,coverage,backends,dask,parquet,zarr,mne,federated]"
	@touch $@

$(VENV)-locked/.ready: pyproject.toml requirements/test.lock
	$(PYTHON) -m venv $(VENV)-locked
	$(VENV)-locked/bin/python -m pip --disable-pip-version-check -q install -c requirements/test.lock -e ".[test]"
	@touch $@

$(VENV)-build/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-build
	$(VENV)-build/bin/python -m pip --disable-pip-version-check -q install build cyclonedx-bom
	@touch $@

$(VENV)-bench/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-bench
	$(VENV)-bench/bin/python -m pip --disable-pip-version-check -q install -e ".[bench]"
	@touch $@

$(VENV)-docs/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip --disable-pip-version-check -q install -e ".[docs]"
	@touch $@

$(VENV)-page/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)-page
	$(VENV)-page/bin/python -m pip --disable-pip-version-check -q install -e ".[test,page]"
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-backends $(VENV)-dask $(VENV)-federated $(VENV)-bench $(VENV)-docs $(VENV)-page $(VENV)-coverage $(VENV)-locked \
		$(VENV)-build $(VENV)-bare .pytest_cache .mypy_cache .ruff_cache
