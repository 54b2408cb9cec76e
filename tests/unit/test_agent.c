/* SPDX-License-Identifier: MIT
 *
 * Goal: the agent does what it is ordered and allowed, and nothing else; and when something goes
 * wrong (a call fails, the disk reports errors, the connection breaks) its lanes fall silent (M2.3,
 * M2.4, M2.7). Method: the real listener is control, on loopback; the agent runs in a thread of this
 * program. What needs a drive gets a loop device on a file, whose path is its serial, in a mount
 * namespace of our own; the loop devices clear themselves should this program die.
 */
#include "agent_world.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

/* ---- tests without a drive ----------------------------------------------------------------- */

static void test_allow_list(void **state)
{
	static const char *const bad[] = { "", "/", "//", "uuid:", "uuid:auto", "/dev/null", "a\nb",
		"policy:" };
	struct pp_allow allow = { 0 };
	struct pp_target_spec spec;
	char deep[96], link[96];
	struct pp_error err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(pp_allow_add(&allow, bad[i], &err), -1);
	assert_int_equal(allow.count, 0);
	snprintf(deep, sizeof(deep), "%s/allowed", folder);
	snprintf(link, sizeof(link), "%s/allowed/link", folder);
	assert_int_equal(mkdir(deep, 0700), 0);
	assert_int_equal(symlink("/usr", link), 0);
	assert_int_equal(pp_allow_add(&allow, "SER1", &err), 0);
	assert_int_equal(pp_allow_add(&allow, "uuid:1234-ABCD", &err), 0);
	assert_int_equal(pp_allow_add(&allow, deep, &err), 0);

	pp_target_spec_init(&spec);
	strcpy(spec.serial, "SER1");
	assert_int_equal(pp_allow_check(&allow, &spec, true, &err), 0);
	spec.kind = PP_TARGET_RAW;
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), 0);
	strcpy(spec.serial, "SER"); /* whole names only */
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	strcpy(spec.serial, "SER11");
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);

	strcpy(spec.fs_uuid, "1234-abcd"); /* files of the file system, not its drive */
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	spec.kind = PP_TARGET_FILE;
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), 0);
	assert_int_equal(pp_allow_check(&allow, &spec, true, &err), -1);
	strcpy(spec.fs_uuid, "auto");
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);

	strcpy(spec.path, deep);
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), 0);
	assert_int_equal(pp_allow_check(&allow, &spec, true, &err), -1);
	strcpy(spec.path, link); /* leads out */
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	snprintf(spec.path, sizeof(spec.path), "%s/..", deep);
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	snprintf(spec.path, sizeof(spec.path), "%s2", deep);
	assert_int_equal(mkdir(spec.path, 0700), 0);
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	rmdir(spec.path);

	strcpy(spec.serial, "SER1");
	strcpy(spec.directory, "a/../../b");
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	strcpy(spec.directory, "a..b");
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), 0);
	strcpy(spec.mount_dir, "/run/plugpull/../../etc");
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	strcpy(spec.mount_dir, "/mnt");
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
	unlink(link);
	rmdir(deep);
}

static void test_service_unit(void **state)
{
	static const char *const words[] = { "agent", "--allow", "S 1\"%n$HOME\\", NULL };
	static const char *const bad[] = { "a\nExecStart=/bin/sh", NULL };
	struct pp_error err;
	struct pp_buf buf;

	(void)state;
	pp_buf_init(&buf, 1 << 16);
	assert_int_equal(pp_agent_unit_text("/usr/bin/x y", words, &buf, &err), 0);
	assert_non_null(strstr(buf.data,
		"ExecStart= \"/usr/bin/x y\" \"agent\" \"--allow\" \"S 1\\\"%%n$$HOME\\\\\"\n"));
	assert_int_equal(pp_agent_unit_text("/x", bad, &buf, &err), -1);
	pp_buf_release(&buf);
}

static void test_hello_ping_and_garbage(void **state)
{
	struct pp_error err = { 0 };
	struct pp_order ping;
	struct pp_event ev;
	struct pp_buf buf;
	struct pp_kv kv;

	(void)state;
	start("NOBODY");
	wait_connected();
	assert_string_equal(hello.allow, "NOBODY");
	assert_string_equal(hello.os, "linux");
	assert_int_equal(strlen(hello.sha256), 64);
	assert_true(hello.uptime_ns > 0);
	pp_order_init(&ping, PP_ORDER_PING);
	order_done(&ping);
	pp_buf_init(&buf, 1000);
	pp_kv_add(&buf, "do", "ping");
	pp_kv_add(&buf, "harder", "yes");
	assert_int_equal(pp_listener_call(listener, session, &buf, &kv, WAIT_MS, NULL, NULL, &err), -1);
	assert_non_null(strstr(err.text, "harder"));
	pp_buf_release(&buf);
	order_done(&ping);
	/* what is not control's to say ends the connection */
	assert_int_equal(pp_listener_send(listener, session, PP_FRAME_BEAT, NULL, 0, &err), 0);
	wait_event(PP_EVENT_CLOSED, &ev);
	pp_event_release(&ev);
	wait_connected();
	order_done(&ping);
	finish();
}

static void test_wrong_key(void **state)
{
	struct pp_event ev;

	(void)state;
	start("NOBODY");
	wait_connected();
	said_refused = 0;
	memset(&config.key, 8, sizeof(config.key)); /* read at each attempt */
	assert_int_equal(pp_listener_end(listener, session, PP_CLOSE_LOCAL, NULL), 0);
	wait_event(PP_EVENT_REFUSED, &ev);
	pp_event_release(&ev);
	wait_event(PP_EVENT_REFUSED, &ev); /* it goes on trying */
	pp_event_release(&ev);
	assert_true(said_refused > 0);
	memset(&config.key, 7, sizeof(config.key));
	wait_connected();
	finish();
}

/* A greeting that breaks off is no refusal: a machine that boots while control is busy, or the
 * network hiccups, must not sit out the long pause that keeps a wrong key from filling logs. */
static void test_broken_greeting_is_no_refusal(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(at);
	int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	(void)state;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	assert_int_equal(bind(door, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(door, 4), 0);
	assert_int_equal(getsockname(door, (struct sockaddr *)&at, &bytes), 0);
	start("NOBODY");
	wait_connected();
	said_refused = 0;
	config.port = ntohs(at.sin_port); /* read at each attempt */
	assert_int_equal(pp_listener_end(listener, session, PP_CLOSE_LOCAL, NULL), 0);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = { .fd = door, .events = POLLIN };
		int fd;

		assert_int_equal(poll(&p, 1, WAIT_MS), 1);
		fd = accept(door, NULL, NULL);
		assert_true(fd >= 0);
		close(fd);
	}
	config.port = pp_listener_port(listener);
	close(door);
	wait_connected();
	assert_int_equal(said_refused, 0);
	finish();
}

static void test_poweroff(void **state)
{
	struct pp_order off;

	(void)state;
	start("NOBODY");
	wait_connected();
	pp_order_init(&off, PP_ORDER_REBOOT);
	order_done(&off);
	pthread_join(agent, NULL);
	assert_int_equal(power_calls, 1);
	assert_true(power_restart);
	agent = pthread_self();
	pp_listener_close(listener);
}

/* M1.1: a drive that does not answer holds up nobody else, and not the end either. */
static void test_one_drive_holds_up_no_other(void **state)
{
	struct pp_error err = { 0 };
	struct pp_order ping, absent;
	struct pp_buf buf;
	struct pp_kv kv;
	uint32_t id;

	(void)state;
	start("ABSENT");
	wait_connected();
	pp_order_init(&absent, PP_ORDER_PROVE);
	strcpy(absent.spec.serial, "ABSENT");
	absent.spec.wait_ms = 3600000;
	pp_buf_init(&buf, 1 << 16);
	assert_int_equal(pp_order_put(&absent, &buf, &err), 0);
	assert_int_equal(pp_listener_request(listener, session, &buf, &id, &err), 0);
	pp_buf_release(&buf);
	pp_order_init(&ping, PP_ORDER_PING);
	order_done(&ping);
	absent.index = 1;
	absent.spec.wait_ms = 0;
	kv = order(&absent);
	assert_string_equal(pp_kv_find(&kv, "state"), "drive-gone");
	pp_kv_release(&kv);
	finish();
}

/* ---- tests with a drive -------------------------------------------------------------------- */

static void test_refused_targets(void **state)
{
	uint8_t block[4096], first[4096];

	(void)state;
	need_loop();
	start("uuid:0b3a7c1e-0000-4000-8000-000000000000");
	wait_connected();
	order_base(PP_TARGET_RAW);
	memset(first, 0x5a, sizeof(first));
	assert_int_equal(pwrite(loop_fd, first, sizeof(first), 0), sizeof(first));
	do_refused(PP_ORDER_PROVE, "not on this agent's allow list");
	do_refused(PP_ORDER_FORMAT, "not on this agent's allow list");
	layout(PP_OVERWRITE, 1, 4 * MB);
	do_refused(PP_ORDER_PREWRITE, "not been proven");
	do_refused(PP_ORDER_RUN, "not been proven");
	do_refused(PP_ORDER_SCAN, "not been proven");
	do_refused(PP_ORDER_MATRIX, "not been proven");
	do_refused(PP_ORDER_WATCH, "not been proven");
	do_refused(PP_ORDER_STOP, "no run");
	assert_int_equal(pread(loop_fd, block, sizeof(block), 0), sizeof(block));
	assert_memory_equal(block, first, sizeof(block));
	finish();
}

static void test_whole_dialogue(void **state)
{
	struct pp_drive_answer drive;
	struct pp_stopped stopped;
	struct pp_session_state seen;
	struct pp_sizes sizes;
	struct pp_error err = { 0 };
	struct pp_scan *s;
	struct pp_kv kv;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_FILE);
	strcpy(o.serial, image);
	kv = do_kind(PP_ORDER_IDENTIFY);
	assert_int_equal(pp_drive_get(&kv, "", &drive, &err), 0);
	assert_string_equal(drive.info.node, node);
	pp_kv_release(&kv);
	format();
	prove(PP_TARGET_OK);
	do_refused(PP_ORDER_PROVE, "release it first");
	do_refused(PP_ORDER_CHECK, "release it first");
	do_refused(PP_ORDER_FORMAT, "release it first");
	layout(PP_OVERWRITE, 2, 4 * MB);
	do_refused(PP_ORDER_RUN, "No such file");
	o.run_id.bytes[0] = 0x99; /* the set-up's own id */
	do_done(PP_ORDER_PREWRITE);
	o.run_id.bytes[0] = 0x11;
	kv = do_kind(PP_ORDER_SIZES);
	assert_int_equal(pp_sizes_get(&kv, &sizes, &err), 0);
	pp_kv_release(&kv);
	assert_int_equal(sizes.files, 1);
	assert_int_equal(sizes.bytes[0], 4 * MB);

	start_run();
	wait_acks(1500); /* more than one lap: 512 slots a lane */
	do_refused(PP_ORDER_SCAN, "stop it first");
	do_refused(PP_ORDER_RUN, "stop it first");
	assert_int_equal(pp_listener_snapshot(listener, session, RUN, &seen, NULL, 0, &err), 0);
	assert_true(seen.t_last_beat_ns != PP_LEDGER_NEVER); /* M5: beats name the disk */
	assert_true(seen.writes > 0);
	stopped = stop_run();
	assert_false(stopped.failed);
	assert_int_equal(stopped.acked,
		acked(0) + acked(1));
	assert_int_equal(stopped.lanes_left_behind, 0);
	s = scan();
	check_scan(s);
	pp_scan_free(s);
	one_range = (struct pp_scan_range){ 1, 3, 4 };
	o.ranges = &one_range;
	o.range_count = 1;
	s = scan();
	assert_true(s->sparse);
	assert_int_equal(s->sparse_count, 2);
	pp_scan_free(s);
	o.ranges = NULL;
	o.range_count = 0;

	kv = do_kind(PP_ORDER_RELEASE);
	assert_string_equal(pp_kv_find(&kv, "lazy"), "no");
	pp_kv_release(&kv);
	kv = do_kind(PP_ORDER_CHECK);
	assert_string_equal(pp_kv_find(&kv, "result"), "clean");
	pp_kv_release(&kv);
	strcpy(o.spec.fs_uuid, "0b3a7c1e-0000-4000-8000-000000000000");
	prove(PP_TARGET_FS_UNAVAILABLE); /* trouble is an answer */
	finish();
}

static void test_raw_and_matrix(void **state)
{
	struct pp_matrix_row row;
	struct pp_error err = { 0 };
	const char *at, *end;
	struct pp_scan *s;
	struct pp_buf rows;
	struct pp_kv kv;
	int count = 0;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_RAW);
	prove(PP_TARGET_OK);
	layout(PP_APPEND, 1, 4 * MB);
	do_refused(PP_ORDER_PREWRITE, "needs files");
	layout(PP_OVERWRITE, 1, 128 * MB);
	do_refused(PP_ORDER_PREWRITE, "the device has");
	layout(PP_OVERWRITE, 1, 4 * MB);
	do_done(PP_ORDER_PREWRITE);
	o.method = pp_method_find("open_datasync (direct)");
	start_run();
	wait_acks(100);
	stop_run();
	s = scan();
	check_scan(s);
	pp_scan_free(s);

	o.methods[0] = pp_method_find("fdatasync");
	o.methods[1] = pp_method_find("write");
	o.method_count = 2;
	o.seconds_ms = 50;
	rows = order_data(PP_ORDER_MATRIX, &kv);
	pp_kv_release(&kv);
	at = rows.data;
	end = rows.data + rows.bytes;
	while (pp_block_next(&at, end, &kv, &err) == 1) {
		assert_int_equal(pp_matrix_row_get(&kv, "", &row, &err), 0);
		assert_true(row.status != PP_MATRIX_OK || row.ops > 0);
		pp_kv_release(&kv);
		count++;
	}
	assert_int_equal(count, 2);
	pp_buf_release(&rows);
	finish();
}

/* A folder of a mounted file system, by path; and nothing through a link that leads out of it. */
/* M7.6: a second writer on the target of a run, under an index of its own; it ends with the run. */
static void test_noise(void **state)
{
	struct pp_ledger *noise;
	struct pp_error err = { 0 };
	char path[128];
	int tries;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_RAW);
	prove(PP_TARGET_OK);
	layout(PP_OVERWRITE, 1, 4 * MB);
	do_refused(PP_ORDER_NOISE, "no run is on drive 3");
	do_done(PP_ORDER_PREWRITE);
	start_run();
	snprintf(path, sizeof(path), "%s/noise", folder);
	o.run_id.bytes[0] = 0x77;
	noise = pp_ledger_create(path, &o.run_id, 1, &err);
	assert_int_equal(pp_listener_bind(listener, session, RUN + PP_NOISE_INDEX, noise, &err), 0);
	o.layout.region_offset = 8 * MB;
	do_done(PP_ORDER_NOISE);
	do_refused(PP_ORDER_NOISE, "noise is on drive 3 already");
	/* more than its window: the echoes reach it */
	for (tries = 0; pp_ledger_acked(noise, 0) < 300 && tries < 6000; tries++)
		pp_clock_sleep_ms(5);
	assert_true(pp_ledger_acked(noise, 0) >= 300);
	wait_acks(300);
	stop_run();
	do_done(PP_ORDER_RELEASE); /* idle: neither writes any more */
	pp_listener_unbind(listener, session, RUN + PP_NOISE_INDEX);
	assert_int_equal(pp_ledger_close(noise, &err), 0);
	unlink(path);
	finish();
}

static enum pp_policy_state policy_order(enum pp_order_kind kind, struct pp_policy_answer *answer)
{
	struct pp_error err = { 0 };
	struct pp_kv kv = do_kind(kind);

	if (pp_policy_answer_get(&kv, answer, &err) != 0)
		fail_msg("%s", err.text);
	pp_kv_release(&kv);
	return answer->state;
}

/* M1.5: during a run nobody asks for the policy, by order or in this process; after it one may. */
static void test_policy_not_during_a_run(void **state)
{
	struct pp_policy_answer answer;
	struct pp_policy policy;
	struct pp_error err = { 0 };

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_RAW);
	o.setting = pp_policy_setting_find("cache-on");
	assert_int_equal(policy_order(PP_ORDER_POLICY, &answer), PP_POLICY_MADE);
	assert_true(answer.has_saved);
	o.saved = answer.saved;
	prove(PP_TARGET_OK);
	layout(PP_OVERWRITE, 1, 4 * MB);
	do_done(PP_ORDER_PREWRITE);
	assert_int_equal(pp_policy_read(node + 5, &policy, &err), 0);
	start_run();
	wait_acks(10);
	assert_int_equal(policy_order(PP_ORDER_POLICY, &answer), PP_POLICY_REFUSED);
	assert_non_null(strstr(answer.error, "stop it first"));
	assert_int_equal(policy_order(PP_ORDER_POLICY_SET, &answer), PP_POLICY_REFUSED);
	assert_int_equal(policy_order(PP_ORDER_POLICY_RESTORE, &answer), PP_POLICY_REFUSED);
	assert_int_equal(answer.policy.flushing, PP_TRUTH_UNKNOWN);
	assert_int_equal(pp_policy_read(node + 5, &policy, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	stop_run();
	assert_int_equal(pp_policy_read(node + 5, &policy, &err), 0);
	assert_int_equal(policy_order(PP_ORDER_POLICY, &answer), PP_POLICY_MADE);
	finish();
}

/* What a drive cannot be asked or set to is an answer, and what it was of another drive is not put back. */
static void test_policy_set(void **state)
{
	struct pp_policy_answer answer;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_RAW);
	assert_int_equal(policy_order(PP_ORDER_POLICY, &answer), PP_POLICY_MADE);
	assert_int_equal(answer.policy.drive_cache, PP_CACHE_UNKNOWN); /* a loop device has no word */
	o.saved = answer.saved;
	o.setting = pp_policy_setting_find("cache-on");
	assert_int_equal(policy_order(PP_ORDER_POLICY_SET, &answer), PP_POLICY_MADE);
	assert_true(pp_policy_matches(&answer.policy, o.setting));
	o.setting = pp_policy_setting_find("cache-off");
	assert_int_equal(policy_order(PP_ORDER_POLICY_SET, &answer), PP_POLICY_UNSUPPORTED);
	assert_false(pp_policy_matches(&answer.policy, o.setting));
	assert_int_equal(answer.policy.system_cache, PP_TRUTH_YES); /* and it says what there is */
	assert_int_equal(policy_order(PP_ORDER_POLICY_RESTORE, &answer), PP_POLICY_MADE);
	strcpy(o.saved.serial, "ANOTHER");
	assert_int_equal(policy_order(PP_ORDER_POLICY_RESTORE, &answer), PP_POLICY_REFUSED);
	strcpy(o.spec.serial, "ABSENT");
	assert_int_equal(policy_order(PP_ORDER_POLICY, &answer), PP_POLICY_UNSUPPORTED);
	finish();
}

/* Files on the drive may be written to; that is no leave to change what holds for all of it. */
static void test_policy_not_allowed(void **state)
{
	struct pp_policy_answer answer;

	(void)state;
	need_loop();
	start("uuid:0b3a7c1e-0000-4000-8000-000000000000");
	wait_connected();
	order_base(PP_TARGET_FILE);
	assert_int_equal(policy_order(PP_ORDER_POLICY, &answer), PP_POLICY_MADE); /* a look needs no leave */
	o.saved = answer.saved;
	o.setting = pp_policy_setting_find("cache-on");
	assert_int_equal(policy_order(PP_ORDER_POLICY_SET, &answer), PP_POLICY_REFUSED);
	assert_non_null(strstr(answer.error, "--allow 'policy:"));
	assert_int_equal(policy_order(PP_ORDER_POLICY_RESTORE, &answer), PP_POLICY_REFUSED);
	finish();
}

/* The policy holds for all of a drive: neither a folder nor a file system on it allows to change it. */
static void test_allow_policy(void **state)
{
	struct pp_allow allow = { 0 };
	struct pp_target_spec spec;
	struct pp_error err;

	(void)state;
	pp_target_spec_init(&spec);
	strcpy(spec.serial, "SER2");
	assert_int_equal(pp_allow_add(&allow, "SER1", &err), 0);
	assert_int_equal(pp_allow_add(&allow, "policy:SER2", &err), 0);
	assert_int_equal(pp_allow_add(&allow, "uuid:1234", &err), 0);
	assert_int_equal(pp_allow_policy(&allow, "SER1", &err), 0);
	assert_int_equal(pp_allow_policy(&allow, "SER2", &err), 0);
	assert_int_equal(pp_allow_policy(&allow, "SER3", &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_non_null(strstr(err.text, "--allow 'policy:SER3'"));
	assert_int_equal(pp_allow_policy(&allow, "SER", &err), -1);
	assert_int_equal(pp_allow_policy(&allow, "1234", &err), -1);
	/* And the other way round: the policy alone allows no write. */
	assert_int_equal(pp_allow_check(&allow, &spec, true, &err), -1);
	spec.kind = PP_TARGET_RAW;
	assert_int_equal(pp_allow_check(&allow, &spec, false, &err), -1);
}

static void test_allowed_folder(void **state)
{
	char mounted[96], inside[128], file[160];
	struct pp_target_spec spec;
	enum pp_target_state made;
	struct pp_error err = { 0 };

	(void)state;
	need_loop();
	snprintf(mounted, sizeof(mounted), "%s/mounted", folder);
	snprintf(inside, sizeof(inside), "%s/inside", mounted);
	snprintf(file, sizeof(file), "%s/" PP_ORDER_FILE, inside);
	order_base(PP_TARGET_FILE);
	spec = o.spec;
	strcpy(spec.fs_type, "ext4");
	spec.fs_partition = 0;
	if (pp_target_format(&spec, &made, &err) != 0)
		fail_msg("%s", err.text);
	mkdir(mounted, 0700);
	assert_int_equal(mount(node, mounted, "ext4", 0, NULL), 0);
	mkdir(inside, 0700);
	start(inside);
	wait_connected();
	do_refused(PP_ORDER_PROVE, "not on this agent's allow list");
	strcpy(o.spec.path, mounted);
	do_refused(PP_ORDER_PROVE, "not on this agent's allow list");
	strcpy(o.spec.path, inside);
	prove(PP_TARGET_OK);
	layout(PP_OVERWRITE, 1, 4 * MB);
	assert_int_equal(symlink("../outside", file), 0);
	do_refused(PP_ORDER_PREWRITE, "cannot open '" PP_ORDER_FILE "'");
	unlink(file);
	do_done(PP_ORDER_PREWRITE);
	start_run();
	wait_acks(50);
	stop_run();
	assert_int_equal(link(file, inside), -1);
	strcat(inside, "/second");
	assert_int_equal(link(file, inside), 0);
	do_refused(PP_ORDER_RUN, "one name");
	finish();
	umount(mounted);
}

static void test_allowed_uuid(void **state)
{
	struct pp_target_spec spec;
	enum pp_target_state made;
	struct pp_error err = { 0 };
	char allow[80];

	(void)state;
	need_loop();
	order_base(PP_TARGET_FILE);
	spec = o.spec;
	strcpy(spec.fs_type, "ext4");
	spec.fs_partition = 0;
	if (pp_target_format(&spec, &made, &err) != 0)
		fail_msg("%s", err.text);
	snprintf(allow, sizeof(allow), "uuid:%s", spec.fs_uuid);
	start(allow);
	wait_connected();
	do_refused(PP_ORDER_PROVE, "not on this agent's allow list"); /* "auto" is no UUID */
	strcpy(o.spec.fs_uuid, spec.fs_uuid);
	do_refused(PP_ORDER_FORMAT, "not on this agent's allow list");
	prove(PP_TARGET_OK);
	finish();
}

/* M2.4: without echoes a lane stops within W; an echo of what was never acked ends the session. */
static void test_window_and_false_echo(void **state)
{
	struct pp_echo echo = { .run_index = RUN, .lane = 0, .last = UINT64_C(1) << 40 };
	uint8_t bytes[PP_ECHO_BYTES];
	struct pp_stopped stopped;
	struct pp_event ev;
	uint64_t last;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_RAW);
	prove(PP_TARGET_OK);
	layout(PP_OVERWRITE, 1, 4 * MB);
	do_done(PP_ORDER_PREWRITE);
	start_run();
	wait_acks(100);
	pp_listener_unbind(listener, session, RUN);
	last = acked(0);
	pp_clock_sleep_ms(300);
	stopped = stop_run();
	assert_true(stopped.acked >= last);
	/* one lane, so the two are of the same */
	assert_true(stopped.issued <= last + pp_layout_window(&o.layout));

	start_run();
	wait_acks(100);
	pp_echo_put(&echo, bytes);
	assert_int_equal(pp_listener_send(listener, session, PP_FRAME_ECHO, bytes, sizeof(bytes), NULL),
		0);
	wait_event(PP_EVENT_CLOSED, &ev);
	pp_event_release(&ev);
	finish();
}

/* Nobody can hear an ack any more: the lanes end, the target is let go, the agent comes again. */
static void test_connection_loss_stops_the_lanes(void **state)
{
	struct pp_disk_counters before, after;
	struct pp_disk_source disk;
	struct pp_error err = { 0 };
	struct pp_scan *s;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_FILE);
	format();
	prove(PP_TARGET_OK);
	layout(PP_OVERWRITE, 2, 4 * MB);
	do_done(PP_ORDER_PREWRITE);
	start_run();
	wait_acks(200);
	assert_int_equal(pp_listener_end(listener, session, PP_CLOSE_LOCAL, NULL), 0);
	wait_connected(); /* only after the last session's threads have ended */
	assert_int_equal(pp_disk_source_open_name(node + 5, &disk, &err), 0);
	assert_int_equal(pp_disk_source_read(&disk, &before, &err), 0);
	pp_clock_sleep_ms(300);
	assert_int_equal(pp_disk_source_read(&disk, &after, &err), 0);
	assert_int_equal(before.writes, after.writes);
	pp_disk_source_close(&disk);
	prove(PP_TARGET_OK); /* so it was unmounted */
	s = scan();
	check_scan(s);
	pp_scan_free(s);
	finish();
}

/* M2.3: the first failed write is told, and no lane acks any more. */
static void test_failed_write(void **state)
{
	struct rlimit limit, low;
	struct pp_stopped stopped;
	struct pp_note note;
	uint64_t last;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_FILE);
	format();
	prove(PP_TARGET_OK);
	layout(PP_OVERWRITE, 2, 8 * MB);
	do_done(PP_ORDER_PREWRITE);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &limit);
	low = limit;
	low.rlim_cur = 4 * MB + 50 * 4096; /* of lane 1's region: 50 records */
	setrlimit(RLIMIT_FSIZE, &low);
	start_run();
	note = wait_note(PP_NOTE_FAILED);
	setrlimit(RLIMIT_FSIZE, &limit);
	assert_int_equal(note.lane, 1);
	assert_int_equal(note.seq, 51);
	assert_int_equal(note.os_code, EFBIG);
	assert_string_equal(note.call, "write");
	assert_non_null(strstr(note.text, "plugpull.target"));
	assert_true(acked(1) <= 50); /* an ack that had not left yet when the run ended never will */
	last = acked(0);
	pp_clock_sleep_ms(200);
	assert_int_equal(acked(0), last);
	stopped = stop_run();
	assert_true(stopped.failed);
	assert_non_null(strstr(stopped.error, "File too large"));
	finish();
}

static void test_append_until_full(void **state)
{
	struct pp_layout answered;
	struct pp_error err = { 0 };
	struct pp_stopped stopped;
	struct pp_scan *s;
	struct pp_kv kv;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_FILE);
	format();
	prove(PP_TARGET_OK);
	layout(PP_APPEND, 2, 4 * MB);
	kv = do_kind(PP_ORDER_PREWRITE);
	assert_int_equal(pp_layout_get(&kv, &answered, &err), 0);
	pp_kv_release(&kv);
	assert_int_equal(answered.base_slots[1], 1);
	o.layout = answered;
	start_run();
	wait_note(PP_NOTE_FULL);
	stopped = stop_run();
	assert_int_equal(stopped.lanes_full, 2);
	assert_int_equal(stopped.acked, 2 * (512 - 1));
	s = scan();
	check_scan(s);
	pp_scan_free(s);
	finish();
}

/* A file for each record, on a file system of the loop device: made, written, scanned by orders. */
static void test_files_of_records(void **state)
{
	static const enum pp_workload workloads[] = { PP_RENAME, PP_CREATE };
	struct pp_layout answered;
	struct pp_error err = { 0 };
	struct pp_stopped stopped;
	struct pp_scan *s;
	struct pp_kv kv;
	uint64_t slot;
	size_t i;

	(void)state;
	need_loop();
	start(image);
	wait_connected();
	order_base(PP_TARGET_FILE);
	format();
	prove(PP_TARGET_OK);
	for (i = 0; i < 2; i++) {
		layout(workloads[i], 1, 4 * MB);
		snprintf(o.file, sizeof(o.file), "target.%zu", i);
		kv = do_kind(PP_ORDER_PREWRITE);
		assert_int_equal(pp_layout_get(&kv, &answered, &err), 0);
		pp_kv_release(&kv);
		assert_int_equal(answered.base_slots[0], workloads[i] == PP_CREATE ? 1 : 0);
		o.layout = answered;
		o.run_id.bytes[0]++;
		s = scan();
		assert_true(pp_scan_base_whole(s, &o.layout));
		pp_scan_free(s);
		if (workloads[i] == PP_RENAME) {
			start_run();
			wait_acks(50);
			stopped = stop_run();
			assert_false(stopped.failed);
			s = scan();
			check_scan(s);
			pp_scan_free(s);
			pp_listener_unbind(listener, session, RUN);
			continue;
		}
		o.method = pp_method_find("write"); /* quick, and here nothing is cut */
		start_run();
		wait_note(PP_NOTE_FULL);
		stopped = stop_run();
		assert_int_equal(stopped.acked, o.layout.slots - 1);
		s = scan();
		for (slot = 0; slot < o.layout.slots; slot++)
			assert_int_equal(pp_scan_slot(s, 0, slot)->seq, slot);
		pp_scan_free(s);
	}
	finish();
}

/*
 * M2.3: an I/O error that only the kernel log knows of. The drive's file is in a tmpfs that gets
 * full; the lane writes where there is room already, we write where there is none.
 */
static void test_error_in_the_kernel_log(void **state)
{
	char small[96], filler[128];
	struct pp_stopped stopped;
	struct pp_note note;
	static _Alignas(4096) uint8_t block[4096];
	uint64_t last;
	char *saved = strdup(image);
	int fd, mounted, tries;
	pid_t child;

	(void)state;
	need_loop();
	if (access("/dev/kmsg", R_OK) != 0) {
		print_message("skipped: /dev/kmsg cannot be read\n");
		free(saved);
		return;
	}
	detach();
	snprintf(small, sizeof(small), "%s/small", folder);
	snprintf(image, sizeof(image), "%s/drive", small);
	snprintf(filler, sizeof(filler), "%s/filler", small);
	mkdir(small, 0700);
	mounted = mount("plugpull-test", small, "tmpfs", 0, "size=16m");
	assert_int_equal(mounted, 0);
	assert_int_equal(attach(), 0);
	start(image);
	wait_connected();
	order_base(PP_TARGET_RAW);
	o.method = pp_method_find("direct");
	prove(PP_TARGET_OK);
	layout(PP_OVERWRITE, 1, 4 * MB);
	do_done(PP_ORDER_PREWRITE);
	memset(block, 1, sizeof(block));
	fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, block, sizeof(block)) == sizeof(block))
		;
	close(fd);
	start_run();
	wait_acks(100);
	/* direct: a buffered write that fails would be told to the lane's descriptor too */
	fd = open(node, O_WRONLY | O_DIRECT | O_CLOEXEC);
	assert_int_equal(pwrite(fd, block, sizeof(block), 40 * MB), -1);
	/* The kernel says only so many errors in 5 s, of all disks together: one more each second. */
	child = fork();
	for (tries = 0; child == 0 && tries < 30; tries++) {
		sleep(1);
		if (pwrite(fd, block, sizeof(block), 40 * MB) >= 0)
			break;
	}
	if (child == 0)
		_exit(0);
	close(fd);
	note = wait_note(PP_NOTE_FAILED);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_string_equal(note.call, "kernel log");
	assert_non_null(strstr(note.text, node + 5));
	last = acked(0);
	pp_clock_sleep_ms(200);
	assert_int_equal(acked(0), last);
	stopped = stop_run();
	assert_true(stopped.failed);
	assert_string_equal(stopped.error, note.text);
	assert_int_equal(stopped.acked, acked(0));
	finish();
	detach();
	unlink(filler);
	umount(small);
	rmdir(small);
	strcpy(image, saved);
	free(saved);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allow_list),
		cmocka_unit_test(test_allow_policy),
		cmocka_unit_test(test_service_unit),
		cmocka_unit_test(test_hello_ping_and_garbage),
		cmocka_unit_test(test_wrong_key),
		cmocka_unit_test(test_broken_greeting_is_no_refusal),
		cmocka_unit_test(test_poweroff),
		cmocka_unit_test(test_one_drive_holds_up_no_other),
		cmocka_unit_test_setup_teardown(test_refused_targets, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_policy_set, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_policy_not_allowed, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_whole_dialogue, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_raw_and_matrix, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_noise, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_policy_not_during_a_run, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_allowed_folder, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_allowed_uuid, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_window_and_false_echo, set_up_drive,
			tear_down_drive),
		cmocka_unit_test_setup_teardown(test_connection_loss_stops_the_lanes, set_up_drive,
			tear_down_drive),
		cmocka_unit_test_setup_teardown(test_failed_write, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_append_until_full, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_files_of_records, set_up_drive, tear_down_drive),
		cmocka_unit_test_setup_teardown(test_error_in_the_kernel_log, set_up_drive,
			tear_down_drive),
	};
	int rc;

	if (world_set_up() != 0)
		return 99;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	clean_up();
	return rc;
}
