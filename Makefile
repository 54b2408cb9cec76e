# SPDX-License-Identifier: MIT
#
# plugpull: GNU Make, no configure step. `make` builds build/plugpull (the whole tool) and
# build/plugpull-dut (what the machine under test needs, static). V=1 shows the commands.
# CFLAGS, CPPFLAGS and LDFLAGS are yours and come last. VARIANT=asan builds with sanitizers.

VARIANT ?= release
HOST    := $(shell $(CC) -dumpmachine)
OBJ     := build/$(HOST)-$(VARIANT)
# The programs of the release build stand in build/ itself; another variant keeps its own.
BIN     := $(if $(filter release,$(VARIANT)),build,$(OBJ))
PREFIX  ?= /usr/local
DESTDIR ?=
PYTHON  ?= python3

VERSION := $(shell cat VERSION)
COMMIT  := $(shell git describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)

CFLAGS ?= -O2 -g
WARN    := -Wall -Wextra -Wshadow -Wvla -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes \
           -Wwrite-strings
ifeq ($(CI),true)
WARN    += -Werror
endif
HARDEN_release := -D_FORTIFY_SOURCE=2 -fstack-protector-strong
SANITIZE_asan  := -fsanitize=address,undefined
HARDEN_asan    := $(SANITIZE_asan) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
PKGS    := libcurl jansson inih libmicrohttpd nettle blkid liburing
PP_CPPFLAGS := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Isrc -I. -I$(OBJ)
PP_CFLAGS   := -std=gnu11 -fPIC -pthread $(WARN) $(HARDEN_$(VARIANT))
PP_LDFLAGS  := -pthread $(SANITIZE_$(VARIANT))
# SNMP is built in where net-snmp is there (libsnmp-dev).
SNMP_LIBS   := $(shell pkg-config --libs netsnmp 2>/dev/null)
LIBS        := $(shell pkg-config --libs $(PKGS) 2>/dev/null) $(SNMP_LIBS) -lm
DUT_LIBS    := -lblkid -luuid -lnettle -luring -lm
DUT         := plugpull-dut

# `make windows` cross-builds the machine-under-test program: this file again, with another compiler.
# Nothing of this host is in it but xxhash.h, a header alone, of which its object folder has a copy.
WINDOWS := x86_64-w64-mingw32
ifneq ($(findstring mingw,$(HOST)),)
AR          := $(WINDOWS)-ar
HARDEN_release := -fstack-protector-strong
# Windows 10; mingw's own printf in msvcrt's place, so that %zu is what it is elsewhere.
PP_CPPFLAGS := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -D_WIN32_WINNT=0x0A00 -D__USE_MINGW_ANSI_STDIO=1 \
               -Isrc -I. -I$(OBJ) -I$(OBJ)/include
PP_CFLAGS   := -std=gnu11 -pthread $(WARN) $(HARDEN_$(VARIANT))
PP_LDFLAGS  := -pthread $(HARDEN_release)
DUT_LIBS    := -lws2_32 -lbcrypt -ladvapi32 -lshell32 -lsetupapi -lwinmm -lntdll -lm
DUT         := plugpull-dut.exe
endif

ifneq ($(V),1)
Q := @
say = @printf '  %-7s %s\n' $(1) $(2)
else
say = @:
endif

# Everything but the mains is one archive: each program pulls from it what it calls and no more,
# which is what keeps plugpull-dut small and static.
MAINS   := src/cli/plugpull.c src/cli/plugpull_dut.c src/cli/lab_guest.c src/cli/lab_drive.c
PLUGINS := src/lab/nbdkit_plugin.c
ALL_SRC := $(filter-out %_win.c %_macos.c,$(wildcard src/core/*.c writer/*.c verifier/*.c pdu/*.c \
             src/lab/*.c src/campaign/*.c src/cli/*.c))
# On Windows: what plugpull-dut calls, and no more; jansson, curl and inih are not there.
ifneq ($(findstring mingw,$(HOST)),)
ALL_SRC := $(filter-out %_linux.c %_macos.c src/core/assess_read.c,$(wildcard src/core/*.c writer/*.c \
             src/campaign/agent*.c src/campaign/orders*.c) verifier/scan.c verifier/scan_source.c \
             verifier/scan_disk_win.c src/campaign/fields.c src/cli/cmd_agent.c src/cli/cmd_hand.c src/cli/cmd_matrix.c \
             $(wildcard src/cli/matrix_*.c) src/cli/cmd_policy.c \
             src/cli/dut_identify.c src/cli/identify_fields.c src/cli/identify_text.c \
             src/cli/identify_traps.c src/cli/identify_walk.c src/cli/command.c src/cli/option_table.c \
             src/cli/plugpull_dut.c)
endif
LIB_SRC := $(filter-out $(MAINS) $(PLUGINS),$(ALL_SRC))
LIB_OBJ := $(LIB_SRC:%.c=$(OBJ)/%.o)
LIB     := $(OBJ)/libplugpull.a

PROGRAMS := $(BIN)/plugpull $(BIN)/$(DUT)
PROGRAMS += $(if $(wildcard src/cli/lab_guest.c),$(BIN)/plugpull-lab-guest)
PROGRAMS += $(if $(wildcard src/lab/nbdkit_plugin.c),$(BIN)/plugpull-drive.so)
PROGRAMS += $(if $(wildcard src/cli/lab_drive.c),$(BIN)/plugpull-lab-drive)

.DELETE_ON_ERROR:
.PHONY: all windows check demo bench fuzz torture clean dist install uninstall tests asan-tests deps

all: deps-or-say $(PROGRAMS)

# Says the one command that helps instead of letting the compiler complain about a header.
.PHONY: deps-or-say
deps-or-say:
	@scripts/install-deps --check

# ---- objects ------------------------------------------------------------------------------
$(OBJ)/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PP_CPPFLAGS) $(CPPFLAGS) $(PP_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# Rewritten only when it changes, so that a commit does not rebuild the world.
$(OBJ)/version.h: FORCE
	@mkdir -p $(@D)
	@printf '#define PP_VERSION "%s"\n#define PP_COMMIT "%s"\n' '$(VERSION)' '$(COMMIT)' > $@.new
	@cmp -s $@.new $@ && rm $@.new || mv $@.new $@
FORCE:

$(LIB_OBJ) $(MAINS:%.c=$(OBJ)/%.o): | $(OBJ)/version.h $(if $(findstring mingw,$(HOST)),$(OBJ)/include/xxhash.h)

$(OBJ)/include/xxhash.h: $(wildcard /usr/include/xxhash.h)
	@mkdir -p $(@D)
	@cp $(firstword $^ /usr/include/xxhash.h) $@

windows:
	+$(Q)$(MAKE) CC=$(WINDOWS)-gcc $(BIN)/plugpull-dut.exe windows-tests

# Of tests/windows: what is for both systems, and for Windows alone.
.PHONY: windows-tests
WINDOWS_TESTS := tests/windows/golden.c $(wildcard tests/windows/*_win.c)
windows-tests: $(WINDOWS_TESTS:%.c=$(OBJ)/%.exe)
.SECONDARY: $(WINDOWS_TESTS:%.c=$(OBJ)/%.o)
$(OBJ)/tests/windows/%.exe: $(OBJ)/tests/windows/%.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(PP_LDFLAGS) -static -o $@ $^ $(DUT_LIBS) $(LDFLAGS)

$(OBJ)/pdu/snmp.o: PP_CPPFLAGS += $(if $(SNMP_LIBS),-DPP_HAVE_NET_SNMP)

$(LIB): $(LIB_OBJ)
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $^

$(BIN)/plugpull: $(OBJ)/src/cli/plugpull.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(PP_LDFLAGS) -o $@ $^ $(LIBS) $(LDFLAGS)

# A static program cannot carry the sanitizers; that variant links it the ordinary way.
$(BIN)/$(DUT): $(OBJ)/src/cli/plugpull_dut.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(PP_LDFLAGS) $(if $(filter asan,$(VARIANT)),,-static) -o $@ $^ $(DUT_LIBS) $(LDFLAGS)

$(BIN)/plugpull-lab-guest: $(OBJ)/src/cli/lab_guest.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(PP_LDFLAGS) $(if $(filter asan,$(VARIANT)),,-static) -o $@ $^ $(DUT_LIBS) $(LDFLAGS)

$(BIN)/plugpull-drive.so: $(OBJ)/src/lab/nbdkit_plugin.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(PP_LDFLAGS) -shared -o $@ $^ -lm $(LDFLAGS)

$(BIN)/plugpull-lab-drive: $(OBJ)/src/cli/lab_drive.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(PP_LDFLAGS) -o $@ $^ -lfuse3 $(LDFLAGS)

# ---- tests --------------------------------------------------------------------------------
# One program a file; a test is C with cmocka or an executable script. See scripts/check.
TEST_SRC := $(wildcard tests/unit/test_*.c tests/sim/test_*.c tests/pdu/test_*.c tests/lab/test_*.c)
TEST_BIN := $(TEST_SRC:%.c=$(OBJ)/%)
TOOL_SRC := $(wildcard tests/fuzz/fuzz_*.c tests/pdu/mock_*.c tests/lab/fake_*.c tests/bench/*.c tests/cli/*.c \
             $(filter-out %_win.c,$(wildcard tests/windows/*.c)))
TOOL_BIN := $(TOOL_SRC:%.c=$(OBJ)/%)

$(TEST_BIN) $(TOOL_BIN): $(OBJ)/%: $(OBJ)/%.o $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(PP_LDFLAGS) -o $@ $^ -lcmocka $(LIBS) $(LDFLAGS)

.SECONDARY: $(TEST_SRC:%.c=$(OBJ)/%.o) $(TOOL_SRC:%.c=$(OBJ)/%.o)

tests: $(TEST_BIN) $(TOOL_BIN)

# What runs under the sanitizers: everything in one process.
asan-tests: $(filter $(OBJ)/tests/unit/% $(OBJ)/tests/pdu/% $(OBJ)/tests/fuzz/%,$(TEST_BIN) $(TOOL_BIN)) \
	$(PROGRAMS)

deps:
	@scripts/install-deps

check: deps
	+$(Q)scripts/check

demo: deps
	+$(Q)scripts/demo

# Longer than make check does: each harness for a minute or so, from a seed that is printed.
fuzz:
	$(Q)$(MAKE) VARIANT=asan asan-tests
	$(Q)for f in $(TOOL_SRC:%.c=build/$(HOST)-asan/%); do \
		case $$f in */fuzz_*) echo $$f; FUZZ_RUNS=$${FUZZ_RUNS:-1000000} $$f || exit 1;; esac; done

bench: all tests
	$(Q)scripts/bench

# What is too long for check: simulated cuts by the hundred thousand, and the mutations.
torture:
	+$(Q)scripts/torture

# ---- install ------------------------------------------------------------------------------
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/plugpull \
		$(DESTDIR)$(PREFIX)/share/plugpull/profiles $(DESTDIR)$(PREFIX)/share/man/man1 \
		$(DESTDIR)$(PREFIX)/share/man/man5
	install -m 755 build/plugpull build/plugpull-dut $(DESTDIR)$(PREFIX)/bin/
	install -m 755 build/plugpull-lab-guest build/plugpull-drive.so build/plugpull-lab-drive $(DESTDIR)$(PREFIX)/lib/plugpull/
	[ ! -e build/plugpull-dut.exe ] || install -m 644 build/plugpull-dut.exe $(DESTDIR)$(PREFIX)/lib/plugpull/
	install -m 644 pdu/profiles/*.ini $(DESTDIR)$(PREFIX)/share/plugpull/profiles/
	install -m 644 $(wildcard docs/man/*.1) $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 $(wildcard docs/man/*.5) $(DESTDIR)$(PREFIX)/share/man/man5/

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/plugpull $(DESTDIR)$(PREFIX)/bin/plugpull-dut
	rm -rf $(DESTDIR)$(PREFIX)/lib/plugpull $(DESTDIR)$(PREFIX)/share/plugpull
	rm -f $(patsubst docs/man/%,$(DESTDIR)$(PREFIX)/share/man/man1/%,$(wildcard docs/man/*.1)) \
		$(patsubst docs/man/%,$(DESTDIR)$(PREFIX)/share/man/man5/%,$(wildcard docs/man/*.5))

dist:
	git archive --prefix=plugpull-$(VERSION)/ -o plugpull-$(VERSION).tar.gz HEAD

clean:
	rm -rf build

-include $(shell find build -name '*.d' 2>/dev/null)
