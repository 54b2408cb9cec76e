/* SPDX-License-Identifier: MIT
 *
 * What test_agent.c stands on: a loop device as the drive, the listener as control, the agent in a
 * thread, and orders in a line each.
 */
#ifndef PP_TESTS_AGENT_WORLD_H
#define PP_TESTS_AGENT_WORLD_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/loop.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/campaign/agent.h"
#include "src/campaign/orders.h"
#include "src/core/clock.h"
#include "src/core/disk_counters.h"
#include "src/core/wire.h"
#include "tests/janitor.h"
#include "verifier/listener.h"
#include "verifier/scan.h"
#include "writer/matrix.h"

#define MB      (1 << 20)
#define WAIT_MS 30000
#define RUN     3 /* index of the drive in the plan */

static char folder[64], image[128], node[32];
static const char *why_skip;
static int loop_fd = -1, ledgers;
static struct pp_listener *listener;
static struct pp_ledger *ledger;
static uint64_t session;
static struct pp_agent_config config;
static volatile sig_atomic_t stop_agent;
static pthread_t agent;
static int power_calls;
static bool power_restart;
static _Atomic int said_refused;
static struct pp_hello hello;

#define need_loop() do { \
	if (why_skip) { \
		print_message("skipped: %s\n", why_skip); \
		return; \
	} \
} while (0)

/* ---- the drive ----------------------------------------------------------------------------- */

static int attach(void)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600), tries, n;
	struct loop_config lo = { .fd = (uint32_t)file, .block_size = 512,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR };

	if (control < 0 || file < 0 || ftruncate(file, 64 * MB) != 0)
		return -1;
	for (tries = 0; tries < 20 && loop_fd < 0; tries++) {
		n = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(node, sizeof(node), "/dev/loop%d", n);
		loop_fd = open(node, O_RDWR | O_CLOEXEC);
		if (loop_fd >= 0 && ioctl(loop_fd, LOOP_CONFIGURE, &lo) != 0) {
			close(loop_fd);
			loop_fd = -1;
		}
	}
	close(control);
	close(file);
	return loop_fd < 0 ? -1 : 0;
}

static void detach(void)
{
	if (loop_fd >= 0)
		close(loop_fd);
	loop_fd = -1;
	unlink(image);
}

/* ---- the agent ----------------------------------------------------------------------------- */

static void say(void *ctx, const char *text)
{
	(void)ctx;
	if (strstr(text, "REFUSED"))
		said_refused++;
	if (getenv("PP_TEST_TALK"))
		print_message("agent: %s\n", text);
}

static int fake_power(void *ctx, bool restart, struct pp_error *err)
{
	(void)ctx;
	(void)err;
	power_calls++;
	power_restart = restart;
	stop_agent = 1;
	return 0;
}

static void *agent_main(void *arg)
{
	struct pp_error err;

	assert_int_equal(pp_agent_run(arg, &err), 0);
	return NULL;
}

/* The next event of this type; others are dropped. */
static void wait_event(enum pp_event_type type, struct pp_event *ev)
{
	int64_t deadline = pp_clock_mono_ns() + WAIT_MS * PP_NS_PER_MS;
	struct pp_error err = { 0 };

	while (pp_listener_wait(listener, deadline, ev, &err) == 1) {
		if (ev->type == type)
			return;
		pp_event_release(ev);
	}
	fail_msg("event %d did not come: %s", (int)type, err.text);
}

static void wait_connected(void)
{
	struct pp_error err = { 0 };
	struct pp_event ev;
	struct pp_kv kv;

	wait_event(PP_EVENT_CONNECTED, &ev);
	session = ev.session;
	assert_int_equal(pp_kv_parse(&kv, ev.data, ev.data_bytes, &err), 0);
	if (pp_hello_get(&kv, &hello, &err) != 0)
		fail_msg("%s", err.text);
	pp_kv_release(&kv);
	pp_event_release(&ev);
}

static void start(const char *allow)
{
	struct pp_error err = { 0 };
	struct pp_key key;

	memset(&key, 7, sizeof(key));
	listener = pp_listener_open("127.0.0.1", 0, &key, &err);
	if (!listener)
		fail_msg("%s", err.text);
	memset(&config, 0, sizeof(config));
	strcpy(config.address, "127.0.0.1");
	config.port = pp_listener_port(listener);
	config.key = key;
	assert_int_equal(pp_allow_add(&config.allow, allow, &err), 0);
	config.say = say;
	config.power = fake_power;
	config.stop = &stop_agent;
	config.retry_ms = 20;
	config.retry_refused_ms = 100;
	stop_agent = 0;
	power_calls = 0;
	assert_int_equal(pthread_create(&agent, NULL, agent_main, &config), 0);
}

static void finish(void)
{
	stop_agent = 1;
	pthread_join(agent, NULL);
	pp_listener_close(listener);
	pp_ledger_close(ledger, NULL);
	ledger = NULL;
}

/* ---- orders -------------------------------------------------------------------------------- */

static int try_order(const struct pp_order *o, struct pp_kv *kv, pp_listener_data_fn *data,
	void *ctx, struct pp_error *err)
{
	struct pp_buf buf;
	int rc;

	memset(err, 0, sizeof(*err));
	pp_buf_init(&buf, PP_ORDER_BYTES_MAX);
	if (pp_order_put(o, &buf, err) != 0)
		fail_msg("%s", err->text);
	rc = pp_listener_call(listener, session, &buf, kv, WAIT_MS, data, ctx, err);
	pp_buf_release(&buf);
	return rc;
}

static struct pp_kv order(const struct pp_order *o)
{
	struct pp_error err;
	struct pp_kv kv;

	if (try_order(o, &kv, NULL, NULL, &err) != 0)
		fail_msg("%s: %s", pp_order_name(o->kind), err.text);
	return kv;
}

static void order_done(const struct pp_order *o)
{
	struct pp_kv kv = order(o);

	pp_kv_release(&kv);
}

static void order_refused(const struct pp_order *o, const char *text)
{
	struct pp_error err;
	struct pp_kv kv;

	if (try_order(o, &kv, NULL, NULL, &err) == 0)
		fail_msg("%s was done", pp_order_name(o->kind));
	if (!strstr(err.text, text))
		fail_msg("expected '%s', got '%s'", text, err.text);
}

/* One order for all that this test does; each changes its kind. */
static struct pp_order o;
static struct pp_scan_range one_range;

static void order_base(enum pp_target_kind kind)
{
	pp_order_init(&o, PP_ORDER_PROVE);
	o.index = RUN;
	o.spec.kind = kind;
	strcpy(o.spec.serial, image);
	strcpy(o.spec.fs_uuid, "auto");
	o.spec.wait_ms = 0;
	strcpy(o.spec.destroy, image);
	o.spec.force = true;
	o.method = pp_method_find("fdatasync");
	memset(&o.run_id, 0x11, sizeof(o.run_id));
}

static void layout(enum pp_workload workload, uint32_t lanes, uint64_t bytes)
{
	struct pp_error err;

	if (pp_layout_init(&o.layout, workload, lanes, 1, 4096, 4096, false, 0, bytes, &err) != 0)
		fail_msg("%s", err.text);
}

static struct pp_kv do_kind(enum pp_order_kind kind)
{
	o.kind = kind;
	return order(&o);
}

static void do_done(enum pp_order_kind kind)
{
	o.kind = kind;
	order_done(&o);
}

static void do_refused(enum pp_order_kind kind, const char *text)
{
	o.kind = kind;
	order_refused(&o, text);
}

static void format(void)
{
	struct pp_formatted formatted;
	struct pp_error err = { 0 };
	struct pp_kv kv;

	strcpy(o.spec.fs_type, "ext4");
	o.spec.fs_partition = 0;
	kv = do_kind(PP_ORDER_FORMAT);
	assert_int_equal(pp_formatted_get(&kv, &formatted, &err), 0);
	pp_kv_release(&kv);
	if (formatted.state != PP_TARGET_OK)
		fail_msg("%s", formatted.error);
	assert_int_equal(formatted.drive_size_bytes, 64 * MB);
	strcpy(o.spec.fs_uuid, formatted.fs_uuid);
	assert_int_equal(strlen(formatted.fs_uuid), 36);
}

static void prove(enum pp_target_state state)
{
	static struct pp_proof proof;
	struct pp_error err = { 0 };
	struct pp_kv kv = do_kind(PP_ORDER_PROVE);

	if (pp_proof_get(&kv, &proof, &err) != 0)
		fail_msg("%s", err.text);
	pp_kv_release(&kv);
	if (proof.state != state)
		fail_msg("%s: %s", pp_target_state_name(proof.state), proof.error);
	if (state != PP_TARGET_OK)
		return;
	assert_string_equal(proof.drive.info.serial, image);
	assert_int_equal(proof.unit_bytes, 4096);
	assert_true(proof.kernel[0] != '\0');
}

static void new_ledger(void)
{
	struct pp_error err = { 0 };
	char path[128];

	pp_ledger_close(ledger, NULL);
	snprintf(path, sizeof(path), "%s/ledger.%d", folder, ledgers++);
	ledger = pp_ledger_create(path, &o.run_id, o.layout.lanes, &err);
	if (!ledger)
		fail_msg("%s", err.text);
	if (pp_listener_bind(listener, session, RUN, ledger, &err) != 0)
		fail_msg("%s", err.text);
}

static void start_run(void)
{
	struct pp_started started;
	struct pp_error err = { 0 };
	struct pp_kv kv;

	new_ledger();
	kv = do_kind(PP_ORDER_RUN);
	assert_int_equal(pp_started_get(&kv, &started, &err), 0);
	pp_kv_release(&kv);
	assert_string_equal(started.disk, node + 5);
	if (!started.log_watched)
		print_message("the kernel log cannot be read here: %s\n", started.log_error);
}

/* What the ledger has of a lane once the listener is through with what it has received so far. */
static uint64_t acked(uint32_t lane)
{
	struct pp_session_state seen;
	struct pp_error err;

	pp_listener_snapshot(listener, session, RUN, &seen, NULL, 0, &err);
	return pp_ledger_acked(ledger, lane);
}

static void wait_acks(uint64_t least)
{
	int64_t deadline = pp_clock_mono_ns() + WAIT_MS * PP_NS_PER_MS;
	uint64_t acks = 0;
	uint32_t lane;

	while (acks < least && pp_clock_mono_ns() < deadline) {
		pp_clock_sleep_ms(5);
		for (acks = 0, lane = 0; lane < o.layout.lanes; lane++)
			acks += acked(lane);
	}
	if (acks < least)
		fail_msg("%llu acks only", (unsigned long long)acks);
}

static struct pp_stopped stop_run(void)
{
	struct pp_stopped stopped;
	struct pp_error err = { 0 };
	struct pp_kv kv = do_kind(PP_ORDER_STOP);

	assert_int_equal(pp_stopped_get(&kv, &stopped, &err), 0);
	pp_kv_release(&kv);
	return stopped;
}

static struct pp_note wait_note(enum pp_note_event event)
{
	struct pp_error err = { 0 };
	struct pp_event ev;
	struct pp_note note;
	struct pp_kv kv;

	do {
		wait_event(PP_EVENT_NOTE, &ev);
		assert_int_equal(pp_kv_parse(&kv, ev.data, ev.data_bytes, &err), 0);
		if (pp_note_get(&kv, &note, &err) != 0)
			fail_msg("%s", err.text);
		pp_kv_release(&kv);
		pp_event_release(&ev);
	} while (note.event != event);
	assert_int_equal(note.index, RUN);
	return note;
}

static int take_data(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	(void)err;
	assert_true(bytes <= PP_ORDER_DATA_BYTES);
	pp_buf_add(ctx, data, bytes);
	return 0;
}

static struct pp_buf order_data(enum pp_order_kind kind, struct pp_kv *kv)
{
	struct pp_error err;
	struct pp_buf buf;

	pp_buf_init(&buf, 256 * MB);
	o.kind = kind;
	if (try_order(&o, kv, take_data, &buf, &err) != 0)
		fail_msg("%s: %s", pp_order_name(kind), err.text);
	assert_false(buf.failed);
	return buf;
}

static struct pp_scan *scan(void)
{
	struct pp_scanned scanned;
	struct pp_error err = { 0 };
	struct pp_scan *s;
	struct pp_kv kv;
	struct pp_buf buf = order_data(PP_ORDER_SCAN, &kv);

	assert_int_equal(pp_scanned_get(&kv, &scanned, &err), 0);
	pp_kv_release(&kv);
	assert_int_equal(scanned.bytes, buf.bytes);
	s = pp_scan_parse(buf.data, buf.bytes, &err); /* takes it */
	if (!s)
		fail_msg("%s", err.text);
	return s;
}

/* Everything acked is there, and nothing beyond what the window allows. */
static void check_scan(const struct pp_scan *s)
{
	uint64_t newest, slot, last;
	uint32_t lane;

	for (lane = 0; lane < o.layout.lanes; lane++) {
		last = acked(lane);
		for (newest = 0, slot = 0; slot < o.layout.slots; slot++) {
			const struct pp_scan_slot *found = pp_scan_slot(s, lane, slot);
			uint64_t want = pp_layout_newest(&o.layout, lane, slot, last);

			assert_non_null(found);
			assert_int_equal(found->kind, PP_SLOT_INTACT);
			assert_int_equal(found->lane, lane);
			assert_true(found->seq >= want);
			if (want)
				assert_true(pp_run_id_equal(&s->runs[found->run], &o.run_id));
			if (found->seq > newest)
				newest = found->seq;
		}
		assert_true(newest >= last);
		assert_true(newest <= last + pp_layout_window(&o.layout)); /* M2.4 */
	}
}

/* ---- set-up -------------------------------------------------------------------------------- */

static int set_up_drive(void **state)
{
	(void)state;
	if (why_skip)
		return 0;
	snprintf(image, sizeof(image), "%s/drive.img", folder);
	return attach();
}

static int tear_down_drive(void **state)
{
	(void)state;
	detach();
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	(void)at;
	remove(path);
	return 0;
}

/* Mounts end with this process (the namespace is its own); these two are also in the way. */
static void clean_up(void)
{
	static const char *const mounts[] = { "mounted", "small" };
	char path[96], name[160], place[200];
	size_t i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, mounts[i]);
		umount2(path, MNT_DETACH);
	}
	pp_drive_folder_name(image, name, sizeof(name));
	snprintf(place, sizeof(place), PP_TARGET_MOUNT_ROOT "/%s", name);
	if (image[0]) {
		umount2(place, MNT_DETACH);
		rmdir(place);
	}
	detach();
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void on_signal(int number)
{
	clean_up();
	_exit(128 + number);
}

static int world_set_up(void)
{
	/* in memory where there is some: thousands of syncs cost nothing there */
	snprintf(folder, sizeof(folder), "%s/plugpull-test-agent.XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!janitor_mkdtemp(folder))
		return -1;
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	if (geteuid() != 0)
		why_skip = "loop devices and mounting need root";
	else if (access("/dev/loop-control", R_OK | W_OK) != 0)
		why_skip = "there is no /dev/loop-control";
	else if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		why_skip = "this container allows no mount namespace";
	return 0;
}

#endif
