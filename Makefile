# kernelcast. One non-recursive Makefile; every object lands in build/$(VARIANT)/, so variants never mix.
# `make help` prints what can be made.

VARIANT ?= debug
PREFIX  ?= /usr/local
SYSCONFDIR ?= /etc
B       := build/$(VARIANT)
Q       ?= @

WARN := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wformat=2 -Wundef -Wvla -Wpointer-arith -Werror -Wno-format-truncation
FLAGS_debug   := -O1 -g3 -DKCAST_FAULTS
FLAGS_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE
FLAGS_asan    := -O1 -g -DKCAST_FAULTS -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS_tsan    := -O1 -g -DKCAST_FAULTS -fsanitize=thread
FLAGS_cov     := -O0 -g -DKCAST_FAULTS --coverage
FLAGS_fuzz    := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
LINK_release  := -pie -Wl,-z,relro,-z,now
ifdef BUNDLE # DT_RPATH, unlike DT_RUNPATH, also serves the libraries' own needs
LINK_release  += -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/../lib'
endif
ifeq ($(filter $(VARIANT),debug release asan tsan cov fuzz),)
$(error VARIANT=$(VARIANT) is not known; use debug, release, asan, tsan, cov or fuzz)
endif
ifeq ($(VARIANT),fuzz)
CC := clang
else ifeq ($(origin CC),default)
CC := gcc
endif

ifneq ($(findstring clang,$(CC)),)
WARN += -Wno-unknown-warning-option
endif

CFLAGS   += -std=gnu11 $(WARN) $(FLAGS_$(VARIANT))

# What this machine's compiler and libraries are; looked at again when one of them changes.
COMPILER         := $(CC) $(CPPFLAGS) $(LDFLAGS)
CONFIGURED       := build/configured/$(shell scripts/configure.sh --key --tests $(COMPILER))
CONFIGURED_TESTS := $(CONFIGURED)-tests
MSGPACK           = $(file <$(CONFIGURED))

CPPFLAGS += -I. -I$(B) -D_GNU_SOURCE
LDFLAGS  += $(FLAGS_$(VARIANT)) $(LINK_$(VARIANT))

LIBS_kcastd        = -luv -lsqlite3 $(MSGPACK) -lmbedtls -lmbedx509 -lmbedcrypto -ljansson -linih -lm -lpthread
LIBS_kcast         = -lncurses -ltinfo -lz -luv -lsqlite3 $(MSGPACK) -lmbedtls -lmbedx509 -lmbedcrypto -ljansson -linih -lm -lpthread
LIBS_kcast-worker  = -lcurl -lxgboost -luv -lsqlite3 $(MSGPACK) -lmbedtls -lmbedx509 -lmbedcrypto -ljansson -linih -lm -lpthread
LIBS_kcast-replay  = -lz -lxgboost -luv -lsqlite3 $(MSGPACK) -lmbedtls -lmbedx509 -lmbedcrypto -ljansson -linih -lm -lpthread
LIBS_kcast-exec    = -lseccomp -lzstd -llz4 $(MSGPACK) -lmbedcrypto -ljansson -linih -lm -ldl
LIBS_tests         = -lcmocka -lcurl -lz -lzstd -llz4 -lseccomp -lxgboost -luv -lsqlite3 $(MSGPACK) -lmbedtls -lmbedx509 -lmbedcrypto -ljansson -linih -lm -ldl -lpthread

LIB_FOLDERS := common proto problem net
FOLDERS     := daemon executor worker client replay # an archive each
# The .c files at any depth below a folder, but for programs' main.c and what runs in a fake driver.
ALL_SRC := $(sort $(shell find $(LIB_FOLDERS) $(FOLDERS) -name '*.c'))
sources = $(filter-out %/main.c %_host.c executor/recorder/%,$(filter $(1)/%,$(ALL_SRC)))
objects = $(patsubst %.c,$(B)/%.o,$(1))

LIB_SRC  := $(foreach f,$(LIB_FOLDERS),$(call sources,$(f)))
PROGRAMS := $(B)/bin/kcastd $(B)/bin/kcast-exec $(B)/bin/kcast-worker $(B)/bin/kcast-replay $(B)/bin/kcast
TESTS    := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/*/test_*.c tests/*/*/test_*.c tests/*/*/*/test_*.c))
BENCHES  := $(patsubst tests/bench/%.c,$(B)/bin/%,$(wildcard tests/bench/bench_*.c)) # beside the programs that they start
GPU_TESTS := $(B)/bin/bench_gpu $(B)/bin/bench_verdicts $(B)/bin/battery $(B)/bin/agree $(B)/bin/stream $(B)/bin/originals # for a machine with a GPU: tests/gpu/run.sh
FUZZERS  := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
SUPPORT  := $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/support/fake_*.c tests/support/print_*.c))
SOAK     := $(B)/tests/soak/soak
# What links libnng, where it is installed; the product never does.
FOREIGN  := $(if $(wildcard /usr/include/nng/nng.h /usr/local/include/nng/nng.h),$(patsubst %.c,$(B)/%,$(wildcard examples/*.c tests/peers/nng/*.c)))
# Libraries that stand in for those of a GPU's driver; tests load them by LD_LIBRARY_PATH.
FAKES    := $(B)/tests/fake/libcuda.so.1 $(B)/tests/fake/libnvidia-ml.so.1 $(B)/tests/fake/old/libcuda.so.1 \
            $(B)/tests/fake/libhost.so
# The driver for an interpreter that a candidate is recorded in.
CAPTURE  := $(B)/tests/fake/capture/libcuda.so.1
fake_objects = $(patsubst %.c,$(B)/tests/fake/%.o,$(wildcard $(1)))

.PHONY: all help demo demo-llm test check deps fuzz fuzz-run bench format lint install clean
.SECONDARY:
.DELETE_ON_ERROR:

all: $(PROGRAMS) ## the programs, in build/debug/bin; VARIANT=release optimised, or asan, tsan, cov

help: ## this list
	$(Q)awk -F ':.*## ' '/^[a-z_.-]+:.*## / { printf "make %-24s %s\n", $$1, $$2 }' Makefile

# ---- programs: one archive per folder, one for the shared folders ----

$(B)/lib.a: $(call objects,$(LIB_SRC))
define folder
$(B)/$(1).a: $$(call objects,$$(call sources,$(1)))
endef
$(foreach f,$(FOLDERS),$(eval $(call folder,$(f))))
$(B)/tests/support.a: $(call objects,$(filter-out tests/support/fake_% tests/support/print_%,$(wildcard tests/support/*.c tests/support/daemon/*.c tests/support/samples/*.c)))

$(B)/%.a:
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar qcs $@ $^

$(B)/bin/kcastd: $(B)/daemon/main.o $(B)/daemon.a $(B)/lib.a
$(B)/bin/kcast-exec: $(B)/executor/main.o $(B)/executor.a $(B)/lib.a
$(B)/bin/kcast-worker: $(B)/worker/main.o $(B)/worker.a $(B)/lib.a
$(B)/bin/kcast-replay: $(B)/replay/main.o $(B)/replay.a $(B)/client.a $(B)/worker.a $(B)/lib.a
$(B)/bin/kcast: $(B)/client/main.o $(B)/client.a $(B)/lib.a
$(B)/bin/%:
	@mkdir -p $(@D)
	$(Q)echo "  LINK $@" && $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_$*)

.SECONDEXPANSION:
$(B)/%.o: %.c Makefile | $$(if $$(filter tests/%,$$*),$(CONFIGURED_TESTS),$(CONFIGURED))
	@mkdir -p $(@D)
	$(Q)echo "  CC   $@" && $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Linking reads what is said of the libraries, tests and all.
$(CONFIGURED) $(CONFIGURED_TESTS):
	@mkdir -p $(@D)
	$(Q)scripts/configure.sh $(if $(filter %-tests,$@),--tests) $(COMPILER) >$@

# ---- tests ----

# A test links the archive of the top folder that it mirrors, however deep it is; e2e tests and benchmarks talk to the programs.
top_of = $(firstword $(subst /, ,$(patsubst $(B)/tests/%,%,$(1))))
# replay/ stands on client/ and worker/; tests of the worker's calibration use the scores of client/eval/.
below_replay := client worker
below_worker := client
archives_of = $(patsubst %,$(B)/%.a,$(filter $(FOLDERS),$(top_of)) $(below_$(top_of)))
$(BENCHES): $(B)/bin/%: $(B)/tests/bench/%.o $(B)/tests/bench/samples.o $(B)/tests/bench/trained_model.o $(B)/tests/bench/load.o $(B)/tests/bench/attack.o $(B)/client.a $(B)/worker.a $(B)/tests/support.a $(B)/lib.a
	@mkdir -p $(@D)
	$(Q)echo "  LINK $@" && $(CC) $(LDFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIBS_tests)
$(B)/bin/bench_renew $(B)/bin/bench_compile $(B)/bin/bench_losses: $(B)/executor.a
$(B)/bin/bench_pool: | $(B)/tests/support/fake_exec
$(B)/bin/bench_pipeline: $(B)/replay.a
$(B)/bin/bench_trust: $(B)/tests/bench/scripted_forecaster.o $(B)/replay.a
$(B)/bin/bench_frames: | $(filter %/speed,$(FOREIGN))
$(B)/bin/bench_stream: $(call objects,$(addprefix tests/bench/,draw.c point.c stream_loop.c))
$(GPU_TESTS): $(B)/bin/%: $(B)/tests/gpu/%.o $(B)/tests/gpu/neighbour.o $(B)/tests/bench/samples.o $(B)/client.a $(B)/lib.a
	@mkdir -p $(@D)
	$(Q)echo "  LINK $@" && $(CC) $(LDFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIBS_tests)
STREAM := $(call objects,$(wildcard tests/gpu/stream_*.c) tests/bench/draw.c)
$(B)/bin/stream: $(STREAM) $(B)/tests/bench/point.o $(B)/executor.a
$(B)/bin/originals: $(B)/tests/gpu/original_replay.o $(B)/executor.a
$(TESTS): $(B)/tests/%: $(B)/tests/%.o $$(call archives_of,$$@) $(B)/tests/support.a $(B)/lib.a
	$(Q)echo "  LINK $@" && $(CC) $(LDFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIBS_tests)
$(B)/tests/gpu/test_stream_run: $(STREAM) $(B)/executor.a $(B)/client.a
$(B)/tests/bench/test_draw: $(B)/tests/bench/draw.o $(B)/executor.a
$(B)/tests/cheats/test_cpu: $(call objects,$(addprefix tests/cheats/,battery.c compose.c exec.c))
$(B)/tests/executor/gpu/device/test_kernels: $(B)/executor/gpu/device/kernels_host.o
$(SOAK): $(call objects,$(wildcard tests/soak/*.c)) $(B)/tests/support.a $(B)/lib.a
	$(Q)echo "  LINK $@" && $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_tests)
$(B)/tests/support/fake_endpoint: $(B)/tests/support/endpoint_stub.o
$(B)/tests/support/fake_exec: $(B)/tests/support/exec_stub.o $(B)/tests/support/exec_bad.o
# Programs of others: clients and servers of libnng's, in processes of their own. Nothing of this tree is in them, nor a sanitizer.
$(FOREIGN): $(B)/%: %.c Makefile | $(CONFIGURED)
	@mkdir -p $(@D)
	$(Q)echo "  CC   $@" && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -o $@ $< -lnng $(MSGPACK) -lmbedcrypto -lm -lpthread
$(SUPPORT): $(B)/tests/%: $(B)/tests/%.o $(B)/lib.a
	$(Q)echo "  LINK $@" && $(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS_kcast-exec) -luv
$(B)/tests/fake/libcuda.so.1: $(call fake_objects,tests/support/fake_gpu/*.c executor/gpu/device/kernels_host.c common/err.c common/mem.c common/options/parse.c)
$(B)/tests/fake/libnvidia-ml.so.1: $(call fake_objects,tests/support/fake_nvml/*.c)
$(B)/tests/fake/old/libcuda.so.1: $(call fake_objects,tests/support/fake_old/*.c)
$(B)/tests/fake/libhost.so: $(call fake_objects,tests/support/fake_host/*.c)
$(FAKES):
	@mkdir -p $(@D)
	$(Q)echo "  LINK $@" && $(CC) -shared $(FLAGS_$(VARIANT)) -Wl,-soname,$(@F) -o $@ $^ -lm
$(CAPTURE): $(wildcard tests/support/fake_capture/*.[ch]) Makefile # with no sanitizer in it, because the interpreter has none
	@mkdir -p $(@D)
	$(Q)echo "  CC   $@" && $(CC) -std=gnu11 -D_GNU_SOURCE -I. $(WARN) -O1 -g -fPIC -shared -fvisibility=hidden -Wl,-soname,$(@F) -o $@ $(filter %.c,$^)
$(B)/tests/fake/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(Q)echo "  CC   $@" && $(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -fvisibility=hidden -MMD -MP -c -o $@ $<
$(FUZZERS): $(B)/tests/%: $(B)/tests/%.o $(B)/executor.a $(B)/daemon.a $(B)/client.a $(B)/worker.a $(B)/lib.a
	$(Q)echo "  LINK $@" && $(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(filter-out -lcmocka,$(LIBS_tests))

deps: ## installs what building and testing need
	$(Q)scripts/install-deps.sh
	$(Q)scripts/install-toolkit.sh
	$(Q)scripts/install-pynng.sh

test: deps ## installs what is missing, builds, runs all tests; prints "N passed, N failed"
	$(Q)$(MAKE) --no-print-directory check

# What tests run besides themselves. Benchmarks and programs for a GPU are built with all tests, so that they keep compiling.
COMPANIONS := $(PROGRAMS) $(SUPPORT) $(B)/bin/battery $(B)/bin/bench_verdicts $(B)/bin/bench_pool $(B)/bin/bench_trust $(B)/bin/stream $(B)/bin/originals $(FAKES) $(CAPTURE) $(SOAK) $(FOREIGN)
ifeq ($(strip $(T)),)
CHECKED := $(COMPANIONS) $(TESTS) $(BENCHES) $(GPU_TESTS)
else
# T= names tests: daemon/state/test_job, or shortly daemon/state/test_job or test_job where that is one test. A program that runs no other
# program is built alone.
NAMES := $(patsubst $(B)/tests/%,%,$(TESTS)) $(patsubst tests/%,%,$(wildcard tests/check-*.sh tests/*/test_*.sh tests/*/*/test_*.sh))
named = $(or $(filter $(1),$(NAMES)),$(filter $(firstword $(subst /, ,$(1)))/%/$(notdir $(1)),$(NAMES)),$(filter %/$(1),$(NAMES)))
only_one = $(if $(filter 1,$(words $(2))),$(2),$(error T=$(1) is $(if $(2),one of $(2),no test)))
CHOSEN := $(foreach t,$(T),$(call only_one,$(t),$(call named,$(t))))
CHOSEN_PROGRAMS := $(filter-out %.sh,$(CHOSEN))
RUN_OTHERS := $(filter %.sh e2e/%,$(filter-out lint/%,$(CHOSEN))) \
              $(if $(CHOSEN_PROGRAMS),$(shell grep -lE 'KCAST_BIN|tests/support/(program|gpu|daemon_client).h|_fixture.h' $(CHOSEN_PROGRAMS:%=tests/%.c)))
CHECKED := $(CHOSEN_PROGRAMS:%=$(B)/tests/%) $(if $(strip $(RUN_OTHERS)),$(COMPANIONS))
endif

check: $(CHECKED) ## the tests without installing anything; T=daemon/state/test_job runs one, and builds what it needs
	$(Q)VARIANT=$(VARIANT) tests/run.sh $(CHOSEN)

fuzz: ## every fuzz target; FUZZ_SECONDS=60 each
	$(Q)$(MAKE) --no-print-directory VARIANT=fuzz fuzz-run

FUZZ_SECONDS ?= 10
fuzz-run: $(FUZZERS)
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) tests/fuzz.sh $(B)/tests/fuzz

bench: ## the benchmarks of tests/bench, on this machine
	$(Q)$(MAKE) --no-print-directory VARIANT=release bench-run
.PHONY: bench-run
bench-run: $(PROGRAMS) $(BENCHES)
	$(Q)tests/bench.sh $(B)

# Every mechanism on every problem, ten rounds; tests/cheats/battery.h says what a breach is. Each of the two tables ends after
# CHEATS_SECONDS with what has been measured until then; 0: when it is complete, which takes hours.
CHEATS_SECONDS ?= 0
CHEATS_ROUNDS ?= 10
CHEATS_RUN = KCAST_BIN=$(CURDIR)/$(B)/bin KCAST_ROOT=$(CURDIR) KCAST_CHEATS_SECONDS=$(CHEATS_SECONDS) $(B)/tests/cheats/test_cpu table
cheats: $(PROGRAMS) $(B)/tests/cheats/test_cpu ## candidates that cheat on the CPU: a table of what they are called; CHEATS_SECONDS=600 each of two parts, CHEATS_ROUNDS=10
	$(Q)$(CHEATS_RUN) honest $(CHEATS_ROUNDS)
	$(Q)$(CHEATS_RUN) cpu $(CHEATS_ROUNDS)
.PHONY: cheats

# tests/soak/main.c says what it does; without a seed it draws one. With a seed SOAK_TLS=tls encrypts.
SOAK_SECONDS ?= 1800
SOAK_CLIENTS ?= 200
soak: $(PROGRAMS) $(SUPPORT) $(SOAK) ## many clients and random kills; SOAK_SECONDS=1800 SOAK_CLIENTS=200 SOAK_SEED=1
	$(Q)KCAST_VARIANT=$(VARIANT) KCAST_BIN=$(CURDIR)/$(B)/bin KCAST_BUILD=$(CURDIR)/$(B) $(SOAK) $(SOAK_SECONDS) $(SOAK_CLIENTS) $(SOAK_SEED) $(SOAK_TLS)
.PHONY: soak

# The tables of docs/evaluation.md, from the spaces of docs/h200/spaces. Kernel Tuner comes from PyPI; without it its arms are left out.
evaluation: ## the tables of docs/evaluation.md
	$(Q)$(MAKE) --no-print-directory VARIANT=release all
	$(Q)[ -x build/kernel-tuner/bin/python ] || python3 -m venv build/kernel-tuner
	$(Q)build/kernel-tuner/bin/pip install -q kernel_tuner==1.5.0 || rm -rf build/kernel-tuner
	$(Q)scripts/evaluate.sh build/release/bin --write
.PHONY: evaluation

# A tarball that runs on a GPU host with nothing of ours installed.
bundle: ## a tarball for a GPU host, with everything, build/kernelcast.tar.xz
	$(Q)$(MAKE) --no-print-directory VARIANT=release B=build/bundle BUNDLE=1 bundle-run
.PHONY: bundle bundle-run
bundle-run: $(PROGRAMS) $(GPU_TESTS)
	$(Q)scripts/bundle.sh $(B) build/kernelcast.tar.xz bench_gpu bench_verdicts battery agree stream originals

# A Debian package, build/kernelcast_VERSION_ARCHITECTURE.deb.
deb: ## a Debian package, build/kernelcast_*.deb
	$(Q)$(MAKE) --no-print-directory VARIANT=release all
	$(Q)scripts/deb.sh build
.PHONY: deb

# Sources that are data; tests/lint/layers.txt has the same.
FORMAT_NOT := tests/data tests/gpu/sealed tests/cheats/kit tests/cheats/cpu tests/cheats/honest problems
format: ## clang-format over all sources
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' $(FORMAT_NOT:%=':!%'))
lint: ## checks of format, dialect, layers and documents
	$(Q)python3 tests/lint/lint.py
	$(Q)$(MAKE) --no-print-directory all
	$(Q)KCAST_BIN=$(B)/bin tests/check-docs.sh

compilers: ## builds the programs by each supported compiler that is here, and says which are not
	$(Q)scripts/compilers.sh
.PHONY: compilers

# What editors and tools for C read: how each file is compiled.
TEST_SRC = $(sort $(shell find tests -name '*.c' -not -path 'tests/data/*' -not -path 'tests/cheats/*/*'))
comma := ,
space := $(subst ,, )
define newline


endef
compile_one = {"directory": "$(CURDIR)", "file": "$(1)", "command": "$(CC) $(strip $(CPPFLAGS) $(CFLAGS)) -c -o $(B)/$(1:.c=.o) $(1)"}
compile_commands.json: ## how each file is compiled, for editors
	$(file >$@,[$(subst }$(space){,}$(comma)$(newline){,$(foreach f,$(ALL_SRC) $(TEST_SRC),$(call compile_one,$(f))))])
	@:
.PHONY: compile_commands.json

# ---- for users ----

demo: ## installs what is missing, builds, searches the CPU sgemm problem, shows the result
	$(Q)scripts/install-deps.sh --run
	$(Q)$(MAKE) --no-print-directory VARIANT=release all
	$(Q)scripts/demo.sh build/release/bin

demo-llm: ## the same, shorter, with forecasts by a small language model on this machine
	$(Q)scripts/install-deps.sh --run
	$(Q)scripts/install-model.sh
	$(Q)$(MAKE) --no-print-directory VARIANT=release all
	$(Q)scripts/demo-llm.sh build/release/bin

install: ## programs, man pages, completion, units and sample configuration, to PREFIX=/usr/local and SYSCONFDIR=/etc, below DESTDIR=
	$(Q)$(MAKE) --no-print-directory VARIANT=release all
	$(Q)DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) SYSCONFDIR=$(SYSCONFDIR) scripts/install.sh build/release/bin

clean: ## removes build/
	rm -rf build

$(B)/client/problem/mutant_python.o: client/problem/mutant.py # which it carries
$(B)/executor/gpu/device/kernels.o: $(wildcard executor/gpu/device/*.cu) # which it carries
# What kcast-exec carries for the interpreter that records: a library that is loaded before everything else, and a script. That process
# is not ours, so no sanitizer can be in it.
RECORDER := $(B)/executor/recorder/recorder.so $(B)/executor/recorder/record.py
$(B)/executor/recorder/recorder.so: $(wildcard executor/recorder/*.[ch]) Makefile
	@mkdir -p $(@D)
	$(Q)echo "  CC   $@" && $(CC) -std=gnu11 -D_GNU_SOURCE -I. $(WARN) -O2 -fPIC -shared -fvisibility=hidden -o $@ $(filter %.c,$^) -ldl -lpthread
INLINE := $(wildcard executor/recorder/inline/*.hpp)
$(B)/executor/recorder/headers.py: $(INLINE) Makefile
	@mkdir -p $(@D)
	$(Q){ printf '\n\nHEADERS = {}\n' && for f in $(INLINE); do printf "HEADERS['%s'] = r'''" "$${f##*/}" && cat $$f && echo "'''" || exit 1; done; } >$@
$(B)/executor/recorder/record.py: $(addprefix executor/recorder/,begin.py graph.py candidate.py reference.py) $(B)/executor/recorder/headers.py $(addprefix executor/recorder/,inline.py record.py run.py serve.py)
	@mkdir -p $(@D)
	$(Q)cat $^ >$@
$(B)/executor/gpu/record/recorder.o: CPPFLAGS += -DRECORDER_LIBRARY_FILE='"$(B)/executor/recorder/recorder.so"' -DRECORDER_SCRIPT_FILE='"$(B)/executor/recorder/record.py"'
$(B)/executor/gpu/record/recorder.o: $(RECORDER)

-include $(shell find $(B) -name '*.d' 2>/dev/null)
