# Build, test and install the recorder, for Linux and (cross-built) for Windows.
#
#   make demo       see it work on this machine
#   make check      build for both hosts and run every test
#   make help       every target
#
# Sources are found, not listed: a new file in one of the layers' directories is built. A file whose
# name ends in _linux.c or _windows.c is built for that host only, every other file for both. Each
# layer becomes one static archive, and a test links its own layer and those below: a call upwards
# is a link error.
#
# The same rules serve every kind of build: VARIANT is linux, windows, asan, tsan, fuzz or clang,
# and all that it makes is in build/$(VARIANT)/. For the command line: CC, CFLAGS, LDFLAGS, PREFIX,
# DESTDIR, V=1 (show commands), T=model_ring (only unit tests test_model_ring*), FUZZ_SECONDS=20,
# BUILD=build/mine (a directory of your own, for make all and make unit).

VARIANT := linux
HOST    := $(if $(filter windows,$(VARIANT)),windows,linux)
OTHER   := $(filter-out $(HOST),linux windows)
BUILD   := build/$(VARIANT)
DEPS    := build/deps

PREFIX       := /usr/local
FUZZ_SECONDS := 20

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SECONDARY:
MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

# ---- layers: where each lives, and what it may call ----------------------------------------------

LAYERS := app list stopped process log counter dotnet etl etw perf jvm probe runtime ring host cli engine analysis options source triggers store export symbol unwind model base

dir_app      := recorder
dir_source   := recorder/source
dir_triggers := triggers
dir_store    := store
dir_export   := export
dir_symbol   := recorder/symbol
dir_unwind   := recorder/unwind
dir_model    := recorder/model
dir_base     := recorder/base
dir_list := recorder/source/list
dir_stopped := recorder/source/stopped
dir_process := recorder/source/process
dir_log := recorder/source/log
dir_counter := recorder/source/counter
dir_dotnet := recorder/source/dotnet
dir_etl := recorder/source/etl
dir_etw := recorder/source/etw
dir_perf := recorder/source/perf
dir_jvm := recorder/source/jvm
dir_probe := recorder/source/probe
dir_runtime := recorder/source/runtime
dir_ring := recorder/source/ring
dir_host := recorder/source/host
dir_cli := recorder/cli
dir_engine := recorder/engine
dir_analysis := recorder/analysis
dir_options := recorder/options

# In link order: callers before callees.
uses_base     := base
uses_model    := model base
uses_unwind   := unwind model base
uses_symbol   := symbol model base
uses_source   := $(filter-out app,$(LAYERS))
uses_triggers := triggers model base
uses_store    := store model base
uses_export   := export model base
uses_app      := $(LAYERS)
uses_list := $(LAYERS)
uses_stopped := $(LAYERS)
uses_process := $(LAYERS)
uses_log := $(LAYERS)
uses_counter := $(LAYERS)
uses_dotnet := $(LAYERS)
uses_etl := $(LAYERS)
uses_etw := $(LAYERS)
uses_perf := $(LAYERS)
uses_jvm := $(LAYERS)
uses_probe := $(LAYERS)
uses_runtime := $(LAYERS)
uses_ring := $(LAYERS)
uses_host := $(LAYERS)
uses_cli := $(LAYERS)
uses_engine := $(LAYERS)
uses_analysis := $(LAYERS)
uses_options := $(LAYERS)

# ---- compiler ------------------------------------------------------------------------------------

CC_linux   := gcc
CC_windows := x86_64-w64-mingw32-gcc
CC_fuzz    := clang
CC_clang   := clang
ifeq ($(origin CC),default)
CC := $(or $(CC_$(VARIANT)),$(CC_$(HOST)))
endif
CFLAGS := -O2 -g
EXE    := $(if $(filter windows,$(HOST)),.exe)

WARNINGS     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion
flags_common := -std=c11 -fno-omit-frame-pointer -iquote . -iquote recorder

flags_linux   := -D_GNU_SOURCE -pthread
libs_linux    := -lsqlite3 -lz -liberty -lpcre2-8 -lm
# libdw is not linked: symbol/debug_info_linux.c loads it when somebody wants source lines.
headers_linux := elfutils/libdw.h

# dbghelp reads no DWARF 5, hence -gdwarf-4 (after CFLAGS, to win over its -g).
flags_windows := -D__USE_MINGW_ANSI_STDIO=1 -DPCRE2_STATIC -isystem $(DEPS)/windows/include -gdwarf-4
link_windows  := -static -L$(DEPS)/windows/lib
libs_windows  := -lsqlite3 -lz -liberty -lpcre2-8 \
                 -ladvapi32 -ltdh -lpdh -lwevtapi -ldbghelp -lpsapi -lws2_32 -lntdll -lbcrypt -lpthread

undefined      := undefined -fno-sanitize-recover=undefined
variant_asan   := -fsanitize=address,$(undefined)
variant_tsan   := -fsanitize=thread
variant_fuzz   := -fsanitize=fuzzer-no-link,address,$(undefined)
variant_clang  := -O0 -g0 # a second opinion: compiled, never linked

flags   = $(CFLAGS) $(flags_$(HOST)) $(variant_$(VARIANT))
compile = $(CC) $(flags_common) $(WARNINGS) $(CPPFLAGS) $(flags)
link    = $(CC) $(flags) $(link_$(HOST)) $(LDFLAGS) -Wl,--start-group
libs    = -Wl,--end-group -Wl,--as-needed $(libs_$(HOST)) $(LDLIBS)

# Short lines instead of commands, unless V=1.
Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(2)')

# ---- files ---------------------------------------------------------------------------------------

srcs = $(filter-out %_$(OTHER).c,$(wildcard $(1)/*.c))

srcs_app := $(filter-out recorder/main.c,$(call srcs,recorder))
$(foreach l,$(filter-out app,$(LAYERS)),$(eval srcs_$(l) := $(call srcs,$(dir_$(l)))))

# The report's page, style and scripts stand in the program as text.
report_files := $(BUILD)/gen/report_files.c
srcs_export  += $(report_files)

tests    := $(filter tests/test_$(T)%,$(call srcs,tests))
targets  := $(call srcs,tests/programs)
fuzzers  := $(call srcs,tests/fuzz)
helpers  := $(call srcs,tests/support)
sources  := recorder/main.c $(foreach l,$(LAYERS),$(srcs_$(l))) $(tests) $(targets) $(fuzzers) \
            $(helpers)

# What tests share is an archive too; these two are linked by name.
srcs_support := $(filter-out %/alloc_walk.c %/fuzz_main.c,$(helpers))

objs     = $(1:%.c=$(BUILD)/obj/%.o)
objects := $(call objs,$(sources))

# Programs, by kind: ours, the unit tests, those that tests record, the fuzz targets.
recorder        := $(BUILD)/recorder$(EXE)
test_programs   := $(tests:tests/%.c=$(BUILD)/tests/%$(EXE))
target_programs := $(targets:tests/%.c=$(BUILD)/%$(EXE))
# Stand-ins for DLLs of Windows; tests put them into a Wine prefix of their own.
test_dlls       := $(if $(EXE),$(patsubst tests/%.c,$(BUILD)/%.dll,$(wildcard tests/dll/*.c)))

fuzz_programs   := $(fuzzers:tests/%.c=$(BUILD)/%)

# "model_ring" is a name in layer model; archives of what a name may call:
archives = $(patsubst %,$(BUILD)/lib/%.a,$(uses_$(firstword $(subst _, ,$(1)))))

# ---- rules ---------------------------------------------------------------------------------------

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/headers
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(compile) $(WERROR) -MMD -MP -c -o $@ $<

# Files as arrays of bytes; svg.js is report_svg_js. The report's modules are joined there: report_files.h.
$(report_files): $(sort $(wildcard export/report/*)) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "export/report_files.h"'; for file in $(filter-out Makefile,$^); do \
	    printf 'const char report_%s[] = {\n' $$(basename $$file | tr . _); \
	    sed '/^import /d; s/^export //' $$file | od -An -v -to1 | sed "s/ \([0-7]*\)/'\\\\\1',/g"; \
	    echo '0};'; done; } >$@

# Removed first: ar would keep the objects of source files that are gone.
$(BUILD)/lib/%.a: $$(call objs,$$(srcs_$$*)) $(BUILD)/files
	@mkdir -p $(@D) && rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(recorder): $(BUILD)/obj/recorder/main.o $(call archives,app)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $^ $(libs)

# A unit test. Its allocations, and those of the layers under it, go through alloc_walk.c.
$(BUILD)/tests/test_%$(EXE): $(BUILD)/obj/tests/test_%.o $(BUILD)/obj/tests/support/alloc_walk.o \
                             $(BUILD)/lib/support.a $$(call archives,$$*)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o $@ $^ $(libs) -lcmocka

# A whole program that a test records or has write something; it may use any layer. burn uses none:
# `make demo` builds it on machines that have nothing for tests.
$(BUILD)/programs/%$(EXE): $(BUILD)/obj/tests/programs/%.o \
                           $$(if $$(filter-out burn,$$*),$(BUILD)/lib/support.a $$(call archives,app))
	@mkdir -p $(@D)
	$(Q)$(link) -o $@ $^ $(libs)

$(BUILD)/dll/%.dll: tests/dll/%.c $(BUILD)/flags | $(BUILD)/headers
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(compile) -Wno-pedantic $(WERROR) -shared -static -MMD -MP -o $@ $<

# A fuzz target: with clang's engine, elsewhere with a main() that replays files.
engine := $(if $(filter fuzz,$(VARIANT)),-fsanitize=fuzzer,$(BUILD)/obj/tests/support/fuzz_main.o)
$(BUILD)/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(filter %.o,$(engine)) $$(call archives,$$*)
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $(filter -%,$(engine)) -o $@ $^ $(libs)

# Two files that are rewritten only when they would differ: with other flags every object is built
# again, with a source file more or less every archive.
$(BUILD)/flags: text = $(compile)
$(BUILD)/files: text = $(foreach l,$(LAYERS) support,$(srcs_$(l)))
$(BUILD)/flags $(BUILD)/files: FORCE
	@mkdir -p $(@D)
	@echo '$(text)' | cmp -s - $@ || echo '$(text)' > $@

# Once per build: is there what every file needs?
$(BUILD)/headers:
	@mkdir -p $(@D)
	@printf '#include <%s>\n' stdio.h sqlite3.h zlib.h libiberty/demangle.h pcre2.h $(headers_$(HOST)) | \
	    $(CC) $(flags_$(HOST)) -DPCRE2_CODE_UNIT_WIDTH=8 -E - >/dev/null 2>$@.log || { tail -n 3 $@.log >&2; \
	    echo "$(VARIANT): no compiler ($(CC)), or no header of a library: run 'make deps'" >&2; \
	    exit 1; }
	@touch $@

-include $(objects:.o=.d) $(test_dlls:.dll=.d)

# ---- targets -------------------------------------------------------------------------------------

.PHONY: FORCE all windows programs objects goals deps deps-linux demo unit check check-asan check-tsan \
        bench bench-stacks bench-beside fuzz install uninstall clean distclean help

all: $(recorder) ## build/linux/recorder (the default)

windows: ## build/windows/recorder.exe: one static file, cross-built by mingw-w64
	$(Q)$(MAKE) VARIANT=windows all

programs: $(recorder) $(test_programs) $(target_programs) $(test_dlls)
objects: $(objects)
goals: $(GOALS)

deps: ## install and build what check, fuzz and the Windows build need; quick when all is there
	@tests/support/deps.sh all

deps-linux: ## the small part of it: what demo and the Linux program need
	@tests/support/deps.sh linux

demo: deps-linux ## record this machine under load; two incidents, their stacks and exports
	$(Q)$(MAKE) goals GOALS='$(recorder) $(BUILD)/programs/burn'
	@tests/support/demo.sh

# What unit tests are called in build $(1), or under Wine; all of them or those named $(2)*.
names = $(wildcard tests/test_$(or $(2),$(T))*.c)
built = $(patsubst tests/%.c,build/$(1)/tests/%,$(filter-out %_windows.c,$(names)))
wined = $(patsubst tests/%.c,build/windows/tests/%.exe,$(filter-out %_linux.c,$(names)))

unit: ## the Linux unit tests only; T=model_ring: only those named so
	$(Q)$(MAKE) goals GOALS='$(test_programs)'
	@tests/run.sh $(test_programs)

check: deps ## build for both hosts without a warning, run every test (Windows ones under Wine)
	$(Q)$(MAKE) WERROR=-Werror VARIANT=clang objects
	$(Q)$(MAKE) WERROR=-Werror programs
	$(Q)$(MAKE) WERROR=-Werror VARIANT=windows programs
	@tests/support/imports.sh build/windows/recorder.exe
	@tests/run.sh $(call built,linux) $(wined) $(sort $(wildcard tests/cli/*.sh))

asan_programs = $(call built,asan) $(fuzzers:tests/%.c=build/asan/%)
check-asan: deps ## unit tests, fuzz corpora under the address and undefined behaviour sanitizers
	$(Q)$(MAKE) VARIANT=asan goals GOALS='$(asan_programs)'
	@tests/run.sh $(asan_programs)

tsan_programs = $(foreach t,model_ring model_queue symbol_worker app_engine app_load,$(call built,tsan,$(t)))
check-tsan: deps ## ring, queue and engine tests under the thread sanitizer
	$(Q)$(MAKE) VARIANT=tsan goals GOALS='$(tsan_programs)'
	@tests/run.sh $(tsan_programs)

bench: deps ## measure: tests/bench/run.sh
	$(Q)$(MAKE) programs
	@tests/bench/run.sh

bench-stacks: $(recorder) ## how many stacks of six busy programs are complete, and their cost: tests/bench/stacks.sh
	@tests/bench/stacks.sh

bench-beside: $(recorder) ## inclusive shares beside perf's, minutes: tests/bench/beside_perf.sh
	@tests/bench/beside_perf.sh

# Finds go to build/fuzz/, never into the repository: a crash is made a corpus file by hand.
fuzz: deps ## run every fuzz target for FUZZ_SECONDS, starting from tests/fuzz/corpus/
	$(Q)$(MAKE) VARIANT=fuzz goals GOALS='$(fuzz_programs:$(BUILD)/%=build/fuzz/%)'
	@for name in $(fuzzers:tests/fuzz/%.c=%); do \
	    mkdir -p build/fuzz/corpus/$$name; echo "  FUZZ   $$name"; \
	    build/fuzz/fuzz/$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -verbosity=0 \
	        -print_final_stats=1 -artifact_prefix=build/fuzz/$$name- build/fuzz/corpus/$$name \
	        $$(ls -d tests/fuzz/corpus/$$name 2>/dev/null) </dev/null || exit 1; \
	done

install: all ## into $(PREFIX) (/usr/local), under DESTDIR if that is set
	install -D -m 755 $(recorder) $(DESTDIR)$(PREFIX)/bin/recorder
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/recorder conf/recorder.conf
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/recorder/examples conf/examples/*.conf

uninstall: ## remove what install put there; recordings and /etc are left alone
	rm -f $(DESTDIR)$(PREFIX)/bin/recorder
	rm -rf $(DESTDIR)$(PREFIX)/share/recorder

clean: ## remove what was built, except the libraries that deps built
	rm -rf $(filter-out $(DEPS),$(wildcard build/*))

distclean: ## remove build/ whole
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
