# Build, test and install the recorder, for Linux and (cross-built) for Windows.
#
#   make demo       see it work on this machine
#   make check      build for both hosts and run every test
#   make help       every target
#
# Sources are found, not listed: a new file in a room's folder is built. A file whose
# name ends in _linux.c or _windows.c is built for that host only, every other file for both. Each
# room becomes one static archive, and a test links its own room and what that uses: any other call
# is a link error.
#
# The same rules serve every kind of build: VARIANT is linux, windows, asan, tsan, fuzz, coverage or
# clang, and all that it makes is in build/$(VARIANT)/. For the command line: CC, CFLAGS, LDFLAGS,
# PREFIX, DESTDIR, V=1 (show commands), T=model/ring (only unit tests model/ring*), FUZZ_SECONDS=20,
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

# ---- rooms: the folder of that name, and which others it may include and call --------------------

# Lower ones first: a room uses rooms that stand above its own line.
uses_base     :=
uses_model    := base
uses_net      := base
uses_unwind   := base model
uses_managed  := base unwind
uses_hotspot  := base model managed
uses_python   := base unwind managed
uses_node     := base unwind managed
uses_symbol   := base model
uses_triggers := base model
uses_store    := base model
uses_export   := base model
uses_source   := base model symbol
uses_host     := base model
uses_ring     := base
uses_runtime  := base model source
uses_probe    := base model symbol source host ring runtime
uses_jvm      := base model symbol source host runtime
uses_perf     := base model symbol unwind managed hotspot python node source host ring probe
uses_perf     += jvm
uses_etw      := base model symbol source host runtime
uses_etl      := base symbol etw
uses_dotnet   := base model managed symbol source host runtime probe etw
uses_counter  := base model net source host runtime
uses_log      := base model source
uses_process  := base model source host
uses_stopped  := base model unwind python symbol source host ring perf
uses_dump     := base model unwind managed hotspot python node symbol host perf stopped
uses_perfdata := base model unwind symbol source host ring probe perf
uses_stackfile := base model source etw
uses_list     := base model symbol source host runtime probe jvm perf etw etl dotnet counter log
uses_list     += process stopped perfdata stackfile ring
uses_analysis := base model triggers managed
uses_options  := base model
uses_engine   := base model symbol triggers store export source
uses_http     := base model store export engine
uses_ship     := base model net store export
uses_screen   := base model
uses_listing  := base model triggers source export analysis options
uses_fleet    := base model net export ship listing options
uses_cli      := base model symbol triggers store export source host dotnet counter stopped dump
uses_cli      += list analysis options engine http ship screen listing stackfile fleet

ROOMS := base model net unwind managed hotspot python node symbol triggers store export source \
         host ring runtime probe jvm perf etw etl dotnet counter log process stopped dump perfdata \
         stackfile list analysis options engine http ship screen listing fleet cli

# Linked are callers before callees: a room, what it uses, and what that uses.
reverse = $(if $(1),$(call reverse,$(wordlist 2,$(words $(1)),$(1))) $(firstword $(1)))
LINKED := $(call reverse,$(ROOMS))
$(foreach r,$(ROOMS),$(eval dir_$r := $(firstword $(wildcard \
	recorder/$r recorder/managed/$r recorder/source/$r $r))))
$(foreach r,$(ROOMS),$(eval reach_$r := $(sort $r $(foreach u,$(uses_$r),$(reach_$u)))))

# ---- compiler ------------------------------------------------------------------------------------

CC_linux   := gcc
CC_windows := x86_64-w64-mingw32-gcc
CC_fuzz    := clang
CC_clang   := clang
CC_coverage := clang
ifeq ($(origin CC),default)
CC := $(or $(CC_$(VARIANT)),$(CC_$(HOST)))
endif
CFLAGS := -O2 -g
EXE    := $(if $(filter windows,$(HOST)),.exe)

WARNINGS     := -Wall -Wextra -Wpedantic -Wshadow -Wconversion
flags_common := -std=c11 -fno-omit-frame-pointer -iquote . -iquote recorder

flags_linux   := -D_GNU_SOURCE -pthread -fPIE
link_linux    := -pie -Wl,-z,relro,-z,now,-z,noexecstack
libs_linux    := -lsqlite3 -lz -liberty -lpcre2-8 -lm
# Not linked: symbol/debug_info_linux.c loads libdw when somebody wants source lines,
# http/libmicrohttpd_linux.c its library for HTTP, screen/ncurses_linux.c its one for a screen.
headers_linux := elfutils/libdw.h microhttpd.h ncurses.h

# dbghelp reads no DWARF 5, hence -gdwarf-4 (after CFLAGS, to win over its -g).
flags_windows := -D__USE_MINGW_ANSI_STDIO=1 -DPCRE2_STATIC -isystem $(DEPS)/windows/include \
                 -gdwarf-4
link_windows  := -static -L$(DEPS)/windows/lib -Wl,--dynamicbase,--high-entropy-va,--nxcompat
libs_windows  := -lsqlite3 -lz -liberty -lpcre2-8 \
                 -ladvapi32 -ltdh -lpdh -lwevtapi -ldbghelp -lpsapi -lws2_32 -lntdll -lbcrypt \
                 -lpthread

# tests/support/hardening.sh looks for these in the programs. gcc for Windows touches each page of a
# large frame in any case, and has no control flow guard.
checked         := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -fstack-protector-strong
variant_linux   := $(checked) -fcf-protection -fstack-clash-protection
variant_windows := $(checked)

undefined      := undefined -fno-sanitize-recover=undefined
# Half the time to compile; reports still have functions and lines.
variant_asan   := -O1 -g1 -fsanitize=address,$(undefined)
variant_tsan   := -O1 -g1 -fsanitize=thread
variant_fuzz   := -fsanitize=fuzzer-no-link,address,$(undefined)
variant_coverage := -fsanitize=fuzzer-no-link -fprofile-instr-generate -fcoverage-mapping
variant_clang  := -O0 -g0 # a second opinion: compiled, never linked

flags   = $(CFLAGS) $(flags_$(HOST)) $(variant_$(VARIANT))
compile = $(CC) $(flags_common) $(WARNINGS) $(CPPFLAGS) $(flags)
link    = $(CC) $(flags) $(link_$(HOST)) $(LDFLAGS)
libs    = -Wl,--as-needed $(libs_$(HOST)) $(LDLIBS)

# Short lines instead of commands, unless V=1.
Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(2)')

# ---- files ---------------------------------------------------------------------------------------

srcs = $(filter-out %_$(OTHER).c,$(wildcard $(1)/*.c))

$(foreach r,$(ROOMS),$(eval srcs_$r := $(call srcs,$(dir_$r))))

# The report's page, style and scripts stand in the program as text.
report_files := $(BUILD)/gen/report_files.c
srcs_export  += $(report_files)
# So do the topics of help.
help_topics  := $(BUILD)/gen/help_topics.c
srcs_cli     += $(help_topics)

tests    := $(filter tests/unit/$(T)%,$(call srcs,tests/unit/*))
targets  := $(call srcs,tests/programs) $(call srcs,tests/bench)
fuzzers  := $(call srcs,tests/fuzz)
helpers  := $(call srcs,tests/support)
sources  := recorder/main.c $(foreach r,$(ROOMS),$(srcs_$r)) $(tests) $(targets) $(fuzzers) \
            $(helpers)

# What tests share is an archive too; these two are linked by name.
srcs_support := $(filter-out %/alloc_walk.c %/fuzz_main.c,$(helpers))

objs     = $(1:%.c=$(BUILD)/obj/%.o)
objects := $(call objs,$(sources))

# Programs, by kind: ours, the unit tests, those that tests record, the fuzz targets.
recorder        := $(BUILD)/recorder$(EXE)
test_programs   := $(tests:%.c=$(BUILD)/%$(EXE))
target_programs := $(patsubst %.c,$(BUILD)/programs/%$(EXE),$(notdir $(targets)))
# Stand-ins for DLLs of Windows; tests put them into a Wine prefix of their own.
test_dlls       := $(if $(EXE),$(patsubst tests/%.c,$(BUILD)/%.dll,$(wildcard tests/dll/*.c)))

# What run --heap preloads into programs: no room of the recorder, and never with sanitizers.
heap_library    := $(if $(EXE),,$(BUILD)/librecorder-heap.so)

fuzz_programs   := $(fuzzers:tests/%.c=$(BUILD)/%)

# What something in a room links.
archives = $(patsubst %,$(BUILD)/lib/%.a,$(filter $(reach_$(1)),$(LINKED)))
room_of  = $(patsubst %/,%,$(dir $(1)))

# ---- rules ---------------------------------------------------------------------------------------

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/headers
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(compile) $(WERROR) -MMD -MP -c -o $@ $<

# Files as arrays of bytes; svg.js is report_svg_js. The report joins its modules: report_files.h.
bytes = od -An -v -to1 | sed "s/ \([0-7]*\)/'\\\\\1',/g"

$(report_files): $(sort $(wildcard export/report/*)) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "export/report_files.h"'; for file in $(filter-out Makefile,$^); do \
	    printf 'const char report_%s[] = {\n' $$(basename $$file | tr . _); \
	    sed '/^import /d; s/^export //' $$file | $(bytes); \
	    echo '0};'; done; } >$@

# thread-time.md is topic_thread_time.
$(help_topics): $(sort $(wildcard recorder/cli/help/*.md)) Makefile
	@mkdir -p $(@D)
	@{ echo '#include "cli/help.h"'; for file in $(filter-out Makefile,$^); do \
	    printf 'const char topic_%s[] = {\n' $$(basename $$file .md | tr - _); \
	    <$$file $(bytes); echo '0};'; done; } >$@

# Removed first: ar would keep the objects of source files that are gone.
$(BUILD)/lib/%.a: $$(call objs,$$(srcs_$$*)) $(BUILD)/files
	@mkdir -p $(@D) && rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

$(recorder): $(BUILD)/obj/recorder/main.o $(call archives,cli)
	$(call say,LINK,$@)
	$(Q)$(link) -o $@ $^ $(libs)

$(heap_library): $(addprefix recorder/,preload/heap.c source/ring/heap_ring.h) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC_linux) -std=c11 -D_GNU_SOURCE -iquote recorder $(WARNINGS) -Wno-pedantic \
	    $(WERROR) $(CFLAGS) -fPIC -fvisibility=hidden -shared \
	    -Wl,-z,relro,-z,now,-z,noexecstack -o $@ $<

# A unit test of a room. All allocations, the room's and those below it, go through alloc_walk.c.
$(BUILD)/tests/unit/%$(EXE): $(BUILD)/obj/tests/unit/%.o $(BUILD)/obj/tests/support/alloc_walk.o \
                             $(BUILD)/lib/support.a $$(call archives,$$(call room_of,$$*))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc -o $@ $^ -lcmocka $(libs)

# A whole program that a test records or has write something; it may use any room. burn uses none:
# `make demo` builds it on machines that have nothing for tests.
$(BUILD)/programs/%$(EXE): $(BUILD)/obj/tests/programs/%.o \
                           $$(if $$(filter-out burn,$$*),$(BUILD)/lib/support.a \
                               $$(call archives,cli))
	@mkdir -p $(@D)
	$(Q)$(link) -o $@ $^ $(libs)
$(BUILD)/programs/%$(EXE): $(BUILD)/obj/tests/bench/%.o $(BUILD)/lib/support.a \
                           $$(call archives,cli)
	@mkdir -p $(@D)
	$(Q)$(link) -o $@ $^ $(libs)

$(BUILD)/dll/%.dll: tests/dll/%.c $(BUILD)/flags | $(BUILD)/headers
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(compile) -Wno-pedantic $(WERROR) -shared -static -MMD -MP -o $@ $<

# A fuzz target of a room, fuzz_ROOM_NAME: with clang's engine, or a main() that replays files.
engine := $(if $(filter fuzz coverage,$(VARIANT)),-fsanitize=fuzzer,\
            $(BUILD)/obj/tests/support/fuzz_main.o)
$(BUILD)/fuzz/fuzz_%: $(BUILD)/obj/tests/fuzz/fuzz_%.o $(filter %.o,$(engine)) \
                      $(BUILD)/lib/support.a \
                      $$(call archives,$$(firstword $$(subst _, ,$$*)))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(link) $(filter -%,$(engine)) -o $@ $^ -lcmocka $(libs)

# Two files that are rewritten only when they would differ: with other flags every object is built
# again, with a source file more or less every archive.
$(BUILD)/flags: text = $(compile)
$(BUILD)/files: text = $(foreach r,$(ROOMS) support,$(srcs_$r))
$(BUILD)/flags $(BUILD)/files: FORCE
	@mkdir -p $(@D)
	@echo '$(text)' | cmp -s - $@ || echo '$(text)' > $@

# Once per build: is there what every file needs?
$(BUILD)/headers:
	@mkdir -p $(@D)
	@printf '#include <%s>\n' stdio.h sqlite3.h zlib.h libiberty/demangle.h pcre2.h \
	    $(headers_$(HOST)) | \
	    $(CC) $(flags_$(HOST)) -DPCRE2_CODE_UNIT_WIDTH=8 -E - >/dev/null 2>$@.log || { \
	    tail -n 3 $@.log >&2; \
	    echo "$(VARIANT): no compiler ($(CC)), or no header of a library: run" \
	        "'make deps$(if $(filter linux,$(VARIANT)),-linux)'" >&2; \
	    exit 1; }
	@touch $@

-include $(objects:.o=.d) $(test_dlls:.dll=.d)

# ---- targets -------------------------------------------------------------------------------------

.PHONY: FORCE all windows programs objects goals deps deps-linux demo unit check check-asan \
        check-tsan check-bare check-vm bench bench-strict bench-compare bench-stacks \
        bench-beside bench-heap bench-service fuzz fuzz-coverage \
        install uninstall clean distclean help deb rpm tarball zip msi package check-package

all: $(recorder) $(heap_library) ## build/linux/recorder (the default)

windows: ## build/windows/recorder.exe: one static file, cross-built by mingw-w64
	$(Q)$(MAKE) VARIANT=windows all

programs: $(recorder) $(heap_library) $(test_programs) $(target_programs) $(test_dlls)
objects: $(objects)
goals: $(GOALS)

deps: ## install and build what check, fuzz and the Windows build need; quick when all is there
	@tests/support/deps.sh all

deps-linux: ## the small part of it: what demo and the Linux program need
	@tests/support/deps.sh linux

jdks: ## JDK 8 to 28 beside the installed ones, for the tests of Java (2.4 GB, root, once)
	@tests/support/jdks.sh

interpreters: ## CPython 3.14, 3.15 and a stripped Node.js beside the installed ones (0.4 GB, root)
	@tests/support/interpreters.sh

demo: deps-linux ## record this machine under load; two incidents, their stacks and exports
	$(Q)$(MAKE) goals GOALS='$(recorder) $(BUILD)/programs/burn'
	@tests/support/demo.sh

# What unit tests are called in build $(1), or under Wine; all of them or those named $(2)*.
names = $(filter tests/unit/$(or $(2),$(T))%,$(wildcard tests/unit/*/*.c))
built = $(patsubst %.c,build/$(1)/%,$(filter-out %_windows.c,$(names)))
wined = $(patsubst %.c,build/windows/%.exe,$(filter-out %_linux.c,$(names)))

unit: ## the Linux unit tests only; T=model/ring: only those named so
	$(Q)$(if $(tests),,echo "no test in tests/unit is named $(T)*" >&2; exit 1)
	$(Q)$(MAKE) goals GOALS='$(test_programs)'
	@tests/run.sh $(test_programs)

check: deps ## build for both hosts without a warning, run every test (Windows ones under Wine)
	$(Q)$(MAKE) WERROR=-Werror VARIANT=clang objects
	$(Q)$(MAKE) WERROR=-Werror programs
	$(Q)$(MAKE) WERROR=-Werror VARIANT=windows programs
	@tests/support/imports.sh build/windows/recorder.exe
	@tests/support/hardening.sh build/linux/recorder build/windows/recorder.exe
	@tests/run.sh tests/rooms.sh $(call built,linux) $(wined) $(sort $(wildcard tests/cli/*.sh))

# tests/cli/whole_linux.sh and what it starts, of build $(1).
whole = $(patsubst %,build/$(1)/%,recorder librecorder-heap.so programs/burn programs/hop_linux \
        programs/flood_linux programs/dotnet_flood_linux programs/hsperf_flood_linux)

asan_programs = $(call built,asan) $(fuzzers:tests/%.c=build/asan/%)
check-asan: deps ## unit tests, fuzz corpora and a recording under the address, undefined sanitizers
	$(Q)$(MAKE) VARIANT=asan goals GOALS='$(asan_programs) $(call whole,asan)'
	@BUILD=build/asan tests/run.sh $(asan_programs) tests/cli/whole_linux.sh

tsan_tests    = model/ring model/queue symbol/worker engine/engine engine/file engine/load
tsan_programs = $(foreach t,$(tsan_tests),$(call built,tsan,$(t)))
check-tsan: deps ## ring, queue and engine tests, a recording under the thread sanitizer
	$(Q)$(MAKE) VARIANT=tsan goals GOALS='$(tsan_programs) $(call whole,tsan)'
	@BUILD=build/tsan tests/run.sh $(tsan_programs) tests/cli/whole_linux.sh

check-bare: deps ## demo, install and deps in a minimal Debian, minutes: tests/support/check_bare.sh
	@tests/support/check_bare.sh

check-vm: all ## what needs a kernel of its own, in qemu, minutes: tests/vm/run.sh
	@tests/vm/run.sh

bench: deps ## measure: tests/bench/run.sh
	$(Q)$(MAKE) programs
	@tests/bench/run.sh

bench-strict: export BENCH_STRICT = 1
bench-strict: bench ## the same, and a missed goal is an error

bench-compare: deps ## what moved since OLD=COMMIT, beyond noise: tests/bench/compare.py
	@python3 tests/bench/compare.py $(OLD) $(or $(NEW),HEAD) $(ROUNDS)

bench-stacks: $(recorder) ## complete stacks of six busy programs, and their cost
	@tests/bench/stacks.sh

bench-beside: $(recorder) ## inclusive shares beside perf's, minutes: tests/bench/beside_perf.sh
	@tests/bench/beside_perf.sh

bench-heap: $(recorder) ## run --heap beside other samplers, and what servers pay, minutes
	$(Q)$(MAKE) goals GOALS='$(heap_library) $(BUILD)/programs/heap_linux'
	@tests/bench/heap.sh

bench-service: $(recorder) ## what Flask, Django and node pay at 99 Hz: CPU time a request, minutes
	@python3 tests/bench/service.py $(recorder) $(ROUNDS)

# Finds go to build/fuzz/, never into the repository: a crash is made a corpus file by hand.
fuzz: deps ## run every fuzz target for FUZZ_SECONDS, starting from tests/fuzz/corpus/
	$(Q)$(MAKE) VARIANT=fuzz goals GOALS='$(fuzz_programs:$(BUILD)/%=build/fuzz/%)'
	@for name in $(fuzzers:tests/fuzz/%.c=%); do \
	    mkdir -p build/fuzz/corpus/$$name; echo "  FUZZ   $$name"; \
	    build/fuzz/fuzz/$$name -max_total_time=$(FUZZ_SECONDS) -timeout=10 -verbosity=0 \
	        -print_final_stats=1 -artifact_prefix=build/fuzz/$$name- build/fuzz/corpus/$$name \
	        $$(ls -d tests/fuzz/corpus/$$name 2>/dev/null) </dev/null || exit 1; \
	done

fuzz_chosen = $(filter tests/fuzz/fuzz_$(T)%,$(fuzzers))
fuzz-coverage: deps ## which lines fuzz targets reach in FUZZ_SECONDS each, by file; T=hotspot
	$(Q)$(MAKE) VARIANT=coverage goals \
	    GOALS='$(fuzz_chosen:tests/%.c=build/coverage/%)'
	@FUZZ_SECONDS=$(FUZZ_SECONDS) tests/support/fuzz_coverage.sh \
	    $(fuzz_chosen:tests/fuzz/%.c=%)

# The manual pages are the program's own text. Cross-built, it cannot run here: give a native one,
# NATIVE=build/linux/recorder; the pages are the same.
NATIVE = $(recorder)
share  = $(DESTDIR)$(PREFIX)/share
install: all ## into $(PREFIX) (/usr/local), under DESTDIR if that is set
	install -D -m 755 $(recorder) $(DESTDIR)$(PREFIX)/bin/recorder
	ln -sf recorder $(DESTDIR)$(PREFIX)/bin/recorder-dtrace
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/lib/recorder $(heap_library)
	install -D -m 644 -t $(share)/recorder conf/recorder.conf
	install -D -m 644 -t $(share)/recorder/examples conf/examples/*.conf
	install -D -m 644 -t $(share)/recorder/requests conf/requests/*
	for unit in conf/recorder.service conf/recorder-incident@.service; do \
	    mkdir -p $(DESTDIR)$(PREFIX)/lib/systemd/system && \
	    sed 's:/usr/bin/:$(PREFIX)/bin/:' $$unit \
	        >$(DESTDIR)$(PREFIX)/lib/systemd/system/$${unit#conf/} || exit 1; done
	install -D -m 644 conf/completion/recorder.bash \
	    $(share)/bash-completion/completions/recorder
	install -D -m 644 -t $(share)/zsh/site-functions conf/completion/_recorder
	install -D -m 644 -t $(share)/fish/vendor_completions.d conf/completion/recorder.fish
	pages=$$(mktemp -d) && trap "rm -rf $$pages" EXIT && $(NATIVE) help --man $$pages && \
	    cd $$pages && for page in man*/*; do \
	    install -D -m 644 $$page $(abspath $(share))/man/$$page || exit 1; done

uninstall: ## remove what install put there; recordings and /etc are left alone
	rm -f $(DESTDIR)$(PREFIX)/bin/recorder $(DESTDIR)$(PREFIX)/bin/recorder-dtrace \
	    $(share)/bash-completion/completions/recorder \
	    $(share)/zsh/site-functions/_recorder $(share)/fish/vendor_completions.d/recorder.fish \
	    $(share)/man/man1/recorder.1 $(share)/man/man1/recorder-*.1 \
	    $(share)/man/man5/recorder.conf.5 $(share)/man/man7/recorder-*.7
	rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system/recorder.service \
	    $(DESTDIR)$(PREFIX)/lib/systemd/system/recorder-incident@.service
	rm -rf $(share)/recorder $(DESTDIR)$(PREFIX)/lib/recorder

# The same bytes in any folder: conf/package.sh. gcc writes the real names of headers' folders,
# which differ where build/deps is a link.
same_names := -ffile-prefix-map=$(CURDIR)=. \
    $(patsubst %,-ffile-prefix-map=%=./$(DEPS),$(realpath $(DEPS)))
packaged = $(MAKE) CFLAGS='-O2 -g $(same_names)'
for_windows = $(packaged) VARIANT=windows BUILD=build/package-windows \
    LDFLAGS=-Wl,--no-insert-timestamp
deb: ## build/packages/recorder_VERSION_amd64.deb
	+$(Q)$(packaged) BUILD=build/package KIND=deb package

# For other systems, and older ones, from glibc 2.28: against the C library of Debian 11 (2.31),
# whose headers and libraries deps.sh unpacks, less the functions with newer versions in it than
# 2.28's; of this system are the other headers and the static libraries.
old      = $(CURDIR)/$(DEPS)/glibc
multi    = x86_64-linux-gnu
old_libs = $(old)/usr/lib/$(multi)
, := ,
too_new  = exp log log2 pow gettid
portable = $(MAKE) BUILD=build/package-portable CFLAGS='-O2 -g $(same_names) \
    --sysroot=$(old) -idirafter /usr/include -idirafter /usr/include/$(multi)' \
    LDFLAGS='-B$(old_libs) -L$(old_libs) -L$(old)/lib/$(multi) \
    $(addprefix -Wl$(,)--wrap=,$(too_new))' \
    libs_linux='conf/glibc_2_28.c \
    $(addprefix /usr/lib/$(multi)/lib,sqlite3.a z.a iberty.a pcre2-8.a) \
    -lm -ldl -lpthread'

# Packages that are built in one folder: one after the other.
rpm: | $(filter tarball,$(MAKECMDGOALS))
msi: | $(filter zip,$(MAKECMDGOALS))
tarball: ## build/packages/recorder-VERSION-linux-x86_64.tar.gz, with symbols beside the program
	+$(Q)$(portable) KIND=tarball package

rpm: ## build/packages/recorder-VERSION-1.x86_64.rpm: the tarball's program
	+$(Q)$(portable) KIND=rpm package

zip: ## build/packages/recorder-VERSION-windows-x86_64.zip, with symbols beside the program
	+$(Q)$(for_windows) KIND=zip package

msi: ## build/packages/recorder-VERSION-windows-x86_64.msi, by wixl
	+$(Q)$(for_windows) KIND=msi package

package: all
	@conf/package.sh $(KIND) $(BUILD)

check-package: deps ## packages: lintian, pages, units, image, the same bytes twice; of a commit
	@tests/support/check_package.sh

clean: ## remove what was built, except the libraries that deps built
	rm -rf $(filter-out $(DEPS),$(wildcard build/*))

distclean: ## remove build/ whole
	rm -rf build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' \
	    $(firstword $(MAKEFILE_LIST))
