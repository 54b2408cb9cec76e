/* SPDX-License-Identifier: MIT
 *
 * A control host of few words, for tests of an agent in another process: it waits for the agent, then
 * does the words of its command line one after another and prints what the agent answers, as the kv
 * text of the wire, each answer below a line "== WORD".
 *
 *	control KEYFILE PORT PORTFILE FOLDER WORD...
 *
 * The port (0: any free one) goes to PORTFILE, what comes as files to FOLDER. Words:
 *	hello               the HELLO of the session (first); again: waits for the next session
 *	ping, poweroff, reboot
 *	identify=ID, smart=ID
 *	target=ID,PATH      what the orders below are about: a file of 4 MiB, two lanes, overwrite
 *	workload=NAME       the same target with that workload
 *	prove, prewrite, sizes, watch, release, check, format
 *	run=METHOD          and waits for 200 acks; stop; matrix=METHOD
 *	scan                to FOLDER/scan.bin
 *	fails=WORD          that order must be refused or fail: prints why
 * Exit: 0 all was done; 2 what was not is on standard error.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/campaign/machine.h"
#include "src/core/auth.h"
#include "src/core/clock.h"
#include "src/core/file.h"
#include "verifier/ledger.h"

#define WAIT_MS      60000
#define TARGET_BYTES (4u << 20)
#define RUN          3
#define ACKS         200

static struct pp_machine machine;
static struct pp_order order;
static struct pp_ledger *ledger;
static const char *folder;
static struct pp_error err;
static char boot[64];
static int runs;

static int print_data(void *ctx, const void *data, size_t bytes, struct pp_error *e)
{
	(void)e;
	return fwrite(data, 1, bytes, ctx) == bytes ? 0 : -1;
}

static int ask(enum pp_order_kind kind, FILE *data)
{
	struct pp_kv answer;
	size_t i;
	int rc = 0;

	order.kind = kind;
	if (pp_machine_order(&machine, &order, &answer, WAIT_MS, data ? print_data : NULL, data, &err) != 0)
		return -1;
	for (i = 0; i < answer.count; i++)
		printf("%s=%s\n", answer.pairs[i].key, answer.pairs[i].value);
	if (kind == PP_ORDER_PREWRITE)
		rc = pp_layout_get(&answer, &order.layout, &err); /* where the run begins */
	pp_kv_release(&answer);
	return rc;
}

static int hello(void)
{
	int64_t until_ns = pp_clock_mono_ns() + WAIT_MS * PP_NS_PER_MS;
	const struct pp_hello *h = &machine.hello;

	while (machine.session && machine.closed == PP_CLOSE_NOT && boot[0])
		if (pp_machine_pump(&machine, until_ns, &err) <= 0)
			return pp_fail(&err, PP_ERR_PEER, "the session does not end");
	if (pp_machine_await(&machine, boot, 0, until_ns, &err) != 1)
		return pp_fail(&err, PP_ERR_PEER, "no agent came");
	printf("name=%s\nos=%s\nmachine=%s\nkernel=%s\nboot_id=%s\nuptime_ns=%llu\nsha256=%s\n"
		"version=%s\nallow=%s\n", h->name, h->os, h->machine, h->kernel, h->boot_id,
		(unsigned long long)h->uptime_ns, h->sha256, h->version, h->allow);
	return 0;
}

static int set_workload(const char *name)
{
	enum pp_workload workload;

	if (!pp_workload_find(name, &workload))
		return pp_fail(&err, PP_ERR_USAGE, "there is no workload '%s'", name);
	return pp_layout_init(&order.layout, workload, 2, 1, 4096, 4096, false, 0, TARGET_BYTES, &err);
}

static int set_target(const char *words)
{
	const char *comma = strchr(words, ',');

	if (!comma)
		return pp_fail(&err, PP_ERR_USAGE, "target=ID,PATH");
	order.index = RUN;
	order.spec.kind = PP_TARGET_FILE;
	snprintf(order.spec.serial, sizeof(order.spec.serial), "%.*s", (int)(comma - words), words);
	snprintf(order.spec.path, sizeof(order.spec.path), "%s", comma + 1);
	order.spec.wait_ms = 0;
	memset(order.run_id.bytes, 0x99, sizeof(order.run_id.bytes));
	return set_workload("overwrite");
}

static int run(const char *method)
{
	int64_t until_ns = pp_clock_mono_ns() + WAIT_MS * PP_NS_PER_MS;
	char path[4096];

	order.method = pp_method_find(method);
	if (!order.method)
		return pp_fail(&err, PP_ERR_USAGE, "there is no method '%s'", method);
	memset(order.run_id.bytes, 0x11 + runs, sizeof(order.run_id.bytes));
	snprintf(path, sizeof(path), "%s/ledger.%d", folder, runs++);
	if (ledger)
		pp_listener_unbind(machine.listener, machine.session, RUN);
	pp_ledger_close(ledger, NULL);
	ledger = pp_ledger_create(path, &order.run_id, order.layout.lanes, &err);
	if (!ledger || pp_listener_bind(machine.listener, machine.session, RUN, ledger, &err) != 0 ||
		ask(PP_ORDER_RUN, NULL) != 0)
		return -1;
	while (pp_ledger_acked(ledger, 0) + pp_ledger_acked(ledger, 1) < ACKS)
		if (machine.news[RUN].failed || pp_clock_mono_ns() > until_ns ||
			pp_machine_sleep(&machine, 5, &err) != 0)
			return pp_fail(&err, PP_ERR_PEER, "no %d acks: %s", ACKS, machine.news[RUN].text);
	return 0;
}

static int scan(void)
{
	char path[4096];
	FILE *out;
	int rc;

	snprintf(path, sizeof(path), "%s/scan.bin", folder);
	out = fopen(path, "wb");
	if (!out)
		return pp_fail_os(&err, errno, "cannot create '%s'", path);
	rc = ask(PP_ORDER_SCAN, out);
	return fclose(out) == 0 ? rc : -1;
}

static int do_word(const char *word)
{
	const char *value = strchr(word, '=');
	size_t n = value ? (size_t)(value++ - word) : strlen(word), i;
	static const enum pp_order_kind plain[] = { PP_ORDER_PING, PP_ORDER_POWEROFF, PP_ORDER_REBOOT,
		PP_ORDER_PROVE, PP_ORDER_PREWRITE, PP_ORDER_SIZES, PP_ORDER_WATCH, PP_ORDER_RELEASE,
		PP_ORDER_CHECK, PP_ORDER_FORMAT, PP_ORDER_STOP };

	if (value && strncmp(word, "fails", n) == 0) {
		if (do_word(value) == 0)
			return pp_fail(&err, PP_ERR_PEER, "'%s' was done", value);
		printf("%s\n", err.text);
		return 0;
	}
	if (strcmp(word, "hello") == 0)
		return hello();
	if (strcmp(word, "scan") == 0)
		return scan();
	if (value && strncmp(word, "target", n) == 0)
		return set_target(value);
	if (value && strncmp(word, "workload", n) == 0)
		return set_workload(value);
	if (value && strncmp(word, "run", n) == 0)
		return run(value);
	if (value && (strncmp(word, "identify", n) == 0 || strncmp(word, "smart", n) == 0)) {
		snprintf(order.serial, sizeof(order.serial), "%s", value);
		return ask(word[0] == 'i' ? PP_ORDER_IDENTIFY : PP_ORDER_SMART, stdout);
	}
	if (value && strncmp(word, "matrix", n) == 0) {
		order.methods[0] = pp_method_find(value);
		order.method_count = order.methods[0] ? 1 : 0;
		order.seconds_ms = 100;
		return ask(PP_ORDER_MATRIX, stdout);
	}
	for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		if (strcmp(word, pp_order_name(plain[i])) == 0)
			return ask(plain[i], stdout);
	return pp_fail(&err, PP_ERR_USAGE, "there is no word '%s'", word);
}

static int begin(char **argv)
{
	struct pp_key key;
	char text[16];

	if (pp_key_load(argv[1], &key, &err) != 0)
		return -1;
	machine.listener = pp_listener_open("127.0.0.1", (uint16_t)atoi(argv[2]), &key, &err);
	if (!machine.listener)
		return -1;
	snprintf(text, sizeof(text), "%u\n", pp_listener_port(machine.listener));
	folder = argv[4];
	pp_order_init(&order, PP_ORDER_PING);
	return pp_file_write(argv[3], text, strlen(text), 0644, &err);
}

int main(int argc, char **argv)
{
	int i, rc;

	if (argc < 6) {
		fprintf(stderr, "control KEYFILE PORT PORTFILE FOLDER WORD...\n");
		return 2;
	}
	rc = begin(argv);
	for (i = 5; i < argc && rc == 0; i++) {
		printf("== %s\n", argv[i]);
		rc = do_word(argv[i]);
		fflush(stdout);
	}
	if (rc != 0)
		fprintf(stderr, "control: %s: %s\n", i > 5 ? argv[i - 1] : "start", err.text);
	pp_listener_close(machine.listener);
	pp_ledger_close(ledger, NULL);
	return rc == 0 ? 0 : 2;
}
