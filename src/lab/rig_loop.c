/* SPDX-License-Identifier: MIT
 *
 * The rig without a virtual machine (rig.h). One process of plugpull-lab-guest, the holder, keeps a
 * mount namespace in which the drives' FUSE files are mounted, so that none of it is ever seen on
 * the host. The machine (loop_machine.c) is another: a PID, mount and time namespace below that.
 * All of them are in the lab's network namespace, by which the guard finds and kills them; what
 * they had mounted and attached goes with them.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "core/auth.h"
#include "core/clock.h"
#include "core/drive.h"
#include "core/file.h"
#include "core/subprocess.h"
#include "drive_model.h"
#include "fuse_drive.h"
#include "loop_machine.h"
#include "rig_parts.h"
#include "wine.h"

#define HOLD_MS   10000
#define SETTLE_MS 30000
#define PAUSE_MS  2

struct loop {
	pid_t holder;
	bool windows; /* the machine's program is one of Windows (wine.h) */
	char guest_tool[4096], drive_tool[4096], mounts[64];
};

/* ---- open and close --------------------------------------------------------------------- */

/* Waits until a file is there; false if pid has ended, or after timeout_ms. */
static bool await_file(const char *path, pid_t pid, int64_t timeout_ms)
{
	int64_t until_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	siginfo_t info = { 0 };

	while (access(path, F_OK)) {
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid
		    || pp_clock_mono_ns() >= until_ns)
			return false;
		pp_clock_sleep_ms(PAUSE_MS);
	}
	return true;
}

static int start_holder(struct pp_rig *rig, struct loop *loop, struct pp_error *err)
{
	char net[96], ready[128], log[4096];
	const char *argv[] = { "nsenter", net, loop->guest_tool, "loop-hold", ready, NULL };

	snprintf(net, sizeof(net), "--net=%s", rig->ns.path);
	pp_rig_path(rig, "held", ready, sizeof(ready));
	pp_rig_log_path(rig, "console.log", log, sizeof(log));
	loop->holder = pp_child_start(argv, -1, log, err);
	if (loop->holder < 0)
		return -1;
	if (!await_file(ready, loop->holder, HOLD_MS))
		return pp_fail(err, PP_ERR_SYSTEM, "cannot make the lab's mount namespace (see '%s')", log);
	snprintf(loop->mounts, sizeof(loop->mounts), "--mount=/proc/%d/ns/mnt", (int)loop->holder);
	return 0;
}

/* smartctl, poweroff, reboot and plugpull-lab-cache, as the machine's PATH finds them first. */
static int make_bin(const struct pp_rig *rig, const char *guest_tool, struct pp_error *err)
{
	static const char *const names[] = { "smartctl", "poweroff", "reboot",
		"plugpull-lab-cache" };
	char path[256];

	pp_rig_path(rig, "bin", path, sizeof(path));
	if (mkdir(path, 0700))
		return pp_fail_os(err, errno, "cannot make '%s'", path);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/bin/%s", rig->ns.run_dir, names[i]);
		if (symlink(guest_tool, path))
			return pp_fail_os(err, errno, "cannot make '%s'", path);
	}
	return 0;
}

static int find(const char *path, char *out, struct pp_error *err)
{
	return realpath(path, out) ? 0 : pp_fail_os(err, errno, "cannot find '%s'", path);
}

/* A loop device says `write back`. It could be told otherwise, but would keep that for whoever has it
 * next on this host, whose flushes the kernel would then drop. */
static int check_behaviour(const struct pp_lab_drive *drive, struct pp_error *err)
{
	const struct pp_sim_drive_behaviour *row = pp_sim_drive_behaviour_find(drive->behaviour);

	return pp_sim_drive_behaviour_has_cache(row) ? 0 : pp_fail(err, PP_ERR_UNSUPPORTED,
		"drive '%s': '%s' denies to have a cache, which a loop device cannot: use the rig vm",
		drive->serial, drive->behaviour);
}

static int check_serials(const struct pp_rig *rig, struct pp_error *err);

static int loop_open(struct pp_rig *rig, const struct pp_rig_config *config, struct pp_error *err)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	char path[256];

	if (!loop)
		return pp_fail_os(err, ENOMEM, "cannot make a rig");
	rig->own = loop;
	loop->holder = -1;
	strcpy(rig->accel, "none");
	if (access("/dev/fuse", R_OK | W_OK) || access("/dev/loop-control", R_OK | W_OK))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the loop rig needs /dev/fuse and "
			"/dev/loop-control (modprobe fuse loop)");
	if (access("/proc/self/timens_offsets", F_OK))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the loop rig needs time namespaces (Linux 5.6)");
	if (find(config->guest_tool, loop->guest_tool, err)
	    || find(config->drive_tool, loop->drive_tool, err)
	    || (config->dut && find(config->dut, rig->dut, err))
	    || make_bin(rig, loop->guest_tool, err))
		return -1;
	for (int i = 0; i < rig->drive_count; i++) {
		if (check_behaviour(&rig->slots[i].next, err))
			return -1;
		snprintf(path, sizeof(path), "%s/d%d", rig->ns.run_dir, i);
		if (mkdir(path, 0700))
			return pp_fail_os(err, errno, "cannot make '%s'", path);
	}
	loop->windows = pp_wine_wanted(config->dut);
	if (loop->windows && pp_wine_open(rig->ns.run_dir, loop->guest_tool, err))
		return -1;
	return check_serials(rig, err) ? -1 : start_holder(rig, loop, err);
}

static void loop_close(struct pp_rig *rig)
{
	struct loop *loop = rig->own;

	if (loop->holder > 0) {
		kill(loop->holder, SIGKILL);
		while (waitpid(loop->holder, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(loop);
}

/* ---- power ------------------------------------------------------------------------------ */

static int loop_start_drive(struct pp_rig *rig, int i, uint64_t seed, const char *log_path,
	struct pp_error *err)
{
	const struct loop *loop = rig->own;
	char net[96], folder[128];
	const char *front[] = { "nsenter", net, loop->mounts, loop->drive_tool, folder, NULL };

	snprintf(net, sizeof(net), "--net=%s", rig->ns.path);
	snprintf(folder, sizeof(folder), "%s/d%d", rig->ns.run_dir, i);
	if (check_behaviour(&rig->slots[i].host.drive, err)
	    || (loop->windows && pp_wine_format(rig->slots[i].host.image, rig->slots[i].host.drive.serial,
		    rig->slots[i].host.drive.size_bytes, rig->ns.run_dir, err)))
		return -1;
	return pp_drive_host_start(&rig->slots[i].host, front, seed, log_path, err);
}

static int write_smart(struct pp_rig *rig, const struct pp_drive_host *host, struct pp_error *err)
{
	char path[256];
	struct pp_buf json;
	int rc;

	snprintf(path, sizeof(path), "%s/smart.%s.json", rig->ns.run_dir, host->drive.serial);
	pp_buf_init(&json, 1 << 14);
	rc = pp_drive_host_smart(host, &json, err);
	if (!rc)
		rc = pp_file_write(path, json.data, json.bytes, 0600, err);
	pp_buf_release(&json);
	return rc;
}

/* A random UUID (RFC 9562, version 4), as the kernel makes one a boot. */
static int add_boot_id(struct pp_buf *conf, struct pp_error *err)
{
	unsigned char b[16];

	if (pp_random_bytes(b, sizeof(b), err))
		return -1;
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	pp_buf_addf(conf, "boot_id %02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\n",
		b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
		b[14], b[15]);
	return 0;
}

static int write_conf(struct pp_rig *rig, struct pp_error *err)
{
	const struct loop *loop = rig->own;
	char path[256];
	struct pp_buf conf;
	int rc;

	pp_buf_init(&conf, 1 << 17);
	rc = add_boot_id(&conf, err);
	pp_buf_addf(&conf, "folder %s\n", rig->ns.run_dir);
	for (int i = 0; i < rig->drive_count && !rc; i++) {
		const struct pp_drive_host *host = &rig->slots[i].host;

		if (!host->pid)
			continue;
		rc = write_smart(rig, host, err);
		pp_buf_addf(&conf, "drive %s %d %s/d%d/" PP_FUSE_DRIVE_FILE "\n", host->drive.serial,
			host->drive.block_bytes, rig->ns.run_dir, i);
	}
	if (!rc && loop->windows && rig->agent.bytes)
		rc = pp_wine_conf(rig->ns.run_dir, &conf, err);
	pp_buf_add(&conf, rig->agent.data, rig->agent.bytes);
	pp_rig_path(rig, "boot.conf", path, sizeof(path));
	if (!rc && conf.failed)
		rc = pp_fail_os(err, ENOMEM, "cannot build the boot's configuration");
	if (!rc)
		rc = pp_file_write(path, conf.data, conf.bytes, 0600, err);
	if (!rc && rig->key)
		rc = pp_file_write(rig->key_path, rig->key, rig->key_bytes, 0600, err);
	pp_buf_release(&conf);
	return rc;
}

/* The kernel unmounts what the machine had mounted, and lets go of its loop devices, in its own
 * time; until then they hold the dead machine's memory, and a mount of the same would show it. */
static bool still_attached(const struct pp_rig *rig)
{
	struct pp_drive_info *infos;
	size_t count, bytes = strlen(rig->ns.run_dir);
	bool found = false;

	if (pp_drive_list(NULL, &infos, &count, NULL))
		return false;
	for (size_t i = 0; i < count; i++)
		found |= !strncmp(infos[i].backing_file, rig->ns.run_dir, bytes)
			&& infos[i].backing_file[bytes] == '/';
	free(infos);
	return found;
}

/* Loop devices are the whole kernel's: the agent would find two drives of one name, and refuse. */
static int check_serials(const struct pp_rig *rig, struct pp_error *err)
{
	struct pp_drive_info info;

	for (int i = 0; i < rig->drive_count; i++)
		if (rig->slots[i].present && !pp_drive_find(NULL, rig->slots[i].next.serial, &info, NULL))
			return pp_fail(err, PP_ERR_REFUSED, "%s has the serial '%s' already, of another lab "
				"perhaps: name yours otherwise", info.node, info.serial);
	return 0;
}

static pid_t loop_start_machine(struct pp_rig *rig, struct pp_error *err)
{
	const struct loop *loop = rig->own;
	char net[96], conf[256], path[256], log[4096];
	const char *argv[] = { "nsenter", net, loop->mounts, loop->guest_tool, "loop-boot", conf, NULL };

	pp_rig_path(rig, LOOP_READY_FILE, path, sizeof(path));
	unlink(path);
	pp_rig_path(rig, "boot.conf", conf, sizeof(conf));
	pp_rig_log_path(rig, "console.log", log, sizeof(log));
	snprintf(net, sizeof(net), "--net=%s", rig->ns.path);
	if (still_attached(rig))
		return pp_fail(err, PP_ERR_SYSTEM, "the kernel has not let go of the last boot's drives");
	if (check_serials(rig, err))
		return -1;
	return write_conf(rig, err) ? -1 : pp_child_start(argv, -1, log, err);
}

static void loop_settle(struct pp_rig *rig)
{
	int64_t until_ns = pp_clock_mono_ns() + SETTLE_MS * PP_NS_PER_MS;

	while (still_attached(rig) && pp_clock_mono_ns() < until_ns)
		pp_clock_sleep_ms(PAUSE_MS);
}

static int loop_reset(struct pp_rig *rig, struct pp_error *err)
{
	int rc = pp_netns_link(&rig->ns, false, err);

	if (rc)
		return -1;
	pp_rig_stop_machine(rig);
	rc = pp_netns_link_anew(&rig->ns, rig->boots, err);
	return rc ? -1 : pp_rig_start_machine(rig, err);
}

/* ---- the machine's command line ---------------------------------------------------------- */

static bool loop_ready(struct pp_rig *rig)
{
	char path[256];

	pp_rig_path(rig, LOOP_READY_FILE, path, sizeof(path));
	return !access(path, F_OK);
}

static int loop_run(struct pp_rig *rig, const char *line, int64_t until_ns, struct pp_buf *out,
	int *status, struct pp_error *err)
{
	char path[256], bin[512], pid[32] = "";
	const char *argv[] = { "nsenter", "-t", pid, "--mount", "--pid", "--net", "--time", "sh", "-c",
		line, NULL };
	const char *env[] = { bin, NULL };
	struct pp_subprocess what = { .argv = argv, .env = env, .out = out,
		.timeout_ms = (until_ns - pp_clock_mono_ns()) / PP_NS_PER_MS + 1 };
	struct pp_subprocess_result result;
	struct pp_buf text;

	snprintf(bin, sizeof(bin), "PATH=%s/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
		"/sbin:/bin", rig->ns.run_dir);
	pp_buf_init(&text, 256);
	pp_rig_path(rig, LOOP_READY_FILE, path, sizeof(path));
	if (pp_file_read(path, &text, err)) {
		pp_buf_release(&text);
		return -1;
	}
	snprintf(pid, sizeof(pid), "%d", atoi(text.data ? text.data : ""));
	pp_buf_release(&text);
	if (pp_subprocess_run(&what, &result, err))
		return -1;
	if (result.timed_out)
		return pp_fail(err, PP_ERR_PEER, "the guest did not finish the command in time");
	*status = result.signal ? 128 + result.signal : result.exit_status;
	return 0;
}

const struct pp_rig_kind pp_rig_kind_loop = {
	.name = "loop", .kill_agent_line = "kill -9 $(cat " LOOP_AGENT_PID ")",
	.fast = true,
	.kill_signal = SIGTERM, /* at which its process kills all of it, and waits for the end */
	.open = loop_open, .close = loop_close, .start_drive = loop_start_drive, .boot = loop_start_machine,
	.settle = loop_settle, .reset = loop_reset, .ready = loop_ready, .run = loop_run,
};
