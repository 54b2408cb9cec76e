/* SPDX-License-Identifier: MIT
 *
 * Goal: an order is obeyed as it was meant or not at all; answers say what was put into them.
 * Method: every order and answer goes through its text and back with every field set to something
 * of its own; then each key is left out, each unknown one added, and each value spoiled. A seeded
 * fuzzer throws mutated orders at the parser.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/campaign/orders.h"

static void fill_spec(struct pp_target_spec *spec)
{
	pp_target_spec_init(spec);
	spec->kind = PP_TARGET_RAW;
	strcpy(spec->serial, "S4X Y=1");
	spec->drive_size_bytes = UINT64_MAX;
	strcpy(spec->fs_uuid, "0f-aa");
	strcpy(spec->fs_type, "ext4");
	spec->fs_partition = 3;
	strcpy(spec->mount_options, "nobarrier,data=ordered\\x");
	strcpy(spec->mount_dir, "/run/plugpull/x");
	strcpy(spec->directory, "a/b");
	strcpy(spec->path, "/srv/t");
	spec->size_bytes = 12345;
	strcpy(spec->destroy, "S4X");
	spec->force = true;
	spec->boot_drive = true;
	spec->wait_ms = 777;
}

static void fill_order(struct pp_order *o, enum pp_order_kind kind, struct pp_scan_range *ranges)
{
	struct pp_error err;

	pp_order_init(o, kind);
	fill_spec(&o->spec);
	o->index = 7;
	strcpy(o->serial, o->spec.serial);
	strcpy(o->other, "OTHER");
	assert_int_equal(pp_layout_init(&o->layout, PP_APPEND, 3, 4, 8192, 4096, false, 0,
		3ULL * 8192 * 1024, &err), 0);
	o->layout.base_slots[0] = 1;
	o->layout.base_slots[1] = 99;
	o->layout.base_slots[2] = o->layout.slots;
	strcpy(o->file, "tgt-2.x");
	o->method = pp_method_find("open_datasync (direct)");
	memset(&o->run_id, 0xa5, sizeof(o->run_id));
	o->pace_per_s = 1234;
	o->compressible = true;
	o->direct = true;
	ranges[0] = (struct pp_scan_range){ 0, 0, 0 };
	ranges[1] = (struct pp_scan_range){ 2, 5, o->layout.slots - 1 };
	o->ranges = ranges;
	o->range_count = 2;
	o->methods[0] = pp_method_find("fdatasync (direct)");
	o->methods[1] = pp_method_find("write");
	o->method_count = 2;
	o->seconds_ms = 1500;
	o->block_bytes = 4096;
	o->region_offset = 1 << 20;
	o->setting = pp_policy_setting_find("flushing-off");
	strcpy(o->saved.system, "linux");
	strcpy(o->saved.serial, "S4X Y=1");
	strcpy(o->saved.queue_write_cache, "write back");
	o->saved.user_write_cache_setting = -1;
	o->saved.cache_is_power_protected = 1;
	o->saved.before.drive_cache = PP_CACHE_OFF;
	o->saved.before.flushing = PP_TRUTH_YES;
}

static char *text_of(enum pp_order_kind kind)
{
	struct pp_scan_range ranges[2];
	struct pp_error err = { 0 };
	struct pp_order o;
	struct pp_buf buf;

	fill_order(&o, kind, ranges);
	pp_buf_init(&buf, PP_ORDER_BYTES_MAX);
	if (pp_order_put(&o, &buf, &err) != 0)
		fail_msg("%s: %s", pp_order_name(kind), err.text);
	return buf.data;
}

static int parse(const char *text, struct pp_error *err)
{
	struct pp_order o;
	int rc = pp_order_parse(&o, text, strlen(text), err);

	if (rc == 0)
		pp_order_release(&o);
	return rc;
}

static void same_spec(const struct pp_target_spec *a, const struct pp_target_spec *b)
{
	assert_int_equal(a->kind, b->kind);
	assert_string_equal(a->serial, b->serial);
	assert_true(a->drive_size_bytes == b->drive_size_bytes);
	assert_string_equal(a->fs_uuid, b->fs_uuid);
	assert_string_equal(a->fs_type, b->fs_type);
	assert_int_equal(a->fs_partition, b->fs_partition);
	assert_string_equal(a->mount_options, b->mount_options);
	assert_string_equal(a->mount_dir, b->mount_dir);
	assert_string_equal(a->directory, b->directory);
	assert_string_equal(a->path, b->path);
	assert_true(a->size_bytes == b->size_bytes);
	assert_string_equal(a->destroy, b->destroy);
	assert_int_equal(a->force, b->force);
	assert_int_equal(a->boot_drive, b->boot_drive);
	assert_int_equal(a->wait_ms, b->wait_ms);
}

static void test_every_order_comes_back(void **state)
{
	int kind;

	(void)state;
	for (kind = 0; kind < PP_ORDER_KINDS; kind++) {
		struct pp_scan_range ranges[2];
		struct pp_error err = { 0 };
		struct pp_order in, out;
		char *text = text_of((enum pp_order_kind)kind);

		fill_order(&in, (enum pp_order_kind)kind, ranges);
		if (pp_order_parse(&out, text, strlen(text), &err) != 0)
			fail_msg("%s: %s", text, err.text);
		assert_int_equal(out.kind, kind);
		if (strstr(text, "index="))
			assert_int_equal(out.index, 7);
		if (strstr(text, "\nserial="))
			assert_string_equal(out.serial[0] ? out.serial : out.spec.serial, in.serial);
		if (strstr(text, "fs_uuid="))
			same_spec(&in.spec, &out.spec);
		if (strstr(text, "base_slots="))
			assert_memory_equal(&in.layout, &out.layout, sizeof(in.layout));
		if (strstr(text, "file="))
			assert_string_equal(in.file, out.file);
		if (strstr(text, "method="))
			assert_ptr_equal(in.method, out.method);
		if (strstr(text, "pace_per_s="))
			assert_int_equal(out.pace_per_s, 1234);
		if (strstr(text, "run_id=")) {
			assert_true(pp_run_id_equal(&in.run_id, &out.run_id));
			assert_true(out.compressible);
		}
		if (strstr(text, "direct="))
			assert_true(out.direct);
		if (strstr(text, "ranges=")) {
			assert_int_equal(out.range_count, 2);
			assert_memory_equal(out.ranges, ranges, sizeof(ranges));
		}
		if (strstr(text, "methods=")) {
			assert_int_equal(out.method_count, 2);
			assert_ptr_equal(out.methods[0], in.methods[0]);
			assert_ptr_equal(out.methods[1], in.methods[1]);
			assert_int_equal(out.seconds_ms, 1500);
			assert_int_equal(out.block_bytes, 4096);
			assert_true(out.region_offset == 1 << 20);
		}
		if (strstr(text, "\nsetting="))
			assert_ptr_equal(out.setting, in.setting);
		if (strstr(text, "policy_serial="))
			assert_memory_equal(&out.saved, &in.saved, sizeof(in.saved));
		pp_order_release(&out);
		free(text);
	}
}

/* What each order must carry, so that a group forgotten in the table is noticed. */
static void test_orders_carry_their_groups(void **state)
{
	static const struct { enum pp_order_kind kind; const char *keys[6]; } rows[] = {
		{ PP_ORDER_IDENTIFY, { "serial=" } },
		{ PP_ORDER_SHARE, { "serial=", "other=" } },
		{ PP_ORDER_FORMAT, { "index=", "fs_uuid=", "destroy=" } },
		{ PP_ORDER_PROVE, { "index=", "fs_uuid=", "destroy=", "mount_options=" } },
		{ PP_ORDER_CHECK, { "index=", "fs_uuid=" } },
		{ PP_ORDER_PREWRITE, { "index=", "slots=", "file=", "run_id=", "direct=" } },
		{ PP_ORDER_RUN, { "index=", "slots=", "file=", "run_id=", "method=" } },
		{ PP_ORDER_NOISE, { "index=", "slots=", "file=", "run_id=" } },
		{ PP_ORDER_SCAN, { "index=", "slots=", "file=", "ranges=" } },
		{ PP_ORDER_MATRIX, { "index=", "methods=", "seconds_ms=" } },
		{ PP_ORDER_POLICY, { "index=", "serial=" } },
		{ PP_ORDER_POLICY_SET, { "index=", "serial=", "setting=", "boot_drive=" } },
		{ PP_ORDER_POLICY_RESTORE, { "index=", "serial=", "policy_serial=", "policy_before_flushing=",
			"policy_cache_is_power_protected=" } },
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = text_of(rows[i].kind);

		for (k = 0; k < 6 && rows[i].keys[k]; k++)
			if (!strstr(text, rows[i].keys[k]))
				fail_msg("%s without %s", pp_order_name(rows[i].kind), rows[i].keys[k]);
		free(text);
	}
}

static void test_a_missing_or_unknown_key_refuses(void **state)
{
	int kind;

	(void)state;
	for (kind = 0; kind < PP_ORDER_KINDS; kind++) {
		char *text = text_of((enum pp_order_kind)kind), *line = text, *more;
		size_t bytes = strlen(text);
		struct pp_error err;

		while (*line) {
			size_t n = (size_t)(strchr(line, '\n') + 1 - line);
			char *without = malloc(bytes + 1);

			memcpy(without, text, (size_t)(line - text));
			strcpy(without + (line - text), line + n);
			if (parse(without, &err) == 0)
				fail_msg("%s obeyed without %.*s", pp_order_name(kind), (int)n - 1, line);
			free(without);
			line += n;
		}
		more = malloc(bytes + 32);
		sprintf(more, "%sforce2=yes\n", text);
		assert_int_equal(parse(more, &err), -1);
		assert_non_null(strstr(err.text, "force2"));
		free(more);
		free(text);
	}
}

/* One value replaced; the rest is good. */
static void test_bad_values_refuse(void **state)
{
	static const struct { enum pp_order_kind kind; const char *key, *value; } rows[] = {
		{ PP_ORDER_RUN, "do", "runn" }, { PP_ORDER_RUN, "do", "ru" }, { PP_ORDER_RUN, "do", "" },
		{ PP_ORDER_RUN, "index", "64" }, { PP_ORDER_RUN, "index", "-1" },
		{ PP_ORDER_RUN, "lanes", "0" }, { PP_ORDER_RUN, "lanes", "65" },
		{ PP_ORDER_RUN, "lanes", "2" }, { PP_ORDER_RUN, "group", "65" },
		{ PP_ORDER_RUN, "record_bytes", "8193" }, { PP_ORDER_RUN, "record_bytes", "4294967296" },
		{ PP_ORDER_RUN, "record_bytes", "2048" }, { PP_ORDER_RUN, "unit_bytes", "100" },
		{ PP_ORDER_RUN, "sub_block", "maybe" }, { PP_ORDER_RUN, "region_offset", "513" },
		{ PP_ORDER_RUN, "slots", "1" }, { PP_ORDER_RUN, "slots", "1025" },
		{ PP_ORDER_RUN, "slots", "18446744073709551615" },
		{ PP_ORDER_RUN, "workload", "over" }, { PP_ORDER_RUN, "workload", "overwrite" },
		{ PP_ORDER_RUN, "base_slots", "1,2" }, { PP_ORDER_RUN, "base_slots", "1,2,3,4" },
		{ PP_ORDER_RUN, "base_slots", "1,2,99999999" }, { PP_ORDER_RUN, "base_slots", "1,,2" },
		{ PP_ORDER_RUN, "base_slots", "1,2,3," }, { PP_ORDER_RUN, "base_slots", "" },
		{ PP_ORDER_RUN, "file", "../x" }, { PP_ORDER_RUN, "file", "" },
		{ PP_ORDER_RUN, "file", ".x" }, { PP_ORDER_RUN, "file", "a/b" },
		{ PP_ORDER_RUN, "method", "fdatasyn" }, { PP_ORDER_RUN, "method", "" },
		{ PP_ORDER_RUN, "pace_per_s", "-1" }, { PP_ORDER_RUN, "pace_per_s", "100000001" },
		{ PP_ORDER_RUN, "run_id", "a5" }, { PP_ORDER_RUN, "compressible", "1" },
		{ PP_ORDER_PROVE, "kind", "fil" }, { PP_ORDER_PROVE, "serial", "" },
		{ PP_ORDER_PROVE, "serial", "a\\nb" }, { PP_ORDER_PROVE, "serial", "a\tb" },
		{ PP_ORDER_PROVE, "fs_partition", "-2" }, { PP_ORDER_PROVE, "wait_ms", "-2" },
		{ PP_ORDER_PROVE, "wait_ms", "99999999999" }, { PP_ORDER_PROVE, "force", "" },
		{ PP_ORDER_SCAN, "ranges", "3:0-1" }, { PP_ORDER_SCAN, "ranges", "0:0-999999" },
		{ PP_ORDER_SCAN, "ranges", "0:2-1" },
		{ PP_ORDER_MATRIX, "seconds_ms", "0" }, { PP_ORDER_MATRIX, "block_bytes", "100" },
		{ PP_ORDER_MATRIX, "methods", "write,none" }, { PP_ORDER_MATRIX, "methods", "write," },
		{ PP_ORDER_MATRIX, "region_offset", "1" },
		{ PP_ORDER_IDENTIFY, "serial", "" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *text = text_of(rows[i].kind), key[80], *at, *end, *bad;
		struct pp_error err;

		snprintf(key, sizeof(key), "%s=", rows[i].key);
		for (at = strstr(text, key); at && at != text && at[-1] != '\n';)
			at = strstr(at + 1, key);
		assert_non_null(at);
		end = strchr(at, '\n');
		bad = malloc(strlen(text) + 128);
		sprintf(bad, "%.*s%s%s%s", (int)(at - text), text, key, rows[i].value, end);
		if (parse(bad, &err) == 0)
			fail_msg("%s obeyed with %s%s", pp_order_name(rows[i].kind), key, rows[i].value);
		free(bad);
		free(text);
	}
}

static void test_ranges(void **state)
{
	static const char *const garbage[] = {
		",", "0", "0:", "0:1", "0:1-", "0:-1", ":1-2", "0:1-2,", ",0:1-2", "0:1-2,,0:3-4",
		"0:1-2 ", " 0:1-2", "a:1-2", "0:a-2", "0:1-b", "64:1-2", "-1:1-2", "0:2-1", "0:1-2-3",
		"0:1:2-3", "0:99999999999999999999-99999999999999999999", "0x0:1-2", "0:+1-2",
		"0:18446744073709551616-18446744073709551617",
		"0000000000000000000000000000000000000000000000000000000000000000000:1-2",
	};
	struct pp_scan_range *ranges;
	struct pp_error err;
	struct pp_buf buf;
	size_t i, count;

	(void)state;
	assert_int_equal(pp_ranges_parse("", &ranges, &count, &err), 0);
	assert_int_equal(count, 0);
	assert_null(ranges);
	assert_int_equal(pp_ranges_parse("0:0-0,63:5-18446744073709551615", &ranges, &count, &err), 0);
	assert_int_equal(count, 2);
	assert_int_equal(ranges[1].lane, 63);
	assert_true(ranges[1].first == 5 && ranges[1].last == UINT64_MAX);
	pp_buf_init(&buf, 1000);
	pp_ranges_put(&buf, ranges, count);
	assert_string_equal(buf.data, "0:0-0,63:5-18446744073709551615");
	pp_buf_release(&buf);
	free(ranges);
	for (i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		if (pp_ranges_parse(garbage[i], &ranges, &count, &err) == 0)
			fail_msg("'%s' passed", garbage[i]);
		assert_null(ranges);
		assert_int_equal(count, 0);
	}
}

/* ---- answers ------------------------------------------------------------------------------- */

static struct pp_kv kv_of(struct pp_buf *buf)
{
	struct pp_error err = { 0 };
	struct pp_kv kv;

	assert_false(buf->failed);
	if (pp_kv_parse(&kv, buf->data, buf->bytes, &err) != 0)
		fail_msg("%s", err.text);
	pp_buf_release(buf);
	return kv;
}


static void fill_drive(struct pp_drive_info *d)
{
	memset(d, 0, sizeof(*d));
	strcpy(d->name, "nvme0n1");
	strcpy(d->node, "/dev/nvme0n1");
	d->dev_major = 259;
	d->dev_minor = 1;
	strcpy(d->serial, "S\001\377");
	d->serial_of_bridge = true;
	strcpy(d->wwn, "eui.1");
	strcpy(d->model, "M=1\nx");
	strcpy(d->firmware, "F\\n");
	d->transport = PP_TRANSPORT_RAM;
	d->size_bytes = 1ULL << 62;
	d->logical_block_bytes = 512;
	d->physical_block_bytes = 4096;
	strcpy(d->write_cache, "write back");
	d->fua = true;
	d->drive_cache = PP_CACHE_ON;
	d->rotational = true;
	d->removable = true;
	d->read_only = true;
	d->has_partitions = true;
	d->stripe_bytes = 65536;
	d->no_volatile_cache = true;
	strcpy(d->raid_controller, "megaraid_sas");
	d->scsi_host = UINT32_MAX;
	strcpy(d->backing_file, "/x");
}

static void test_hello_and_drive(void **state)
{
	static struct pp_hello in = { .protocol = 1, .version = "0.1", .commit = "abc", .name = "rack 7",
		.boot_id = "01234567-89ab-cdef-0123-456789abcdef", .uptime_ns = 1ULL << 63,
		.agent_ns = 5, .kernel = "6.1", .os = "linux", .machine = "x86_64", .sha256 = "ff",
		.allow = "a\nuuid:b\n/c" };
	static struct pp_hello out;
	struct pp_drive_info drive;
	struct pp_drive_answer answer;
	struct pp_error err = { 0 };
	struct pp_buf buf;
	struct pp_kv kv;

	(void)state;
	pp_buf_init(&buf, 1 << 20);
	pp_hello_put(&buf, &in);
	kv = kv_of(&buf);
	assert_int_equal(pp_hello_get(&kv, &out, &err), 0);
	assert_memory_equal(&in, &out, sizeof(in));
	pp_kv_release(&kv);
	strcpy(in.boot_id, "01234567-89ab-cdef-0123-456789abcdeg");
	pp_hello_put(&buf, &in);
	kv = kv_of(&buf);
	assert_int_equal(pp_hello_get(&kv, &out, &err), -1); /* M5.2 */
	pp_kv_release(&kv);
	fill_drive(&drive);
	pp_drive_put(&buf, "drive_", &drive);
	kv = kv_of(&buf);
	assert_int_equal(pp_drive_get(&kv, "drive_", &answer, &err), 0);
	assert_memory_equal(&answer.info, &drive, sizeof(drive));
	assert_string_equal(answer.policy, "write back, fua");
	assert_int_equal(pp_drive_get(&kv, "", &answer, &err), -1);
	pp_kv_release(&kv);
}

static void test_proof(void **state)
{
	static struct pp_proof in, out;
	static struct pp_target target;
	struct pp_error err = { .text = "cannot mount" };
	struct pp_buf buf;
	struct pp_kv kv;

	(void)state;
	pp_target_init(&target);
	target.state = PP_TARGET_FS_DAMAGED;
	fill_drive(&target.drive);
	target.kind = PP_TARGET_FILE;
	strcpy(target.path, "/run/plugpull/S");
	target.size_bytes = 99;
	target.unit_bytes = 4096;
	strcpy(target.fs_uuid, "u-u");
	strcpy(target.fs_type, "xfs");
	strcpy(target.fs_node, "/dev/sda1");
	target.fs_partition = 1;
	memset(target.mount_options, 'o', sizeof(target.mount_options) - 1);
	target.no_barrier = true;
	strcpy(target.complaints, "EXT4-fs: one\ntwo");
	pp_proof_of(&in, &target, &err);
	strcpy(in.kernel, "6.1.0");
	assert_string_equal(in.error, "cannot mount");
	pp_buf_init(&buf, 1 << 20);
	pp_proof_put(&buf, &in);
	kv = kv_of(&buf);
	if (pp_proof_get(&kv, &out, &err) != 0)
		fail_msg("%s", err.text);
	pp_kv_release(&kv);
	assert_memory_equal(&in, &out, sizeof(in));
	assert_string_equal(out.mount_options, target.mount_options); /* part of the arm key: whole */
	target.state = PP_TARGET_OK;
	pp_proof_of(&in, &target, &err);
	assert_string_equal(in.error, "");
}

#define ROUND_TRIP(type, put, get, in) do { \
	struct type out_; \
	struct pp_error err_ = { 0 }; \
	struct pp_buf buf_; \
	struct pp_kv kv_; \
	pp_buf_init(&buf_, 1 << 20); \
	put(&buf_, in); \
	kv_ = kv_of(&buf_); \
	if (get(&kv_, &out_, &err_) != 0) \
		fail_msg("%s", err_.text); \
	pp_kv_release(&kv_); \
	assert_memory_equal(in, &out_, sizeof(out_)); \
	pp_buf_init(&buf_, 16); \
	pp_kv_add(&buf_, "x", "y"); \
	kv_ = kv_of(&buf_); \
	assert_int_equal(get(&kv_, &out_, &err_), -1); \
	pp_kv_release(&kv_); \
} while (0)

static void test_other_answers(void **state)
{
	static struct pp_share share;
	static struct pp_formatted formatted;
	static struct pp_checked checked;
	static struct pp_sizes sizes;
	static struct pp_started started;
	static struct pp_stopped stopped;
	static struct pp_scanned scanned;
	static struct pp_policy_answer policy;
	static struct pp_note note;

	(void)state;
	share.shared = true;
	strcpy(share.why, "md0");
	ROUND_TRIP(pp_share, pp_share_put, pp_share_get, &share);
	formatted.state = PP_TARGET_FAILED;
	strcpy(formatted.error, "no");
	strcpy(formatted.fs_uuid, "u");
	strcpy(formatted.fs_type, "t");
	formatted.fs_partition = PP_PARTITION_UNKNOWN;
	formatted.drive_size_bytes = 8;
	ROUND_TRIP(pp_formatted, pp_formatted_put, pp_formatted_get, &formatted);
	checked.check.result = PP_CHECK_UNAVAILABLE;
	strcpy(checked.check.program, "e2fsck");
	memset(checked.check.text, '\n', sizeof(checked.check.text) - 1);
	ROUND_TRIP(pp_checked, pp_checked_put, pp_checked_get, &checked);
	sizes.files = 3;
	sizes.present[0] = sizes.present[2] = true;
	sizes.bytes[2] = UINT64_MAX;
	ROUND_TRIP(pp_sizes, pp_sizes_put, pp_sizes_get, &sizes);
	started.agent_ns = 1;
	strcpy(started.disk, "sda");
	started.log_watched = true;
	strcpy(started.log_error, "e");
	ROUND_TRIP(pp_started, pp_started_put, pp_started_get, &started);
	stopped = (struct pp_stopped){ .issued = 1, .acked = 2, .failed = true, .error = "x",
		.lanes_full = 3, .lanes_left_behind = 4, .latency_ns_p50 = 5, .latency_ns_p99 = 6,
		.latency_ns_max = INT64_MAX, .latency_count = 7 };
	ROUND_TRIP(pp_stopped, pp_stopped_put, pp_stopped_get, &stopped);
	policy = (struct pp_policy_answer){ .state = PP_POLICY_FAILED, .error = "no",
		.policy = { .drive_cache = PP_CACHE_OFF, .flushing = PP_TRUTH_YES, .drive_words = "d=1" } };
	ROUND_TRIP(pp_policy_answer, pp_policy_answer_put, pp_policy_answer_get, &policy);
	policy.has_saved = true;
	policy.saved.cache_is_power_protected = -1;
	strcpy(policy.saved.queue_write_cache, "write back");
	ROUND_TRIP(pp_policy_answer, pp_policy_answer_put, pp_policy_answer_get, &policy);
	scanned.bytes = 9;
	scanned.direct = true;
	ROUND_TRIP(pp_scanned, pp_scanned_put, pp_scanned_get, &scanned);
	note.event = PP_NOTE_LOG;
	note.index = 63;
	note.lane = 63;
	note.seq = 1ULL << 63;
	strcpy(note.call, "fdatasync");
	note.os_code = -5;
	strcpy(note.text, "t");
	ROUND_TRIP(pp_note, pp_note_put, pp_note_get, &note);
}

static void test_blocks(void **state)
{
	static const char text[] = "a=1\nb=2\n\nc=\\n\n\n";
	const char *at = text, *end = text + sizeof(text) - 1;
	struct pp_error err;
	struct pp_kv kv;

	(void)state;
	assert_int_equal(pp_block_next(&at, end, &kv, &err), 1);
	assert_int_equal(kv.count, 2);
	pp_kv_release(&kv);
	assert_int_equal(pp_block_next(&at, end, &kv, &err), 1);
	assert_string_equal(pp_kv_find(&kv, "c"), "\n");
	pp_kv_release(&kv);
	assert_int_equal(pp_block_next(&at, end, &kv, &err), 0);
	at = text; /* cut off in the middle: every place but the ends of blocks */
	for (end = text + 1; end < text + sizeof(text) - 1; end++) {
		int rc;

		at = text;
		while ((rc = pp_block_next(&at, end, &kv, &err)) == 1)
			pp_kv_release(&kv);
		assert_int_equal(rc, end == text + 9 ? 0 : -1);
	}
}

/* ---- fuzz ---------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Whatever the parser takes must say the same when it is written and read again. */
static void check_stable(const char *data, size_t bytes)
{
	struct pp_error err = { 0 };
	struct pp_order order, again;
	struct pp_buf one, two;

	if (pp_order_parse(&order, data, bytes, &err) != 0) {
		assert_true(err.text[0] != '\0');
		return;
	}
	pp_buf_init(&one, PP_ORDER_BYTES_MAX);
	pp_buf_init(&two, PP_ORDER_BYTES_MAX);
	assert_int_equal(pp_order_put(&order, &one, &err), 0);
	assert_int_equal(pp_order_parse(&again, one.data, one.bytes, &err), 0);
	assert_int_equal(pp_order_put(&again, &two, &err), 0);
	assert_int_equal(one.bytes, two.bytes);
	assert_memory_equal(one.data, two.data, one.bytes);
	pp_buf_release(&one);
	pp_buf_release(&two);
	pp_order_release(&order);
	pp_order_release(&again);
}

static void test_fuzz(void **state)
{
	static const char *const pieces[] = { "=", "\n", ",", ":", "-", "\\", "\\n", "0",
		"18446744073709551615", "yes", "no", "append", "overwrite", "do=", "(direct)", "%s" };
	uint64_t seed = 0x9e3779b97f4a7c15;
	int round;

	(void)state;
	for (round = 0; round < 20000; round++) {
		char *text = text_of((enum pp_order_kind)(next_random(&seed) % PP_ORDER_KINDS));
		size_t bytes = strlen(text), changes = next_random(&seed) % 4;
		char *data = malloc(bytes + 256);

		memcpy(data, text, bytes);
		while (changes--) {
			const char *piece = pieces[next_random(&seed) % 16];
			size_t at = next_random(&seed) % (bytes + 1), n = strlen(piece);

			if (next_random(&seed) % 3 == 0 && bytes) {
				data[at % bytes] = (char)next_random(&seed);
			} else if (next_random(&seed) % 2) {
				bytes = at;
			} else {
				memmove(data + at + n, data + at, bytes - at);
				memcpy(data + at, piece, n);
				bytes += n;
			}
		}
		check_stable(data, bytes);
		free(data);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_order_comes_back),
		cmocka_unit_test(test_orders_carry_their_groups),
		cmocka_unit_test(test_a_missing_or_unknown_key_refuses),
		cmocka_unit_test(test_bad_values_refuse),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_hello_and_drive),
		cmocka_unit_test(test_proof),
		cmocka_unit_test(test_other_answers),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_fuzz),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
