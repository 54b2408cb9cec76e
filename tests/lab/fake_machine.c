/* SPDX-License-Identifier: MIT
 *
 * A machine under test that plays its part in milliseconds, without a VM and without root: it
 * speaks the agent's real protocol, writes by the real lanes, scans by the real scan, and loses its
 * power when a file says so. And it misbehaves on demand, in every way that method.md names.
 *
 *	fake_machine --dir DIR --drive SERIAL:BEHAVIOUR ...    the machine
 *	fake_machine --pdu DIR ID on|off|status                the power switch (profile exec)
 *
 * DIR/power holds "on" or "off", DIR/port the port of control, DIR/key the key. DIR/flag/NAME makes
 * one trouble: with a number in it, as often (or after as many milliseconds) as that; empty, always.
 * Flags are looked at when their moment comes.
 *
 * Losing power is silence, not a FIN: the old connection stays open, unread, in the graveyard. One
 * thread does everything, so a machine that is silent is silent in every respect.
 *
 * Flags of the machine, in milliseconds of a run: silent-after, fin-after, reboot-after,
 * io-error-after, idle-after (it writes no more, and lives on). At a power loss: ups (nothing happens), same-boot (of cuts in a run; lives-through: of any), orderly, keeps-power. At a
 * boot: no-boot, boot-ms, late-rst, uptime-large, policy. After a cut: drive-gone, drive-changed,
 * unreadable, fs-damaged, fs-unavailable (each also with .SERIAL, for one drive alone), scan-drops,
 * unstable, check-damaged, foreign-run (a slot of a run that nobody knows). Before the next run:
 * late-gone, late-damaged. At a set-up: base-broken. hold-ORDER keeps an order waiting, hold-reread
 * the scan with ranges, for as long as the flag is there.
 * Of the cache policy, which is as after a power-on at each boot: policy-no-SETTING (it cannot be had), policy-sticks (a set answers and does nothing), policy-slips (after a cut's first
 * reading it changes by itself), policy-refused (not on the allow list), policy-no-restore, policy-unread, policy-lasts (as on Windows: a boot leaves it as it is). DIR/policy
 * has a line for each change: "SERIAL set cache-off", "SERIAL restore".
 * Of the switch: pdu-lies (says ok, does nothing), pdu-false-off (reads off, is on), pdu-pending,
 * hold-off (after it has switched), hold-on (before it does).
 */
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_drive.h"
#include "fake_power.h"
#include "src/core/client.h"
#include "verifier/scan.h"

#define DRIVES_MAX   4
#define GRAVES_MAX   512
#define SECTOR       PP_DRIVE_SECTOR_BYTES

enum life { RUNNING, SHUT_DOWN, DARK };

static struct machine {
	struct pp_key key;
	enum life life;
	struct fake_drive drive[DRIVES_MAX];
	uint32_t drives;
	char boot_id[40];
	int64_t t_boot_ns, t_ready_ns, t_beat_ns;
	bool beats;
	uint32_t cuts;               /* power losses during a run */
	uint32_t checks;             /* of file systems since the last of them */
	bool silent, policy_changed, unstable_told, on_battery;
	int64_t t_step_ns;
	uint64_t steps;
	struct pp_client *client;
	struct pp_client *grave[GRAVES_MAX];
	uint32_t graves;
} m;

/* ---- power of the machine ------------------------------------------------------------------------ */

static void new_boot(void)
{
	uint8_t r[16];

	if (pp_random_bytes(r, sizeof(r), NULL) != 0)
		abort();
	snprintf(m.boot_id, sizeof(m.boot_id), "%02x%02x%02x%02x-%02x%02x-4%02x%x-8%02x%x-"
		"%02x%02x%02x%02x%02x%02x", r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7] & 15, r[8],
		r[9] & 15, r[10], r[11], r[12], r[13], r[14], r[15]);
	m.t_boot_ns = pp_clock_mono_ns();
}

static void bury_client(void)
{
	if (m.client && m.graves < GRAVES_MAX)
		m.grave[m.graves++] = m.client;
	m.client = NULL;
}

static void lose_power(void)
{
	bool was_run = false;
	uint32_t i;

	for (i = 0; i < m.drives; i++)
		was_run |= m.drive[i].running;
	if (was_run && flag("ups") >= 0) {
		m.on_battery = true;
		return;
	}
	m.cuts += was_run;
	if (was_run)
		m.checks = 0;
	bury_client();
	for (i = 0; i < m.drives; i++) {
		struct fake_drive *d = &m.drive[i];

		fake_forget(d);
		if (flag("keeps-power") >= 0)
			continue;
		if (was_run && take("orderly"))
			pp_sim_drive_power_off(d->sim, pp_clock_mono_ns());
		else
			pp_sim_drive_cut(d->sim, pp_clock_mono_ns(), 0, 1);
	}
	m.life = DARK;
}

static void shut_down(void)
{
	uint32_t i;

	for (i = 0; i < m.drives; i++) {
		fake_write_back(&m.drive[i]);
		if (take("base-broken")) /* what was written last never reached the medium */
			memset(m.drive[i].medium + (3U << 19), 0xA5, 4096);
		fake_forget(&m.drive[i]);
		if (flag("keeps-power") < 0)
			pp_sim_drive_power_off(m.drive[i].sim, pp_clock_mono_ns());
	}
	pp_client_close(m.client);
	m.client = NULL;
	raise_flag("machine-off", true);
	m.life = SHUT_DOWN;
}

/* A reset where the rebooted kernel would answer one: the old socket ends, hard. */
static void reset_graves(void)
{
	struct linger hard = { 1, 0 };
	int fd;

	for (fd = 3; fd < 1024; fd++) /* no other sockets are open when the machine boots */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	while (m.graves > 0)
		pp_client_close(m.grave[--m.graves]);
}

static void boot(void)
{
	int delay = flag("boot-ms");
	uint32_t i;

	if (m.cuts && flag("no-boot") >= 0)
		return;
	for (i = 0; i < m.drives; i++) {
		pp_sim_drive_power_on(m.drive[i].sim, pp_clock_mono_ns());
		if (flag("policy-lasts") < 0)
			continue;
		m.drive[i].flushes_dropped = m.drive[i].set_dropped;
		pp_sim_drive_set_cache(m.drive[i].sim, pp_clock_mono_ns(), !m.drive[i].set_off);
	}
	raise_flag("in-run", false);
	raise_flag("machine-off", false);
	if (flag("lives-through") < 0 && (m.cuts == 0 || flag("same-boot") < 0))
		new_boot();
	m.policy_changed = m.cuts > 0 && flag("policy") >= 0;
	m.silent = false;
	m.t_ready_ns = pp_clock_mono_ns() + (delay > 0 ? delay : 20) * PP_NS_PER_MS;
	m.life = RUNNING;
	if (flag("late-rst") >= 0)
		reset_graves();
}

/* ---- answers --------------------------------------------------------------------------------------- */

static struct fake_drive *by_serial(const char *serial)
{
	uint32_t i;

	for (i = 0; i < m.drives; i++)
		if (strcmp(m.drive[i].serial, serial) == 0)
			return &m.drive[i];
	return NULL;
}

static struct fake_drive *by_index(uint32_t index)
{
	uint32_t i;

	for (i = 0; i < m.drives; i++)
		if (m.drive[i].proven && m.drive[i].index == index)
			return &m.drive[i];
	return NULL;
}

static int answer_smart(uint32_t id, const struct fake_drive *d, struct pp_error *err)
{
	struct pp_sim_drive_counters n = pp_sim_drive_counters_of(d->sim, false);
	char json[512];

	if (m.cuts && (flag("drive-gone") >= 0 || flag("drive-changed") >= 0))
		return pp_fail(err, PP_ERR_PEER, "no drive has serial '%s'", d->serial);
	if (flag("no-counters") >= 0)
		return 0;
	snprintf(json, sizeof(json), "{\"serial_number\": \"%s\", "
		"\"nvme_smart_health_information_log\": {\"power_cycles\": %llu, "
		"\"unsafe_shutdowns\": %llu, \"media_errors\": 0}}\n", d->serial,
		(unsigned long long)n.power_cycles, (unsigned long long)n.unsafe_shutdowns);
	return pp_client_send_data(m.client, id, json, strlen(json), err);
}

static void answer_format(struct fake_drive *d, const struct pp_order *o, struct pp_buf *kv)
{
	struct pp_formatted f = { .state = PP_TARGET_OK, .drive_size_bytes = FAKE_DRIVE_BYTES };
	static uint32_t made;

	if (d->uuid[0] && !o->spec.force) {
		f.state = PP_TARGET_REFUSED;
		snprintf(f.error, sizeof(f.error), "'/dev/nvme0n1' holds a file system (ext4)");
	} else {
		snprintf(d->uuid, sizeof(d->uuid), "00000000-0000-4000-8000-%012x", ++made);
		snprintf(f.fs_uuid, sizeof(f.fs_uuid), "%s", d->uuid);
		snprintf(f.fs_type, sizeof(f.fs_type), "ext4");
	}
	pp_formatted_put(kv, &f);
}

/* The trouble that a drive is in after a cut. */
static enum pp_target_state trouble(const struct fake_drive *d)
{
	char name[96];
	static const struct {
		const char *flag;
		enum pp_target_state state;
	} rows[] = {
		{ "drive-gone", PP_TARGET_DRIVE_GONE },
		{ "drive-changed", PP_TARGET_DRIVE_CHANGED },
		{ "unreadable", PP_TARGET_DRIVE_UNREADABLE },
		{ "fs-damaged", PP_TARGET_FS_DAMAGED },
		{ "fs-unavailable", PP_TARGET_FS_UNAVAILABLE },
	};
	size_t i;

	if (m.checks && flag("late-gone") >= 0)
		return PP_TARGET_DRIVE_GONE;
	for (i = 0; m.cuts && i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(name, sizeof(name), "%s.%s", rows[i].flag, d->serial);
		if (take(rows[i].flag) || take(name))
			return rows[i].state;
	}
	return PP_TARGET_OK;
}

static void answer_prove(struct fake_drive *d, const struct pp_order *o, struct pp_buf *kv)
{
	struct pp_proof p = { .state = trouble(d), .kind = o->spec.kind, .unit_bytes = FAKE_UNIT_BYTES,
		.size_bytes = FAKE_DRIVE_BYTES };

	fake_fill_info(d, m.policy_changed, &p.drive.info);
	pp_drive_policy(&p.drive.info, p.drive.policy, sizeof(p.drive.policy));
	snprintf(p.kernel, sizeof(p.kernel), "Fake 1");
	snprintf(p.path, sizeof(p.path), o->spec.kind == PP_TARGET_RAW ? "/dev/nvme0n1" : "/fake");
	if (o->spec.kind == PP_TARGET_FILE) {
		snprintf(p.fs_type, sizeof(p.fs_type), "ext4");
		snprintf(p.fs_uuid, sizeof(p.fs_uuid), "%s", d->uuid);
		snprintf(p.mount_options, sizeof(p.mount_options), "rw,relatime");
		if (p.state == PP_TARGET_OK && strcmp(o->spec.fs_uuid, d->uuid) != 0)
			p.state = PP_TARGET_FS_UNAVAILABLE;
	}
	if (p.state != PP_TARGET_OK)
		snprintf(p.error, sizeof(p.error), "fake trouble: %s", pp_target_state_name(p.state));
	d->proven = p.state == PP_TARGET_OK;
	d->index = o->index;
	d->kind = o->spec.kind;
	pp_proof_put(kv, &p);
}

/* Where the file that an order names lies on the drive; a raw device is one. */
static uint64_t file_at(const struct fake_drive *d, const struct pp_order *o)
{
	if (d->kind != PP_TARGET_FILE || strcmp(o->file, PP_ORDER_FILE) == 0)
		return 0;
	return strcmp(o->file, PP_NOISE_FILE) == 0 ? FAKE_NOISE_AT : FAKE_SECOND_AT;
}

static int answer_prewrite(struct fake_drive *d, struct pp_order *o, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_layout *l = &o->layout;
	uint8_t record[1 << 16];
	uint32_t lane;
	uint64_t slot;

	if (l->workload != PP_OVERWRITE || l->lanes > FAKE_LANES || l->record_bytes > sizeof(record))
		return pp_fail(err, PP_ERR_REFUSED, "the fake machine knows only small overwrite targets");
	for (lane = 0; lane < l->lanes; lane++)
		for (slot = 0; slot < l->slots; slot++) {
			struct pp_record r = { .run = o->run_id, .lane = lane,
				.cells = l->record_bytes / PP_CELL_BYTES,
				.offset = pp_layout_offset(l, lane, slot) };

			pp_record_fill(record, &r);
			if (fake_write(d, NULL, record, l->record_bytes, file_at(d, o) + r.offset) != 0)
				return pp_fail_os(err, errno, "cannot write the base");
		}
	if (fake_write_back(d) != 0 || fake_flush(d) != 0)
		return pp_fail_os(err, errno, "cannot sync the base");
	pp_layout_put(kv, l);
	return 0;
}

/* ---- cache policy ----------------------------------------------------------------------------------- */

static void note_policy(const struct fake_drive *d, const char *what, const char *setting)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/policy", fake_dir);
	f = fopen(path, "a");
	if (!f)
		return;
	fprintf(f, "%s %s%s%s\n", d->serial, what, setting[0] ? " " : "", setting);
	fclose(f);
}

static void make_policy(struct fake_drive *d, bool cache_on, bool dropped)
{
	pp_sim_drive_set_cache(d->sim, pp_clock_mono_ns(), cache_on);
	d->flushes_dropped = d->set_dropped = dropped;
	d->set_off = !cache_on;
}

static int answer_policy(struct fake_drive *d, const struct pp_order *o, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_policy_answer a = { .state = PP_POLICY_MADE };
	const struct pp_policy_setting *s = o->setting;
	char name[64];

	(void)err;
	snprintf(name, sizeof(name), "policy-no-%s", s ? s->name : "restore");
	if (flag("policy-unread") >= 0) {
		a.state = PP_POLICY_UNSUPPORTED;
		snprintf(a.error, sizeof(a.error), "fake trouble: cannot be asked");
	} else if (o->kind != PP_ORDER_POLICY && flag("policy-refused") >= 0) {
		a.state = PP_POLICY_REFUSED;
		snprintf(a.error, sizeof(a.error), "the cache policy of drive '%s' may not be changed here",
			d->serial);
	} else if (o->kind != PP_ORDER_POLICY && flag(name) >= 0) {
		a.state = s ? PP_POLICY_UNSUPPORTED : PP_POLICY_FAILED;
		snprintf(a.error, sizeof(a.error), "fake trouble: %s", name);
	} else if (o->kind == PP_ORDER_POLICY_SET) {
		note_policy(d, "set", s->name);
		if (flag("policy-sticks") < 0)
			make_policy(d, s->write_cache == PP_TRUTH_YES, s->flushing == PP_TRUTH_NO);
	} else if (o->kind == PP_ORDER_POLICY_RESTORE) {
		note_policy(d, "restore", "");
		make_policy(d, o->saved.before.drive_cache == PP_CACHE_ON,
			strcmp(o->saved.queue_write_cache, "write through") == 0);
	} else if (d->proven && flag("policy-slips") >= 0) {
		make_policy(d, !pp_sim_drive_cache_is_on(d->sim), false);
	}
	fake_policy(d, &a.policy);
	a.has_saved = o->kind == PP_ORDER_POLICY && a.state == PP_POLICY_MADE;
	fake_saved(d, &a.saved);
	pp_policy_answer_put(kv, &a);
	return 0;
}

/* ---- runs -------------------------------------------------------------------------------------------- */

static void send_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct fake_drive *d = ctx;

	pp_client_send_ack(m.client, d->index, lane, first, last, NULL);
}

static int answer_run(struct fake_drive *d, const struct pp_order *o, struct pp_buf *kv,
	struct pp_error *err)
{
	const struct pp_lane_io io = { .ctx = d, .write = lane_write, .sync = lane_sync,
		.now_ns = lane_now };
	const struct pp_lane_peer peer = { d, send_ack };
	struct pp_started started = { .agent_ns = (uint64_t)pp_clock_mono_ns(), .log_watched = true };
	uint32_t i;

	if (o->layout.lanes > FAKE_LANES || o->layout.record_bytes > 1U << 16)
		return pp_fail(err, PP_ERR_REFUSED, "the fake machine has no room for these lanes");
	d->layout = o->layout;
	d->run_at = file_at(d, o);
	d->method = o->method;
	d->run.state = PP_RUN_RUNNING;
	d->told = false;
	for (i = 0; i < d->layout.lanes; i++) {
		pp_lane_init(&d->lane[i], i, &d->layout, d->method, &o->run_id, 0, &io, &peer, &d->run,
			d->buf[i], NULL);
		if (o->pace_per_s)
			d->lane[i].pace_ns = d->layout.group * PP_NS_PER_S / o->pace_per_s;
	}
	d->running = m.beats = true;
	raise_flag("in-run", true); /* the switch's own troubles are for cuts, not for set-ups */
	d->t_run_ns = pp_clock_mono_ns();
	snprintf(started.disk, sizeof(started.disk), "nvme0n1");
	pp_started_put(kv, &started);
	return 0;
}

static void send_noise_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct fake_drive *d = ctx;

	pp_client_send_ack(m.client, d->index + PP_NOISE_INDEX, lane, first, last, NULL);
}

static int answer_noise(struct fake_drive *d, const struct pp_order *o, struct pp_error *err)
{
	const struct pp_lane_io io = { .ctx = d, .write = noise_write, .now_ns = lane_now };
	const struct pp_lane_peer peer = { d, send_noise_ack };

	if (!d->running || o->layout.lanes != 1 || o->layout.record_bytes > 1U << 16)
		return pp_fail(err, PP_ERR_REFUSED, "the fake machine has no room for this noise");
	d->noise_layout = o->layout;
	d->noise_at = file_at(d, o);
	pp_lane_init(&d->noise, 0, &d->noise_layout, pp_method_find(PP_NOISE_METHOD), &o->run_id, 0, &io,
		&peer, &d->run, d->noise_buf, NULL);
	d->noisy = true;
	return 0;
}

static void send_io_error(const struct fake_drive *d)
{
	struct pp_note note = { .event = PP_NOTE_FAILED, .index = d->index, .call = "fdatasync",
		.os_code = EIO, .text = "cannot sync 'plugpull.target': Input/output error" };
	struct pp_buf kv;

	pp_buf_init(&kv, 4096);
	pp_note_put(&kv, &note);
	/* NOTE is a kv frame; the client has no call of its own for it but the generic send. */
	pp_client_send(m.client, PP_FRAME_NOTE, kv.data, kv.bytes, NULL);
	pp_buf_release(&kv);
}

/* What befalls the machine in the middle of a run. True: the connection is gone. */
static bool befall(struct fake_drive *d)
{
	int64_t ms = (pp_clock_mono_ns() - d->t_run_ns) / PP_NS_PER_MS;
	uint32_t i;

	if (d->told)
		return false;
	if (flag("io-error-after") >= 0 && ms >= flag("io-error-after")) {
		d->told = true;
		d->run.state = PP_RUN_FAILED;
		send_io_error(d);
	} else if (flag("silent-after") >= 0 && ms >= flag("silent-after")) {
		d->told = m.silent = true;
	} else if (flag("fin-after") >= 0 && ms >= flag("fin-after")) {
		d->told = true;
		pp_client_close(m.client);
		m.client = NULL;
		m.t_ready_ns = pp_clock_mono_ns() + 30 * PP_NS_PER_S;
		return true;
	} else if (flag("reboot-after") >= 0 && ms >= flag("reboot-after")) {
		bury_client();
		for (i = 0; i < m.drives; i++)
			fake_forget(&m.drive[i]);
		new_boot();
		m.t_ready_ns = pp_clock_mono_ns() + 20 * PP_NS_PER_MS;
		return true;
	}
	return false;
}

static void step_lanes(void)
{
	int64_t now = pp_clock_mono_ns();
	uint32_t i, k, n;

	if (now - m.t_step_ns < PP_NS_PER_MS) /* some thousand records a second are enough */
		return;
	m.t_step_ns = now;
	m.steps++;

	for (i = 0; i < m.drives; i++) {
		struct fake_drive *d = &m.drive[i];

		if (!d->running)
			continue;
		if (befall(d) || m.silent)
			return;
		if (flag("idle-after") >= 0 && now - d->t_run_ns >= flag("idle-after") * PP_NS_PER_MS)
			continue;
		/* Each sync of a lane makes the noise durable too: there must be time in between. */
		for (k = 0; k < d->layout.lanes && (!d->noisy || m.steps % 128 == 0); k++)
			for (n = 0; n < 6 * d->layout.group; n++)
				if (pp_lane_step(&d->lane[k]) != PP_LANE_MORE)
					break;
		for (n = 0; d->noisy && n < 8 && pp_lane_step(&d->noise) == PP_LANE_MORE; n++)
			;
	}
}

static void beat(void)
{
	struct pp_beat_disk disks[DRIVES_MAX];
	uint32_t i, n = 0;
	int64_t now = pp_clock_mono_ns();

	if (now - m.t_beat_ns < 10 * PP_NS_PER_MS)
		return;
	m.t_beat_ns = now;
	for (i = 0; i < m.drives; i++)
		if (m.drive[i].running)
			disks[n++] = (struct pp_beat_disk){ m.drive[i].index, m.drive[i].writes,
				m.drive[i].writes * 8, m.drive[i].flushes };
	pp_client_send_beat(m.client, (uint64_t)now, disks, n, NULL);
}

/* ---- scan --------------------------------------------------------------------------------------------- */

struct scanning {
	struct fake_drive *d;
	uint32_t id;
	uint64_t bytes, at; /* at: of the file, on the drive */
	bool full;
};

static int scan_size(void *ctx, uint32_t file, uint64_t *bytes, int32_t *os_code)
{
	(void)ctx;
	(void)file;
	*os_code = 0;
	*bytes = FAKE_DRIVE_BYTES;
	return 0;
}

static int scan_read(void *ctx, uint32_t file, uint64_t offset, void *buf, size_t bytes,
	int32_t *os_code)
{
	struct scanning *s = ctx;
	uint64_t spot = s->d->layout.region_offset;

	(void)file;
	if (fake_read(s->d, buf, bytes, s->at + offset) != 0) {
		*os_code = errno;
		return -1;
	}
	if (m.cuts && flag("foreign-run") >= 0 && offset <= spot && spot < offset + bytes) {
		struct pp_record r = { .run = { { 0x42 } }, .seq = 7, .offset = spot, .durable = 1,
			.cells = s->d->layout.record_bytes / PP_CELL_BYTES };

		pp_record_fill((uint8_t *)buf + (spot - offset), &r);
	}
	/* One slot that the first read of a target misses and later ones find. */
	if (s->full && m.cuts && flag("unstable") >= 0 && !m.unstable_told && offset <= spot &&
		spot < offset + bytes) {
		memset((uint8_t *)buf + (spot - offset), 0, PP_CELL_BYTES);
		m.unstable_told = true;
	}
	return 0;
}

static int scan_sink(void *ctx, const void *data, size_t bytes, struct pp_error *err)
{
	struct scanning *s = ctx;

	while (bytes) {
		size_t now = bytes < PP_ORDER_DATA_BYTES ? bytes : PP_ORDER_DATA_BYTES;

		if (m.cuts && s->bytes > 4096 && take("scan-drops"))
			return pp_fail(err, PP_ERR_PEER, "the fake network breaks");
		if (pp_client_send_data(m.client, s->id, data, now, err) != 0)
			return -1;
		s->bytes += now;
		data = (const uint8_t *)data + now;
		bytes -= now;
	}
	return 0;
}

static int answer_scan(struct fake_drive *d, uint32_t id, const struct pp_order *o,
	struct pp_buf *kv, struct pp_error *err)
{
	struct scanning s = { .d = d, .id = id, .full = o->range_count == 0,
		.at = file_at(d, o) };
	const struct pp_scan_source source = { &s, scan_size, scan_read, 512 };
	struct pp_scanned scanned = { .direct = true };

	d->layout = o->layout;
	if (pp_scan_make(&o->layout, &source, o->ranges, o->range_count, scan_sink, &s, err) != 0) {
		pp_client_close(m.client); /* a broken line, not a failed order */
		m.client = NULL;
		return 0;
	}
	scanned.bytes = s.bytes;
	pp_scanned_put(kv, &scanned);
	return 0;
}

/* ---- orders ---------------------------------------------------------------------------------------------- */

static int answer(uint32_t id, struct pp_order *o, struct pp_buf *kv, struct pp_error *err)
{
	bool named = o->kind == PP_ORDER_IDENTIFY || o->kind == PP_ORDER_SMART ||
		o->kind == PP_ORDER_SHARE;
	bool opens = o->kind == PP_ORDER_FORMAT || o->kind == PP_ORDER_PROVE ||
		o->kind == PP_ORDER_CHECK || o->kind == PP_ORDER_POLICY ||
		o->kind == PP_ORDER_POLICY_SET || o->kind == PP_ORDER_POLICY_RESTORE;
	struct fake_drive *d = named ? by_serial(o->serial) : opens ? by_serial(o->spec.serial)
		: by_index(o->index);
	struct pp_checked checked = { .check = { .result = PP_CHECK_CLEAN } };
	struct pp_stopped stopped = { .issued = 0 };
	struct pp_share share = { .shared = flag("shared") >= 0, .why = "one RAID card" };
	struct pp_drive_info info;

	if (o->kind == PP_ORDER_PING || o->kind == PP_ORDER_POWEROFF || o->kind == PP_ORDER_REBOOT)
		return 0;
	if (o->kind == PP_ORDER_RELEASE || o->kind == PP_ORDER_STOP) {
		if (d)
			d->running = d->noisy = false;
		if (d && o->kind == PP_ORDER_RELEASE)
			d->proven = false;
		if (o->kind == PP_ORDER_STOP)
			pp_stopped_put(kv, &stopped);
		return 0;
	}
	if (!d)
		return pp_fail(err, PP_ERR_PEER, "no such drive here, or it is not proven");
	switch (o->kind) {
	case PP_ORDER_IDENTIFY:
		fake_fill_info(d, m.policy_changed, &info);
		pp_drive_put(kv, "", &info);
		return 0;
	case PP_ORDER_SMART: return answer_smart(id, d, err);
	case PP_ORDER_SHARE: pp_share_put(kv, &share); return 0;
	case PP_ORDER_FORMAT: answer_format(d, o, kv); return 0;
	case PP_ORDER_PROVE: answer_prove(d, o, kv); return 0;
	case PP_ORDER_CHECK:
		if (m.checks && flag("late-gone") >= 0)
			return pp_fail(err, PP_ERR_PEER, "no such drive");
		if ((m.cuts && take("check-damaged")) || (m.checks && take("late-damaged")))
			checked.check.result = PP_CHECK_DAMAGED;
		snprintf(checked.check.text, sizeof(checked.check.text), "fake");
		pp_checked_put(kv, &checked);
		m.checks += m.cuts != 0;
		return 0;
	case PP_ORDER_PREWRITE: return answer_prewrite(d, o, kv, err);
	case PP_ORDER_POLICY:
	case PP_ORDER_POLICY_SET:
	case PP_ORDER_POLICY_RESTORE: return answer_policy(d, o, kv, err);
	case PP_ORDER_RUN: return answer_run(d, o, kv, err);
	case PP_ORDER_NOISE: return answer_noise(d, o, err);
	case PP_ORDER_SCAN: return answer_scan(d, id, o, kv, err);
	default: return pp_fail(err, PP_ERR_PEER, "the fake machine does not know this order");
	}
}

/* Waits while the test wants it to; false when the power went meanwhile. */
static bool held(const struct pp_order *o)
{
	char name[32];

	snprintf(name, sizeof(name), "hold-%s", o->kind == PP_ORDER_SCAN && o->range_count ? "reread"
		: pp_order_name(o->kind));
	while (flag(name) >= 0) {
		pp_clock_sleep_ms(2);
		if (!power_is_on() && !m.on_battery)
			return false;
	}
	return true;
}

static void serve_request(const struct pp_frame *frame)
{
	struct pp_error err = { 0 };
	struct pp_reply request;
	struct pp_order order;
	struct pp_buf kv;
	uint8_t status = PP_ANSWER_DONE;

	pp_buf_init(&kv, 1U << 20);
	if (pp_reply_parse(frame, &request, &err) != 0)
		return;
	if (pp_order_parse(&order, request.rest, request.rest_bytes, &err) != 0) {
		status = PP_ANSWER_REFUSED;
	} else if (!held(&order)) {
		pp_order_release(&order);
		return;
	} else {
		if (answer(request.id, &order, &kv, &err) != 0)
			status = PP_ANSWER_FAILED;
	}
	if (status != PP_ANSWER_DONE)
		pp_kv_add(&kv, "error", err.text);
	if (m.client)
		pp_client_respond(m.client, request.id, status, &kv, NULL);
	pp_buf_release(&kv);
	if (status == PP_ANSWER_DONE && m.client && order.kind == PP_ORDER_POWEROFF)
		shut_down();
	if (status != PP_ANSWER_REFUSED)
		pp_order_release(&order);
}

static void serve_echo(const struct pp_frame *frame)
{
	struct fake_drive *d;
	struct pp_echo echo;

	if (pp_echo_parse(frame, &echo, NULL) != 0)
		return;
	d = by_index(echo.run_index % PP_NOISE_INDEX);
	if (d && d->noisy && echo.run_index >= PP_NOISE_INDEX)
		pp_lane_echo(&d->noise, echo.last, NULL);
	else if (d && d->running && echo.lane < d->layout.lanes)
		pp_lane_echo(&d->lane[echo.lane], echo.last, NULL);
}

/* Control is gone: what ran for it ends, as with the real agent. */
static void hang_up(void)
{
	uint32_t i;

	pp_client_close(m.client);
	m.client = NULL;
	m.t_ready_ns = pp_clock_mono_ns() + 50 * PP_NS_PER_MS;
	for (i = 0; i < m.drives; i++)
		m.drive[i].running = m.drive[i].noisy = m.drive[i].proven = false;
}

static void serve(void)
{
	struct pp_frame frame;
	int rc, n;

	for (n = 0; n < 64; n++) {
		rc = pp_client_recv(m.client, &frame, n ? 0 : 1, NULL);
		if (rc < 0) {
			hang_up();
			return;
		}
		if (rc == 0)
			break;
		if (frame.type == PP_FRAME_ECHO)
			serve_echo(&frame);
		else if (frame.type == PP_FRAME_REQUEST)
			serve_request(&frame);
		if (!m.client)
			return;
	}
	step_lanes();
	if (m.client && !m.silent && m.beats)
		beat();
}

static void connect_to_control(void)
{
	struct pp_hello hello = { .protocol = PP_WIRE_VERSION, .version = "fake", .commit = "fake",
		.name = "fake", .kernel = "Fake 1", .os = "linux", .machine = "x86_64" };
	struct pp_buf kv;
	char port[32];

	if (pp_clock_mono_ns() < m.t_ready_ns || !read_text("port", port, sizeof(port)))
		return;
	m.client = pp_client_connect("127.0.0.1", (uint16_t)atoi(port), &m.key, 1000, NULL);
	if (!m.client) {
		m.t_ready_ns = pp_clock_mono_ns() + 50 * PP_NS_PER_MS;
		return;
	}
	snprintf(hello.boot_id, sizeof(hello.boot_id), "%s", m.boot_id);
	hello.agent_ns = (uint64_t)pp_clock_mono_ns();
	hello.uptime_ns = (uint64_t)(pp_clock_mono_ns() - m.t_boot_ns) +
		(m.cuts && flag("uptime-large") >= 0 ? 3600ULL * PP_NS_PER_S : 0);
	pp_buf_init(&kv, 1U << 16);
	pp_hello_put(&kv, &hello);
	m.beats = false; /* as the agent: from its first run on */
	pp_client_send(m.client, PP_FRAME_HELLO, kv.data, kv.bytes, NULL);
	pp_buf_release(&kv);
}

static void live(pid_t parent)
{
	while (getppid() == parent) {
		bool on = power_is_on();

		m.on_battery = m.on_battery && !on;
		if (m.life == RUNNING && !on && !m.on_battery)
			lose_power();
		else if (m.life == SHUT_DOWN && !on)
			m.life = DARK;
		else if (m.life == DARK && on)
			boot();
		if (m.life == RUNNING && !m.client && !m.silent)
			connect_to_control();
		if (m.life == RUNNING && m.client && !m.silent)
			serve();
		else
			pp_clock_sleep_ms(1);
	}
}

int main(int argc, char **argv)
{
	char path[512], *colon;
	struct pp_error err = { 0 };
	int i;

	if (argc == 5 && strcmp(argv[1], "--pdu") == 0) {
		fake_dir = argv[2];
		return pdu(argv[4]);
	}
	signal(SIGPIPE, SIG_IGN);
	for (i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--dir") == 0) {
			fake_dir = argv[i + 1];
		} else if (strcmp(argv[i], "--drive") == 0 && m.drives < DRIVES_MAX &&
			(colon = strchr(argv[i + 1], ':'))) {
			*colon = '\0';
			if (fake_drive_open(&m.drive[m.drives++], argv[i + 1], colon + 1, &err) != 0)
				break;
		}
	}
	snprintf(path, sizeof(path), "%s/key", fake_dir ? fake_dir : "");
	if (err.text[0] || !fake_dir || !m.drives || pp_key_load(path, &m.key, &err) != 0) {
		fprintf(stderr, "fake_machine: %s\n", err.text[0] ? err.text : "wrong arguments");
		return 2;
	}
	new_boot();
	live(getppid());
	return 0;
}
