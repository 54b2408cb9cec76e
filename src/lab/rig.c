/* SPDX-License-Identifier: MIT
 *
 * One mutex guards the rig. The machine is waited for by a thread of its own, one a boot: when its
 * process ends well and nobody killed it, the machine has powered itself off, and its drives go
 * down in order; one that dies otherwise is a machine that died, and its drives keep their power.
 * The thread only reaps under the mutex, so a pid that is set is one that may be killed.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "core/text.h"
#include "rig_parts.h"

#define WATTS_RUNNING   38.0
#define WATTS_STANDBY   0.5

static const struct pp_rig_kind *const kinds[] = { &pp_rig_kind_vm, &pp_rig_kind_loop };

static const struct pp_rig_kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(kinds[i]->name, name))
			return kinds[i];
	return NULL;
}

bool pp_rig_kind_exists(const char *kind)
{
	return find_kind(kind);
}

void pp_rig_path(const struct pp_rig *rig, const char *name, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/%s", rig->ns.run_dir, name);
}

void pp_rig_log_path(const struct pp_rig *rig, const char *name, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/%s", rig->image_dir, name);
}

static int name_image(const struct pp_rig *rig, struct pp_drive_host *host, struct pp_error *err)
{
	if (snprintf(host->image, sizeof(host->image), "%s/%s.img", rig->image_dir,
		    host->drive.serial) >= (int)sizeof(host->image))
		return pp_fail_os(err, ENAMETOOLONG, "cannot name the image of '%s'", host->drive.serial);
	return 0;
}

static struct pp_rig_slot *find_slot(struct pp_rig *rig, const char *serial)
{
	for (int i = 0; i < rig->drive_count; i++)
		if (!strcmp(rig->slots[i].host.drive.serial, serial))
			return &rig->slots[i];
	return NULL;
}

/* ---- open and close --------------------------------------------------------------------- */

static int adopt(struct pp_rig *rig, const struct pp_rig_config *config, struct pp_error *err)
{
	if (config->drive_count < 1 || config->drive_count > PP_RIG_DRIVES_MAX)
		return pp_fail(err, PP_ERR_USAGE, "a lab has 1 to %d drives, not %d", PP_RIG_DRIVES_MAX,
			config->drive_count);
	for (int i = 0; i < config->drive_count; i++) {
		const struct pp_lab_drive *drive = &config->drives[i];
		struct pp_rig_slot *slot = &rig->slots[i];

		if (pp_lab_drive_check(drive, err))
			return -1;
		if (find_slot(rig, drive->serial))
			return pp_fail(err, PP_ERR_USAGE, "two drives have the serial '%s'", drive->serial);
		slot->host.drive = slot->next = *drive;
		slot->present = true;
		rig->drive_count = i + 1;
	}
	rig->seed = config->seed;
	return 0;
}

static int find_image_dir(struct pp_rig *rig, const char *dir, struct pp_error *err)
{
	char real[PATH_MAX];

	if (!dir) {
		snprintf(rig->image_dir, sizeof(rig->image_dir), "%s", rig->ns.run_dir);
		return 0;
	}
	if (pp_mkdirs(dir, err))
		return -1;
	/* realpath(3) wants PATH_MAX bytes; ours leaves room for the names of files. */
	errno = ENAMETOOLONG;
	if (!realpath(dir, real) || !pp_text_format(rig->image_dir, sizeof(rig->image_dir), "%s", real))
		return pp_fail_os(err, errno, "cannot use '%s'", dir);
	return 0;
}

struct pp_rig *pp_rig_open(const struct pp_rig_config *config, struct pp_error *err)
{
	struct pp_rig *rig = calloc(1, sizeof(*rig));

	if (!rig) {
		pp_fail_os(err, ENOMEM, "cannot make a rig");
		return NULL;
	}
	pthread_mutex_init(&rig->lock, NULL);
	pthread_cond_init(&rig->machine_gone, NULL);
	pp_buf_init(&rig->agent, 1 << 16);
	rig->ns.guard_fd = rig->ns.lock_fd = rig->ns.socket_fd = -1;
	rig->kind = find_kind(config->kind);
	if (!rig->kind) {
		pp_fail(err, PP_ERR_USAGE, "unknown rig '%s': vm or loop", config->kind);
		goto fail;
	}
	pp_netns_sweep();
	if (adopt(rig, config, err) || pp_netns_open(&rig->ns, err)
	    || find_image_dir(rig, config->image_dir, err))
		goto fail;
	if (rig->kind->key_path)
		snprintf(rig->key_path, sizeof(rig->key_path), "%s", rig->kind->key_path);
	else
		pp_rig_path(rig, "agent.key", rig->key_path, sizeof(rig->key_path));
	if (rig->kind->open(rig, config, err))
		goto fail;
	return rig;
fail:
	pp_rig_close(rig);
	return NULL;
}

const char *pp_rig_host_address(const struct pp_rig *rig)
{
	return rig->ns.host_address;
}

const char *pp_rig_run_dir(const struct pp_rig *rig)
{
	return rig->ns.run_dir;
}

const char *pp_rig_accel(const struct pp_rig *rig)
{
	return rig->accel;
}

const char *pp_rig_dut_path(const struct pp_rig *rig)
{
	return rig->dut;
}

const char *pp_rig_key_path(const struct pp_rig *rig)
{
	return rig->key_path;
}

const char *pp_rig_kill_agent_line(const struct pp_rig *rig)
{
	return rig->kind->kill_agent_line;
}

int pp_rig_set_agent(struct pp_rig *rig, const char *const words[], const void *key,
	size_t key_bytes, struct pp_error *err)
{
	char *copy = malloc(key_bytes + 1);
	bool failed;

	if (!copy)
		return pp_fail_os(err, ENOMEM, "cannot keep the key");
	if (key_bytes)
		memcpy(copy, key, key_bytes);
	pthread_mutex_lock(&rig->lock);
	pp_buf_clear(&rig->agent);
	for (int i = 0; words[i]; i++)
		pp_buf_addf(&rig->agent, "agent %s\n", words[i]);
	failed = rig->agent.failed;
	free(rig->key);
	rig->key = copy;
	rig->key_bytes = key_bytes;
	pthread_mutex_unlock(&rig->lock);
	return failed ? pp_fail(err, PP_ERR_USAGE, "the agent's command line is too long") : 0;
}

/* ---- power ------------------------------------------------------------------------------ */

static int start_drives(struct pp_rig *rig, struct pp_error *err)
{
	char log[4096];

	pp_rig_log_path(rig, "drives.log", log, sizeof(log));
	for (int i = 0; i < rig->drive_count; i++) {
		struct pp_rig_slot *slot = &rig->slots[i];

		slot->host.drive = slot->next;
		if (!slot->present)
			continue;
		snprintf(slot->host.control, sizeof(slot->host.control), "%s/d%d.sock", rig->ns.run_dir, i);
		if (name_image(rig, &slot->host, err)
		    || rig->kind->start_drive(rig, i,
			    rig->seed * 1000003 + rig->boots * 101 + (unsigned)i, log, err))
			return -1;
	}
	for (int i = 0; i < rig->drive_count; i++)
		if (rig->slots[i].host.pid && pp_drive_host_await(&rig->slots[i].host, log, err))
			return -1;
	return 0;
}

static void kill_drives(struct pp_rig *rig)
{
	for (int i = 0; i < rig->drive_count; i++)
		pp_drive_host_kill(&rig->slots[i].host);
}

/* A command to every drive with power; the first that fails is reported, all are told. */
static int tell_drives(struct pp_rig *rig, bool cut, struct pp_error *err)
{
	struct pp_buf out;
	int rc = 0;

	pp_buf_init(&out, 1 << 16);
	for (int i = 0; i < rig->drive_count; i++) {
		struct pp_drive_host *host = &rig->slots[i].host;
		char command[64] = "orderly";

		if (cut)
			snprintf(command, sizeof(command), "cut %u %llu", host->drive.survive_pct,
				(unsigned long long)(rig->seed * 1000003 + rig->cuts * 101 + (unsigned)i));
		if (host->pid && pp_drive_host_command(host, command, &out, rc ? NULL : err))
			rc = -1;
	}
	pp_buf_release(&out);
	return rc;
}

struct boot {
	struct pp_rig *rig;
	pid_t pid;
};

static void *wait_for_machine(void *arg)
{
	struct boot *boot = arg;
	struct pp_rig *rig = boot->rig;
	siginfo_t info;
	bool itself;

	while (waitid(P_PID, (id_t)boot->pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	pthread_mutex_lock(&rig->lock);
	itself = !rig->killed_by_us && info.si_code == CLD_EXITED;
	if (rig->kind->settle)
		rig->kind->settle(rig);
	if (itself && info.si_status == 0) {
		tell_drives(rig, false, NULL);
		kill_drives(rig);
	}
	waitpid(boot->pid, NULL, 0);
	rig->machine = 0;
	if (itself && info.si_status == PP_RIG_EXIT_REBOOT)
		pp_rig_start_machine(rig, NULL);
	pthread_cond_broadcast(&rig->machine_gone);
	pthread_mutex_unlock(&rig->lock);
	free(boot);
	return NULL;
}

int pp_rig_start_machine(struct pp_rig *rig, struct pp_error *err)
{
	struct boot *boot = malloc(sizeof(*boot));
	pthread_t thread;
	int rc;

	if (!boot)
		return pp_fail_os(err, ENOMEM, "cannot start the machine");
	boot->rig = rig;
	boot->pid = rig->kind->boot(rig, err);
	if (boot->pid < 0) {
		free(boot);
		return -1;
	}
	rig->machine = boot->pid;
	rig->killed_by_us = false;
	rc = pthread_create(&thread, NULL, wait_for_machine, boot);
	if (rc) {
		kill(rig->machine, rig->kind->kill_signal);
		waitpid(rig->machine, NULL, 0);
		rig->machine = 0;
		free(boot);
		return pp_fail_os(err, rc, "cannot start a thread");
	}
	pthread_detach(thread);
	rig->boots++;
	return 0;
}

void pp_rig_stop_machine(struct pp_rig *rig)
{
	if (rig->machine) {
		rig->killed_by_us = true;
		kill(rig->machine, rig->kind->kill_signal);
	}
	while (rig->machine)
		pthread_cond_wait(&rig->machine_gone, &rig->lock);
}

int pp_rig_power_on(struct pp_rig *rig, struct pp_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&rig->lock);
	if (!rig->outlet_on) {
		rc = start_drives(rig, err);
		if (!rc)
			rc = rig->kind->fast ? pp_netns_link_anew(&rig->ns, rig->boots, err)
				: pp_netns_link(&rig->ns, true, err);
		if (!rc && !rig->no_boot)
			rc = pp_rig_start_machine(rig, err);
		rig->outlet_on = !rc;
		if (rc) {
			kill_drives(rig);
			pp_netns_link(&rig->ns, false, NULL);
		}
	}
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

int pp_rig_cut(struct pp_rig *rig, struct pp_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&rig->lock);
	if (rig->outlet_on) {
		rc = pp_netns_link(&rig->ns, false, err);
		rig->cuts++;
		if (tell_drives(rig, true, rc ? NULL : err))
			rc = -1;
		pp_rig_stop_machine(rig);
		kill_drives(rig);
		rig->outlet_on = false;
	}
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

void pp_rig_close(struct pp_rig *rig)
{
	if (!rig)
		return;
	if (rig->ns.guard > 0)
		pp_rig_cut(rig, NULL);
	if (rig->own)
		rig->kind->close(rig);
	pp_netns_close(&rig->ns);
	pp_buf_release(&rig->agent);
	free(rig->key);
	pthread_cond_destroy(&rig->machine_gone);
	pthread_mutex_destroy(&rig->lock);
	free(rig);
}

/* ---- other ends of a machine ------------------------------------------------------------ */

int pp_rig_reset(struct pp_rig *rig, struct pp_error *err)
{
	int rc;

	pthread_mutex_lock(&rig->lock);
	if (rig->machine) {
		rc = rig->kind->reset(rig, err);
	} else {
		rc = pp_fail(err, PP_ERR_PEER, "the machine is not running");
	}
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

int pp_rig_kill_machine(struct pp_rig *rig, struct pp_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&rig->lock);
	if (rig->machine)
		pp_rig_stop_machine(rig);
	else
		rc = pp_fail(err, PP_ERR_PEER, "the machine is not running");
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

bool pp_rig_has_power(struct pp_rig *rig)
{
	bool on;

	pthread_mutex_lock(&rig->lock);
	on = rig->outlet_on;
	pthread_mutex_unlock(&rig->lock);
	return on;
}

double pp_rig_watts(struct pp_rig *rig)
{
	double watts;

	pthread_mutex_lock(&rig->lock);
	watts = !rig->outlet_on ? 0 : rig->machine ? WATTS_RUNNING : WATTS_STANDBY;
	pthread_mutex_unlock(&rig->lock);
	return watts;
}

void pp_rig_set_no_boot(struct pp_rig *rig, bool no_boot)
{
	pthread_mutex_lock(&rig->lock);
	rig->no_boot = no_boot;
	pthread_mutex_unlock(&rig->lock);
}

/* ---- drives ----------------------------------------------------------------------------- */

int pp_rig_drive_command(struct pp_rig *rig, const char *serial, const char *command,
	struct pp_buf *out, struct pp_error *err)
{
	struct pp_rig_slot *slot;
	int rc;

	pthread_mutex_lock(&rig->lock);
	slot = find_slot(rig, serial);
	rc = slot ? pp_drive_host_command(&slot->host, command, out, err)
		: pp_fail(err, PP_ERR_USAGE, "no drive '%s'", serial);
	/* A drive that has changed its ways keeps them over the next power cycle. */
	if (!rc && !strncmp(command, "behaviour ", 10))
		snprintf(slot->next.behaviour, sizeof(slot->next.behaviour), "%s", command + 10);
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

int pp_rig_swap(struct pp_rig *rig, const char *serial,
	const struct pp_lab_drive *replacement, struct pp_error *err)
{
	struct pp_rig_slot *slot;
	int rc = 0;

	if (replacement && pp_lab_drive_check(replacement, err))
		return -1;
	pthread_mutex_lock(&rig->lock);
	slot = find_slot(rig, serial);
	if (!slot)
		rc = pp_fail(err, PP_ERR_USAGE, "no drive '%s'", serial);
	else if (replacement)
		slot->next = *replacement;
	if (slot)
		slot->present = replacement;
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

void pp_rig_say_state(struct pp_rig *rig, struct pp_buf *out)
{
	pthread_mutex_lock(&rig->lock);
	pp_buf_addf(out, "{\"ok\": true, \"outlet\": %s, \"machine\": %s, \"accel\": \"%s\", "
		"\"boots\": %u, \"cuts\": %u, \"host_address\": \"%s\", \"namespace\": \"%s\", "
		"\"console\": \"%s/console.log\", \"drives\": [",
		rig->outlet_on ? "true" : "false", rig->machine ? "true" : "false", rig->accel, rig->boots,
		rig->cuts, rig->ns.host_address, rig->ns.name, rig->image_dir);
	for (int i = 0; i < rig->drive_count; i++)
		pp_buf_addf(out, "%s{\"serial\": \"%s\", \"behaviour\": \"%s\", \"power\": %s}",
			i ? ", " : "", rig->slots[i].host.drive.serial, rig->slots[i].next.behaviour,
			rig->slots[i].host.pid ? "true" : "false");
	pp_buf_addf(out, "]}\n");
	pthread_mutex_unlock(&rig->lock);
}

/* ---- the machine's command line ---------------------------------------------------------- */

int pp_rig_guest(struct pp_rig *rig, const char *line, int64_t timeout_ms, struct pp_buf *out,
	int *status, struct pp_error *err)
{
	int64_t until_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	bool running;

	for (;;) {
		pthread_mutex_lock(&rig->lock);
		running = rig->machine;
		pthread_mutex_unlock(&rig->lock);
		if (running && rig->kind->ready(rig))
			return rig->kind->run(rig, line, until_ns, out, status, err);
		if (!running || pp_clock_mono_ns() >= until_ns)
			return pp_fail(err, PP_ERR_PEER, running ? "the guest is not up"
				: "the machine is not running");
		pp_clock_sleep_ms(20);
	}
}
