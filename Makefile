# Every target brings what it needs: Python packages into .venv at locked versions, the rest with apt (as root).
PYTHON ?= python3
SIM ?= verilator
BIN := .venv/bin
JOBS ?= $(shell nproc)

# Amaranth would prefer whatever Yosys is installed; its own gives the same Verilog everywhere.
export AMARANTH_USE_YOSYS := builtin
export SIM SEED WAVES PYTHON PART

# Wrong variables are reported at once, before anything is set up.
ifeq ($(filter verilator.1 icarus.1,$(SIM).$(words $(SIM))),)  # exactly one of the two
$(error SIM=$(SIM): choose verilator or icarus)
endif

# What pytest runs for UNIT, by the catalogue of units. Make asks for it before it runs any line of a recipe.
ready = { [ -e .venv/stamp ] || PYTHON='$(PYTHON)' scripts/setup.sh >&2; }
benches = $(call good,$(shell $(ready) && $(BIN)/python -m actcodec.units --bench $(UNIT) 2>&1))
# Packages for benches that make sim leaves out, unless it is asked for one of them.
extras = $(foreach pair,examples:soc test_site:site test_docs:site torch/test_triton:triton,$(if \
    $(findstring $(firstword $(subst :, ,$(pair))),$1),$(lastword $(subst :, ,$(pair)))))
good = $(if $(filter 0,$(.SHELLSTATUS)),$1,$(error $1))

.PHONY: help setup demo sim regress soak bench train train-check synth synth-check synth-renew synth-fpga gates prove mutate verilog registers vivado soc board dram docs figures site stale dist lint clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1	/' | expand -t 20
	@echo
	@echo '  make sim UNIT=dct SEED=7 WAVES=1   one bench, a replayed seed, a waveform'
	@echo '  make sim SIM=icarus                Icarus Verilog in place of Verilator'
	@echo '  make synth UNIT=dct                one unit'

setup:  ## install what the other targets need (they call it themselves)
	@scripts/setup.sh

demo: setup  ## compress a ResNet's activations, in simulated hardware; table, and picture in build/ (ALL=1: every mode)
	@$(BIN)/actcodec demo --output build $(if $(filter-out 0,$(ALL)),--all)

# A waveform belongs to one process; otherwise benches run side by side.
sim: share := tb -m "not regress"
regress: share := tb
sim regress:
	@scripts/setup.sh judges bench registers synth \
	    $(if $(filter regress,$@),site soc triton,$(if $(UNIT),$(call extras,$(benches)))) $(if $(filter icarus,$(SIM)),iverilog)
	@$(BIN)/python -m pytest $(if $(filter-out 0,$(WAVES)),-n 0,-n $(JOBS) --dist worksteal) $(if $(UNIT),$(benches),$(share))

sim:  ## prove every unit against the golden model (UNIT=, SEED=, WAVES=1, SIM=icarus)
regress:  ## the same with all parameters, numbers of lanes, documents, flows and faults (SEED=, PART=1/3)

soak: setup  ## random accelerators, tensors and faults (MINUTES=10, SEED=, FEW=1, MODES=all, QUEUE=1, SWEEP=1, RENEW=1)
	@$(BIN)/python -m tb.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(filter-out 0,$(FEW)),--few) $(if $(MODES),--modes $(MODES)) $(if $(filter-out 0,$(QUEUE)),--queue) \
	    $(if $(filter-out 0,$(SWEEP)),--sweep) $(if $(filter-out 0,$(RENEW)),--renew)

bench:  ## measure the accelerator in cycles, and the golden model beside others; tables and pictures in build/bench/
	@scripts/setup.sh bench
	@$(BIN)/actcodec bench --output build/bench

train:  ## train small ResNets on CIFAR-10 with their activations compressed (SWEEP=, RESULTS=); resumes
	@scripts/setup.sh torch npm
	@$(BIN)/actcodec train $(or $(SWEEP),docs/training/short.toml) --jobs $(JOBS) --results $(or $(RESULTS),build/train)

train-check:  ## what every preset does to a network's gradient and to 60 steps of training (CASE=, RENEW=1)
	@scripts/setup.sh torch
	@$(BIN)/python -m tb.torch.check $(if $(CASE),'$(CASE)') $(if $(filter-out 0,$(RENEW)),--renew) --jobs $(JOBS)

synth: how = $(if $(filter-out 0,$(PLACED)),place,$(if $(filter-out 0,$(SKY130)),sky130,map))
synth:  ## map to Nangate45: area and timing beside the paper's, some 15 minutes for all (UNIT=, SEARCH=1, PLACED=1, SKY130=1)
	$(if $(and $(filter-out 0,$(RENEW)),$(filter map,$(how))),$(error RENEW=1 goes with PLACED=1 or SKY130=1; make synth-renew records areas))
	$(if $(and $(filter-out 0,$(PLACED)),$(filter-out 0,$(SKY130))),$(error choose one of PLACED=1 and SKY130=1))
	@scripts/setup.sh synth
	@$(BIN)/python -m actcodec.synth $(how) $(if $(filter-out map,$(how)),$(if $(filter-out 0,$(RENEW)),--renew)) \
	    $(if $(filter-out place,$(how)),$(if $(filter-out 0,$(SEARCH)),--search)) $(UNIT) --jobs $(JOBS)

synth-check:  ## fail if a unit has become larger or slower than synth/baseline.json says (UNIT=, PARTS=1)
	@scripts/setup.sh synth
	@$(BIN)/python -m actcodec.synth baseline $(UNIT) $(if $(filter-out 0,$(PARTS)),--parts) --jobs $(JOBS)

synth-renew:  ## record the figures of all units in synth/baseline.json, by its recipes (UNIT=, SEARCH=1); resumes
	@scripts/setup.sh synth
	@$(BIN)/python -m actcodec.synth baseline $(UNIT) --renew $(if $(filter-out 0,$(SEARCH)),--search) --jobs $(JOBS)

synth-fpga:  ## place and route every unit on an ECP5-85F, which takes long (UNIT=, RENEW=1)
	@scripts/setup.sh synth
	@$(BIN)/python -m actcodec.synth fpga $(UNIT) $(if $(filter-out 0,$(RENEW)),--renew) --jobs $(JOBS)

gates:  ## run every unit's bench on its netlist of cells, and prove the netlist (UNIT=, PLACED=1, RENEW=1)
	@scripts/setup.sh synth
	@$(BIN)/python -m actcodec.synth gates $(UNIT) $(if $(filter-out 0,$(PLACED)),--placed) \
	    $(if $(filter-out 0,$(RENEW)),--renew) --jobs $(JOBS)

prove:  ## prove rules of streams, order, AXI, turns and ends, unit by unit (UNIT=, RENEW=1)
	@scripts/setup.sh synth
	@$(BIN)/python -m formal $(UNIT) $(if $(filter-out 0,$(RENEW)),--renew) --jobs $(JOBS)

mutate:  ## run every unit's bench on mutants of it, to see what it catches (UNIT=, MUTANTS=, SEED=, MUTANT=, RENEW=1)
	@scripts/setup.sh synth
	@$(BIN)/python -m actcodec.synth mutate $(UNIT) $(if $(MUTANTS),--mutants $(MUTANTS)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(MUTANT),--mutant $(MUTANT)) $(if $(filter-out 0,$(RENEW)),--renew) --jobs $(JOBS)

verilog: setup  ## write the Verilog of the accelerator and of every unit to build/verilog, and lint it
	@$(BIN)/python -m actcodec.units build/verilog
	@printf '%s\n' build/verilog/*.v | PYTHON=$(BIN)/python xargs -P $(JOBS) -n 1 \
	    tb/bin/verilator --lint-only --quiet -Wall rtl/lint.vlt

registers:  ## write the registers as SystemRDL, C header, IP-XACT and HTML to build/registers (CDUS=, MODES=, FORMATS=, PAYLOAD=, ADDRESS_WIDTH=)
	@scripts/setup.sh registers
	@$(BIN)/python -m drivers.registers build/registers $(if $(CDUS),--cdus $(CDUS)) $(if $(MODES),--modes $(MODES)) \
	    $(if $(ADDRESS_WIDTH),--address-width $(ADDRESS_WIDTH)) $(if $(FORMATS),--formats $(FORMATS)) \
	    $(if $(PAYLOAD),--payload $(PAYLOAD)) $(if $(SCAN),--$(if $(filter 0,$(SCAN)),no-)scan) \
	    $(if $(QUEUE),--queue $(QUEUE))

vivado:  ## write an accelerator as IP for Vivado, and as IP-XACT, to build/vivado (OPTIONS="--preset standalone --cdus 1")
	@scripts/setup.sh registers
	@$(BIN)/python -m drivers.vivado build/vivado $(OPTIONS)

soc:  ## build a LiteX SoC with the accelerator, boot it in Verilator, and compare what it prints with golden (RENEW=1)
	@scripts/setup.sh soc
	@$(BIN)/python -m examples.litex $(if $(filter-out 0,$(RENEW)),--renew)

board:  ## a bitstream of the SoC with DDR3 for the ECPIX-5 85F, in build/board, which takes long (SYNTHESIS=1: netlist alone)
	@scripts/setup.sh soc synth
	@$(BIN)/python -W ignore -m examples.litex.bitstream $(if $(filter-out 0,$(SYNTHESIS)),--synthesis)

dram:  ## tensors through an accelerator on LiteDRAM and DDR3, there and back; rates (SWEEP=1: other queues, RENEW=1)
	@scripts/setup.sh soc
	@$(BIN)/python -m examples.dram $(if $(filter-out 0,$(SWEEP)),--sweep) $(if $(filter-out 0,$(RENEW)),--renew)

docs: setup  ## write recorded figures, and ratios of all modes, into the documents (BENCH=build/bench: record these)
	@$(BIN)/python -m docs.tables
	@$(BIN)/python -m docs.rates $(BENCH)
	@$(BIN)/python -m docs.offload
	@$(BIN)/python -m docs.ratios
	@$(BIN)/python -m docs.measured
	@$(BIN)/python -m docs.torch_record
	@$(BIN)/python -m docs.readme
	@$(BIN)/python -m docs.records
	@$(BIN)/python -m docs.pictures
	@if $(BIN)/python -c "import torch" 2> /dev/null; then $(BIN)/python -m docs.training; \
	    else echo "docs/training.md is left as it is: its figures need PyTorch, which make train installs"; fi

site:  ## build the documentation in build/site, and look at every page of it in Chromium (SHOTS=1: pictures of them)
	@scripts/setup.sh site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@$(BIN)/python -m docs.browse build/site $(if $(filter-out 0,$(SHOTS)),build/shots)

figures:  ## measure again every recorded figure of something that has changed since, and only these (ONLY=areas); resumes
	@scripts/setup.sh bench judges synth
	@$(BIN)/python -m docs.figures $(ONLY) --jobs=$(JOBS)
	@$(MAKE) --no-print-directory docs

stale:  ## list the recorded figures of what has changed since, which make docs then marks (ONLY=, CHECK=1: fail)
	@scripts/setup.sh synth
	@$(BIN)/python -m docs.figures $(ONLY) $(if $(filter-out 0,$(CHECK)),--check,--stale)

dist:  ## build sdist and wheel in build/dist, and check what PyPI would show of them
	@scripts/setup.sh dist
	@rm -rf build/dist && mkdir -p build
	@$(BIN)/python -m build --no-isolation --outdir build/dist . > build/dist.log 2>&1 || { tail -20 build/dist.log; exit 1; }
	@$(BIN)/python -m twine check --strict build/dist/*

lint: setup  ## ruff, and mypy on the types of actcodec/, golden/ and drivers/
	@$(BIN)/ruff check .
	@$(BIN)/mypy

clean:  ## remove build products (.venv stays)
	rm -rf build .pytest_cache .ruff_cache
