/* SPDX-License-Identifier: MIT
 *
 * One mutex guards the rig. The machine is waited for by a thread of its own, one a boot: when
 * QEMU ends well and nobody killed it, the guest has powered itself off, and its drives go down in
 * order; a QEMU that dies otherwise is a machine that died, and its drives keep their power. The
 * thread only reaps under the mutex, so a pid that is set is one that may be killed.
 */
#include "rig_vm.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "core/clock.h"
#include "core/file.h"
#include "core/text.h"
#include "cpio.h"
#include "guest.h"
#include "guest_image.h"
#include "kvm_probe.h"
#include "netns.h"

#define FIRST_PORT      10809
#define IMAGE_BYTES_MAX (256 << 20)
#define MEMORY_MB       256
#define GUEST_ADDRESS   "10.0.2.15/24 10.0.2.2" /* QEMU's user-mode network */
#define GUEST_HOST      "10.0.2.2"              /* 127.0.0.1 of the namespace, from the guest */
#define QMP_MS          5000
#define WATTS_RUNNING   38.0
#define WATTS_STANDBY   1.8

struct slot {
	struct pp_drive_host host;
	struct pp_lab_drive next; /* what stands here from the next power-on */
	bool present;
};

struct pp_rig_vm {
	pthread_mutex_t lock;
	pthread_cond_t machine_gone;
	struct pp_netns ns;
	struct pp_guest_kernel kernel;
	struct pp_buf image;
	struct slot slots[PP_RIG_DRIVES_MAX];
	int drive_count;
	uint64_t seed;
	char image_dir[3500], plugin[4096], accel[8];
	unsigned memory_mb, boots, cuts;
	bool outlet_on, no_boot, killed_by_us;
	pid_t machine;           /* 0: none */
	off_t console_start;     /* of this boot, in the console log */
	struct pp_buf agent;     /* lines for the guest's configuration */
	char *key;
	size_t key_bytes;
	int guest_fd;            /* to the guest's command line; -1: not connected */
	pthread_mutex_t guest_lock;
};

static void path_in(const struct pp_rig_vm *rig, const char *name, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/%s", rig->ns.run_dir, name);
}

static void log_path(const struct pp_rig_vm *rig, const char *name, char *out, size_t bytes)
{
	snprintf(out, bytes, "%s/%s", rig->image_dir, name);
}

static int name_image(const struct pp_rig_vm *rig, struct pp_drive_host *host, struct pp_error *err)
{
	if (snprintf(host->image, sizeof(host->image), "%s/%s.img", rig->image_dir,
		    host->drive.serial) >= (int)sizeof(host->image))
		return pp_fail_os(err, ENAMETOOLONG, "cannot name the image of '%s'", host->drive.serial);
	return 0;
}

static struct slot *find_slot(struct pp_rig_vm *rig, const char *serial)
{
	for (int i = 0; i < rig->drive_count; i++)
		if (!strcmp(rig->slots[i].host.drive.serial, serial))
			return &rig->slots[i];
	return NULL;
}

/* ---- open and close --------------------------------------------------------------------- */

static int adopt(struct pp_rig_vm *rig, const struct pp_rig_vm_config *config, struct pp_error *err)
{
	if (config->drive_count < 1 || config->drive_count > PP_RIG_DRIVES_MAX)
		return pp_fail(err, PP_ERR_USAGE, "a lab has 1 to %d drives, not %d", PP_RIG_DRIVES_MAX,
			config->drive_count);
	for (int i = 0; i < config->drive_count; i++) {
		const struct pp_lab_drive *drive = &config->drives[i];
		struct slot *slot = &rig->slots[i];

		if (pp_lab_drive_check(drive, err))
			return -1;
		if (find_slot(rig, drive->serial))
			return pp_fail(err, PP_ERR_USAGE, "two drives have the serial '%s'", drive->serial);
		slot->host.drive = slot->next = *drive;
		slot->host.port = FIRST_PORT + i;
		slot->present = true;
		rig->drive_count = i + 1;
	}
	if (config->accel && strcmp(config->accel, "kvm") && strcmp(config->accel, "tcg"))
		return pp_fail(err, PP_ERR_USAGE, "unknown accelerator '%s': kvm or tcg", config->accel);
	if (config->accel)
		snprintf(rig->accel, sizeof(rig->accel), "%s", config->accel);
	if (!realpath(config->plugin, rig->plugin))
		return pp_fail_os(err, errno, "cannot find the drive plugin '%s'", config->plugin);
	rig->seed = config->seed;
	rig->memory_mb = config->memory_mb ? config->memory_mb : MEMORY_MB;
	return 0;
}

struct pp_rig_vm *pp_rig_vm_open(const struct pp_rig_vm_config *config, struct pp_error *err)
{
	struct pp_rig_vm *rig = calloc(1, sizeof(*rig));
	char real[PATH_MAX];

	if (!rig) {
		pp_fail_os(err, ENOMEM, "cannot make a rig");
		return NULL;
	}
	pthread_mutex_init(&rig->lock, NULL);
	pthread_mutex_init(&rig->guest_lock, NULL);
	pthread_cond_init(&rig->machine_gone, NULL);
	pp_buf_init(&rig->image, IMAGE_BYTES_MAX);
	pp_buf_init(&rig->agent, 1 << 16);
	rig->guest_fd = -1;
	rig->ns.guard_fd = rig->ns.lock_fd = -1;
	pp_netns_sweep();
	if (adopt(rig, config, err)
	    || pp_guest_kernel_find(&rig->kernel, config->kernel_dir, config->talk, err)
	    || pp_guest_image_build(&rig->image, &rig->kernel, config->guest_tool, config->dut, err)
	    || pp_netns_open(&rig->ns, err))
		goto fail;
	if (config->image_dir) {
		if (pp_mkdirs(config->image_dir, err))
			goto fail;
		/* realpath(3) wants PATH_MAX bytes; ours leaves room for the names of files. */
		errno = ENAMETOOLONG;
		if (!realpath(config->image_dir, real)
		    || !pp_text_format(rig->image_dir, sizeof(rig->image_dir), "%s", real)) {
			pp_fail_os(err, errno, "cannot use '%s'", config->image_dir);
			goto fail;
		}
	} else {
		snprintf(rig->image_dir, sizeof(rig->image_dir), "%s", rig->ns.run_dir);
	}
	if (!rig->accel[0])
		snprintf(rig->accel, sizeof(rig->accel), "%s", pp_kvm_works(rig->kernel.vmlinuz,
			&rig->image, rig->ns.run_dir, rig->kernel.root) ? "kvm" : "tcg");
	return rig;
fail:
	pp_rig_vm_close(rig);
	return NULL;
}

const char *pp_rig_vm_host_address(const struct pp_rig_vm *rig)
{
	return rig->ns.host_address;
}

const char *pp_rig_vm_run_dir(const struct pp_rig_vm *rig)
{
	return rig->ns.run_dir;
}

const char *pp_rig_vm_accel(const struct pp_rig_vm *rig)
{
	return rig->accel;
}

int pp_rig_vm_set_agent(struct pp_rig_vm *rig, const char *const words[], const void *key,
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

/* ---- power on --------------------------------------------------------------------------- */

/* What smartctl 7 prints of an NVMe drive, as far as anybody reads it. */
static void add_smart(struct pp_buf *cpio, const struct pp_drive_host *host, uint64_t cycles,
	uint64_t unsafe)
{
	struct pp_buf json;
	char name[256];

	pp_buf_init(&json, 4096);
	pp_buf_addf(&json, "{\"json_format_version\": [1, 0], \"smartctl\": {\"version\": [7, 3], "
		"\"exit_status\": 0}, \"device\": {\"type\": \"nvme\", \"protocol\": \"NVMe\"},\n"
		"\"model_name\": \"plugpull lab drive\", \"serial_number\": \"%s\", "
		"\"firmware_version\": \"LAB1\",\n\"user_capacity\": {\"bytes\": %llu}, "
		"\"logical_block_size\": %d, \"smart_status\": {\"passed\": true},\n"
		"\"nvme_smart_health_information_log\": {\"critical_warning\": 0, \"temperature\": 35, "
		"\"power_cycles\": %llu, \"power_on_hours\": 1, \"unsafe_shutdowns\": %llu, "
		"\"media_errors\": 0, \"num_err_log_entries\": 0},\n"
		"\"power_cycle_count\": %llu, \"power_on_time\": {\"hours\": 1}}\n",
		host->drive.serial, (unsigned long long)host->drive.size_bytes, host->drive.block_bytes,
		(unsigned long long)cycles, (unsigned long long)unsafe, (unsigned long long)cycles);
	snprintf(name, sizeof(name), GUEST_SMART "/%s.json", host->drive.serial);
	pp_cpio_file(cpio, name + 1, 0644, json.data, json.bytes);
	pp_buf_release(&json);
}

static uint64_t number_after(const char *json, const char *key)
{
	const char *at = strstr(json, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/* The part of the initramfs that is this boot's own. */
static int add_boot(struct pp_rig_vm *rig, struct pp_buf *cpio, struct pp_error *err)
{
	struct pp_buf conf, stat;
	int rc = 0;

	pp_buf_init(&conf, 1 << 17);
	pp_buf_init(&stat, 1 << 14);
	pp_cpio_dir(cpio, "etc");
	pp_cpio_dir(cpio, &GUEST_SMART[1]);
	pp_buf_addf(&conf, "address " GUEST_ADDRESS "\n");
	for (int i = 0; i < rig->drive_count && !rc; i++) {
		struct pp_drive_host *host = &rig->slots[i].host;

		if (!host->pid)
			continue;
		pp_buf_clear(&stat);
		rc = pp_drive_host_command(host, "stat", &stat, err);
		if (rc)
			break;
		add_smart(cpio, host, number_after(stat.data, "\"power_cycles\": "),
			number_after(stat.data, "\"unsafe_shutdowns\": "));
		pp_buf_addf(&conf, "nbd " GUEST_HOST " %d %s %d\n", host->port, host->drive.serial,
			host->drive.block_bytes);
	}
	pp_buf_add(&conf, rig->agent.data, rig->agent.bytes);
	pp_cpio_file(cpio, &GUEST_CONFIG[1], 0644, conf.data, conf.bytes);
	if (rig->key)
		pp_cpio_file(cpio, "etc/plugpull.key", 0600, rig->key, rig->key_bytes);
	pp_cpio_end(cpio);
	if (!rc && (conf.failed || cpio->failed))
		rc = pp_fail_os(err, ENOMEM, "cannot build the boot's configuration");
	pp_buf_release(&conf);
	pp_buf_release(&stat);
	return rc;
}

static int write_initrd(struct pp_rig_vm *rig, const char *path, struct pp_error *err)
{
	struct pp_buf cpio;
	int fd = -1, rc;

	pp_buf_init(&cpio, 1 << 20);
	rc = add_boot(rig, &cpio, err);
	if (!rc) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || pp_write_all(fd, rig->image.data, rig->image.bytes)
		    || pp_write_all(fd, cpio.data, cpio.bytes))
			rc = pp_fail_os(err, errno, "cannot write '%s'", path);
	}
	if (fd >= 0 && close(fd) && !rc)
		rc = pp_fail_os(err, errno, "cannot write '%s'", path);
	pp_buf_release(&cpio);
	return rc;
}

static int start_drives(struct pp_rig_vm *rig, struct pp_error *err)
{
	char log[4096];

	log_path(rig, "drives.log", log, sizeof(log));
	for (int i = 0; i < rig->drive_count; i++) {
		struct slot *slot = &rig->slots[i];

		slot->host.drive = slot->next;
		if (!slot->present)
			continue;
		snprintf(slot->host.control, sizeof(slot->host.control), "%s/d%d.sock", rig->ns.run_dir, i);
		if (name_image(rig, &slot->host, err)
		    || pp_drive_host_start(&slot->host, rig->ns.path, rig->plugin,
			    rig->seed * 1000003 + rig->boots * 101 + (unsigned)i, log, err))
			return -1;
	}
	return 0;
}

static void kill_drives(struct pp_rig_vm *rig)
{
	for (int i = 0; i < rig->drive_count; i++)
		pp_drive_host_kill(&rig->slots[i].host);
}

/* A command to every drive with power; the first that fails is reported, all are told. */
static int tell_drives(struct pp_rig_vm *rig, bool cut, struct pp_error *err)
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
	struct pp_rig_vm *rig;
	pid_t pid;
};

static void *wait_for_machine(void *arg)
{
	struct boot *boot = arg;
	struct pp_rig_vm *rig = boot->rig;
	siginfo_t info;

	while (waitid(P_PID, (id_t)boot->pid, &info, WEXITED | WNOWAIT) && errno == EINTR)
		;
	pthread_mutex_lock(&rig->lock);
	if (!rig->killed_by_us && info.si_code == CLD_EXITED && info.si_status == 0) {
		tell_drives(rig, false, NULL);
		kill_drives(rig);
	}
	waitpid(boot->pid, NULL, 0);
	rig->machine = 0;
	pthread_cond_broadcast(&rig->machine_gone);
	pthread_mutex_unlock(&rig->lock);
	free(boot);
	return NULL;
}

static const char command_line[] =
	"console=ttyS0 quiet panic=0 mitigations=off nokaslr audit=0 tsc=reliable no_timer_check "
	"lpj=4000000 cryptomgr.notests i8042.nokbd i8042.noaux net.ifnames=0";

static pid_t start_qemu(struct pp_rig_vm *rig, const char *initrd, struct pp_error *err)
{
	char net[96], memory[16], console[4200], commands[256], qmp[256], log[4096];
	bool kvm = !strcmp(rig->accel, "kvm");
	const char *argv[] = { "nsenter", net, "qemu-system-x86_64", "-M",
		"q35,sata=off,smbus=off,usb=off,graphics=off,vmport=off", "-accel", rig->accel,
		"-cpu", kvm ? "host" : "qemu64,+rdrand,+rdseed", "-smp", "1", "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none",
		"-chardev", console, "-serial", "chardev:console",
		"-chardev", commands, "-serial", "chardev:commands", "-qmp", qmp,
		"-netdev", "user,id=n0,ipv6=off", "-device", "virtio-net-pci,netdev=n0,romfile=",
		"-kernel", rig->kernel.vmlinuz, "-initrd", initrd, "-append", command_line, NULL };

	snprintf(net, sizeof(net), "--net=%s", rig->ns.path);
	snprintf(memory, sizeof(memory), "%u", rig->memory_mb);
	snprintf(console, sizeof(console), "file,id=console,append=on,path=%s/console.log",
		rig->image_dir);
	snprintf(commands, sizeof(commands), "socket,id=commands,server=on,wait=off,path=%s/guest.sock",
		rig->ns.run_dir);
	snprintf(qmp, sizeof(qmp), "unix:%s/qmp.sock,server=on,wait=off", rig->ns.run_dir);
	log_path(rig, "qemu.log", log, sizeof(log));
	return pp_child_start(argv, -1, log, err);
}

static off_t console_size(const struct pp_rig_vm *rig)
{
	char path[4096];
	struct stat st;

	log_path(rig, "console.log", path, sizeof(path));
	return stat(path, &st) ? 0 : st.st_size;
}

static void drop_guest_connection(struct pp_rig_vm *rig)
{
	if (rig->guest_fd >= 0)
		close(rig->guest_fd);
	rig->guest_fd = -1;
}

static int start_machine(struct pp_rig_vm *rig, struct pp_error *err)
{
	struct boot *boot = malloc(sizeof(*boot));
	char initrd[256];
	pthread_t thread;
	int rc;

	if (!boot)
		return pp_fail_os(err, ENOMEM, "cannot start the machine");
	path_in(rig, "initrd", initrd, sizeof(initrd));
	rig->console_start = console_size(rig);
	if (write_initrd(rig, initrd, err) || (boot->pid = start_qemu(rig, initrd, err)) < 0) {
		free(boot);
		return -1;
	}
	boot->rig = rig;
	rig->machine = boot->pid;
	rig->killed_by_us = false;
	rc = pthread_create(&thread, NULL, wait_for_machine, boot);
	if (rc) {
		kill(rig->machine, SIGKILL);
		waitpid(rig->machine, NULL, 0);
		rig->machine = 0;
		free(boot);
		return pp_fail_os(err, rc, "cannot start a thread");
	}
	pthread_detach(thread);
	rig->boots++;
	return 0;
}

/* With the mutex held. */
static void kill_machine(struct pp_rig_vm *rig)
{
	if (rig->machine) {
		rig->killed_by_us = true;
		kill(rig->machine, SIGKILL);
	}
	while (rig->machine)
		pthread_cond_wait(&rig->machine_gone, &rig->lock);
}

int pp_rig_vm_power_on(struct pp_rig_vm *rig, struct pp_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&rig->lock);
	if (!rig->outlet_on) {
		rc = start_drives(rig, err);
		if (!rc)
			rc = pp_netns_link(&rig->ns, true, err);
		if (!rc && !rig->no_boot)
			rc = start_machine(rig, err);
		rig->outlet_on = !rc;
		if (rc) {
			kill_drives(rig);
			pp_netns_link(&rig->ns, false, NULL);
		}
	}
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

int pp_rig_vm_cut(struct pp_rig_vm *rig, struct pp_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&rig->lock);
	if (rig->outlet_on) {
		rc = pp_netns_link(&rig->ns, false, err);
		rig->cuts++;
		if (tell_drives(rig, true, rc ? NULL : err))
			rc = -1;
		kill_machine(rig);
		kill_drives(rig);
		rig->outlet_on = false;
	}
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

void pp_rig_vm_close(struct pp_rig_vm *rig)
{
	if (!rig)
		return;
	if (rig->ns.guard > 0)
		pp_rig_vm_cut(rig, NULL);
	drop_guest_connection(rig);
	pp_netns_close(&rig->ns);
	pp_buf_release(&rig->image);
	pp_buf_release(&rig->agent);
	free(rig->key);
	pthread_cond_destroy(&rig->machine_gone);
	pthread_mutex_destroy(&rig->guest_lock);
	pthread_mutex_destroy(&rig->lock);
	free(rig);
}

/* ---- other ends of a machine ------------------------------------------------------------ */

/* Reads up to and with the next line that begins an answer, dropping events. */
static int qmp_answer(int fd, struct pp_error *err)
{
	struct pp_buf in;
	char c;
	int rc = -2;

	pp_buf_init(&in, 1 << 16);
	while (rc == -2) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, QMP_MS) != 1 || read(fd, &c, 1) != 1) {
			rc = pp_fail(err, PP_ERR_PEER, "QEMU does not answer");
		} else if (c != '\n') {
			pp_buf_add(&in, &c, 1);
		} else {
			if (in.data && (strstr(in.data, "\"return\"") || strstr(in.data, "\"QMP\"")))
				rc = 0;
			else if (in.data && strstr(in.data, "\"error\""))
				rc = pp_fail(err, PP_ERR_PEER, "QEMU refused: %s", in.data);
			pp_buf_clear(&in);
		}
	}
	pp_buf_release(&in);
	return rc;
}

static int qmp(struct pp_rig_vm *rig, const char *command, struct pp_error *err)
{
	static const char hello[] = "{\"execute\": \"qmp_capabilities\"}\n";
	char path[256], text[256];
	int fd, rc;

	path_in(rig, "qmp.sock", path, sizeof(path));
	fd = pp_lab_connect(path, QMP_MS, err);
	if (fd < 0)
		return -1;
	snprintf(text, sizeof(text), "{\"execute\": \"%s\"}\n", command);
	rc = qmp_answer(fd, err);
	if (!rc && pp_write_all(fd, hello, strlen(hello)))
		rc = pp_fail_os(err, errno, "cannot command QEMU");
	if (!rc)
		rc = qmp_answer(fd, err);
	if (!rc && pp_write_all(fd, text, strlen(text)))
		rc = pp_fail_os(err, errno, "cannot command QEMU");
	if (!rc)
		rc = qmp_answer(fd, err);
	close(fd);
	return rc;
}

int pp_rig_vm_reset(struct pp_rig_vm *rig, struct pp_error *err)
{
	int rc;

	pthread_mutex_lock(&rig->lock);
	if (rig->machine) {
		rig->console_start = console_size(rig);
		rc = qmp(rig, "system_reset", err);
	} else {
		rc = pp_fail(err, PP_ERR_PEER, "the machine is not running");
	}
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

int pp_rig_vm_kill_machine(struct pp_rig_vm *rig, struct pp_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&rig->lock);
	if (rig->machine)
		kill_machine(rig);
	else
		rc = pp_fail(err, PP_ERR_PEER, "the machine is not running");
	pthread_mutex_unlock(&rig->lock);
	return rc;
}

bool pp_rig_vm_has_power(struct pp_rig_vm *rig)
{
	bool on;

	pthread_mutex_lock(&rig->lock);
	on = rig->outlet_on;
	pthread_mutex_unlock(&rig->lock);
	return on;
}

double pp_rig_vm_watts(struct pp_rig_vm *rig)
{
	double watts;

	pthread_mutex_lock(&rig->lock);
	watts = !rig->outlet_on ? 0 : rig->machine ? WATTS_RUNNING : WATTS_STANDBY;
	pthread_mutex_unlock(&rig->lock);
	return watts;
}

void pp_rig_vm_set_no_boot(struct pp_rig_vm *rig, bool no_boot)
{
	pthread_mutex_lock(&rig->lock);
	rig->no_boot = no_boot;
	pthread_mutex_unlock(&rig->lock);
}

/* ---- drives ----------------------------------------------------------------------------- */

int pp_rig_vm_drive_command(struct pp_rig_vm *rig, const char *serial, const char *command,
	struct pp_buf *out, struct pp_error *err)
{
	struct slot *slot;
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

int pp_rig_vm_swap(struct pp_rig_vm *rig, const char *serial,
	const struct pp_lab_drive *replacement, struct pp_error *err)
{
	struct slot *slot;
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

void pp_rig_vm_say_state(struct pp_rig_vm *rig, struct pp_buf *out)
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

/* ---- the guest's command line ----------------------------------------------------------- */

/* Whether the guest of this boot has said that it is ready; -1: there is no machine. */
static int guest_ready(struct pp_rig_vm *rig)
{
	char path[4096];
	struct pp_buf log;
	off_t start;
	bool ready, running;

	log_path(rig, "console.log", path, sizeof(path));
	pthread_mutex_lock(&rig->lock);
	start = rig->console_start;
	running = rig->machine;
	pthread_mutex_unlock(&rig->lock);
	if (!running)
		return -1;
	pp_buf_init(&log, 64 << 20);
	ready = !pp_file_read(path, &log, NULL) && (off_t)log.bytes > start
		&& strstr(log.data + start, "plugpull-lab-guest: ready");
	pp_buf_release(&log);
	return ready;
}

static int read_answer(int fd, int64_t until_ns, struct pp_buf *out, int *status,
	struct pp_error *err)
{
	struct pp_buf in;
	char chunk[4096], *end;
	int rc = -2;

	pp_buf_init(&in, 16 << 20);
	while (rc == -2) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left_ms = (until_ns - pp_clock_mono_ns()) / PP_NS_PER_MS;
		ssize_t n;

		if (left_ms <= 0) {
			rc = pp_fail(err, PP_ERR_PEER, "the guest did not finish the command in time");
			break;
		}
		if (poll(&p, 1, left_ms > 1000 ? 1000 : (int)left_ms) != 1)
			continue;
		n = read(fd, chunk, sizeof(chunk));
		if (n <= 0) {
			rc = pp_fail(err, PP_ERR_PEER, "the machine went away");
			break;
		}
		pp_buf_add(&in, chunk, (size_t)n);
		end = in.data ? strstr(in.data, GUEST_COMMAND_END) : NULL;
		if (end && strchr(end, '\n')) {
			*status = atoi(end + strlen(GUEST_COMMAND_END));
			pp_buf_add(out, in.data, (size_t)(end - in.data));
			rc = in.failed ? pp_fail_os(err, ENOMEM, "the command's output is too long") : 0;
		}
	}
	pp_buf_release(&in);
	return rc;
}

int pp_rig_vm_guest(struct pp_rig_vm *rig, const char *line, int64_t timeout_ms,
	struct pp_buf *out, int *status, struct pp_error *err)
{
	int64_t until_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	char path[256], text[8192];
	int rc = 0, ready;

	path_in(rig, "guest.sock", path, sizeof(path));
	if (snprintf(text, sizeof(text), "%s\n", line) >= (int)sizeof(text))
		return pp_fail(err, PP_ERR_USAGE, "the command for the guest is too long");
	while ((ready = guest_ready(rig)) <= 0) {
		if (ready < 0 || pp_clock_mono_ns() >= until_ns)
			return pp_fail(err, PP_ERR_PEER, ready ? "the machine is not running"
				: "the guest is not up");
		pp_clock_sleep_ms(20);
	}
	pthread_mutex_lock(&rig->guest_lock);
	drop_guest_connection(rig);
	rig->guest_fd = pp_lab_connect(path, 1000, err);
	if (rig->guest_fd < 0)
		rc = -1;
	else if (pp_write_all(rig->guest_fd, text, strlen(text)))
		rc = pp_fail_os(err, errno, "cannot command the guest");
	else
		rc = read_answer(rig->guest_fd, until_ns, out, status, err);
	drop_guest_connection(rig);
	pthread_mutex_unlock(&rig->guest_lock);
	return rc;
}
