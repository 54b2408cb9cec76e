/* SPDX-License-Identifier: MIT
 *
 * The rig whose machine is QEMU (rig.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "child.h"
#include "core/clock.h"
#include "core/file.h"
#include "cpio.h"
#include "guest.h"
#include "guest_image.h"
#include "kvm_probe.h"
#include "rig_parts.h"
#include "wine.h"

#define FIRST_PORT      10809
#define IMAGE_BYTES_MAX (256 << 20)
#define MEMORY_MB       256
#define GUEST_ADDRESS   "10.0.2.15/24 10.0.2.2" /* QEMU's user-mode network */
#define GUEST_HOST      "10.0.2.2"              /* 127.0.0.1 of the namespace, from the guest */
#define QMP_MS          5000

struct vm {
	struct pp_guest_kernel kernel;
	struct pp_buf image;
	char plugin[4096];
	unsigned memory_mb;
	off_t console_start;     /* of this boot, in the console log */
	int guest_fd;            /* to the guest's command line; -1: not connected */
	pthread_mutex_t guest_lock;
};

static void drop_guest_connection(struct vm *vm)
{
	if (vm->guest_fd >= 0)
		close(vm->guest_fd);
	vm->guest_fd = -1;
}

static int vm_open(struct pp_rig *rig, const struct pp_rig_config *config, struct pp_error *err)
{
	struct vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return pp_fail_os(err, ENOMEM, "cannot make a rig");
	rig->own = vm;
	vm->guest_fd = -1;
	pthread_mutex_init(&vm->guest_lock, NULL);
	pp_buf_init(&vm->image, IMAGE_BYTES_MAX);
	vm->memory_mb = config->memory_mb ? config->memory_mb : MEMORY_MB;
	strcpy(rig->dut, "/bin/plugpull-dut");
	if (config->accel && strcmp(config->accel, "kvm") && strcmp(config->accel, "tcg"))
		return pp_fail(err, PP_ERR_USAGE, "unknown accelerator '%s': kvm or tcg", config->accel);
	if (pp_wine_wanted(config->dut))
		return pp_fail(err, PP_ERR_USAGE, "'%s' runs in the rig loop only, by Wine", config->dut);
	if (!realpath(config->plugin, vm->plugin))
		return pp_fail_os(err, errno, "cannot find the drive plugin '%s'", config->plugin);
	if (pp_guest_kernel_find(&vm->kernel, config->kernel_dir, config->talk, err)
	    || pp_guest_image_build(&vm->image, &vm->kernel, config->guest_tool, config->dut, err))
		return -1;
	snprintf(rig->accel, sizeof(rig->accel), "%s", config->accel ? config->accel
		: pp_kvm_works(vm->kernel.vmlinuz, &vm->image, rig->ns.run_dir, vm->kernel.root) ? "kvm"
		: "tcg");
	return 0;
}

static void vm_close(struct pp_rig *rig)
{
	struct vm *vm = rig->own;

	drop_guest_connection(vm);
	pp_buf_release(&vm->image);
	pthread_mutex_destroy(&vm->guest_lock);
	free(vm);
}

static int vm_start_drive(struct pp_rig *rig, int i, uint64_t seed, const char *log_path,
	struct pp_error *err)
{
	const struct vm *vm = rig->own;
	char net[96], port[16];
	const char *front[] = { "nsenter", net, "nbdkit", "-f", "-i", "127.0.0.1", "-p", port,
		vm->plugin, NULL };

	snprintf(net, sizeof(net), "--net=%s", rig->ns.path);
	snprintf(port, sizeof(port), "%d", FIRST_PORT + i);
	return pp_drive_host_start(&rig->slots[i].host, front, seed, log_path, err);
}

/* ---- boot ------------------------------------------------------------------------------- */

/* The part of the initramfs that is this boot's own. */
static int add_boot(struct pp_rig *rig, struct pp_buf *cpio, struct pp_error *err)
{
	struct pp_buf conf, smart;
	char name[256];
	int rc = 0;

	pp_buf_init(&conf, 1 << 17);
	pp_buf_init(&smart, 1 << 14);
	pp_cpio_dir(cpio, "etc");
	pp_cpio_dir(cpio, &GUEST_SMART[1]);
	pp_buf_addf(&conf, "address " GUEST_ADDRESS "\n");
	for (int i = 0; i < rig->drive_count && !rc; i++) {
		struct pp_drive_host *host = &rig->slots[i].host;

		if (!host->pid)
			continue;
		pp_buf_clear(&smart);
		rc = pp_drive_host_smart(host, &smart, err);
		if (rc)
			break;
		snprintf(name, sizeof(name), GUEST_SMART "/%s.json", host->drive.serial);
		pp_cpio_file(cpio, name + 1, 0644, smart.data, smart.bytes);
		pp_buf_addf(&conf, "nbd " GUEST_HOST " %d %s %d\n", FIRST_PORT + i, host->drive.serial,
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
	pp_buf_release(&smart);
	return rc;
}

static int write_initrd(struct pp_rig *rig, const char *path, struct pp_error *err)
{
	const struct vm *vm = rig->own;
	struct pp_buf cpio;
	int fd = -1, rc;

	pp_buf_init(&cpio, 1 << 20);
	rc = add_boot(rig, &cpio, err);
	if (!rc) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		if (fd < 0 || pp_write_all(fd, vm->image.data, vm->image.bytes)
		    || pp_write_all(fd, cpio.data, cpio.bytes))
			rc = pp_fail_os(err, errno, "cannot write '%s'", path);
	}
	if (fd >= 0 && close(fd) && !rc)
		rc = pp_fail_os(err, errno, "cannot write '%s'", path);
	pp_buf_release(&cpio);
	return rc;
}

static const char command_line[] =
	"console=ttyS0 quiet panic=0 mitigations=off nokaslr audit=0 tsc=reliable no_timer_check "
	"lpj=4000000 cryptomgr.notests i8042.nokbd i8042.noaux net.ifnames=0";

static pid_t start_qemu(struct pp_rig *rig, const char *initrd, struct pp_error *err)
{
	const struct vm *vm = rig->own;
	char net[96], memory[16], console[4200], commands[256], qmp[256], log[4096];
	bool kvm = !strcmp(rig->accel, "kvm");
	const char *argv[] = { "nsenter", net, "qemu-system-x86_64", "-M",
		"q35,sata=off,smbus=off,usb=off,graphics=off,vmport=off", "-accel", rig->accel,
		"-cpu", kvm ? "host" : "qemu64,+rdrand,+rdseed", "-smp", "1", "-m", memory,
		"-nodefaults", "-no-user-config", "-display", "none",
		"-chardev", console, "-serial", "chardev:console",
		"-chardev", commands, "-serial", "chardev:commands", "-qmp", qmp,
		"-netdev", "user,id=n0,ipv6=off", "-device", "virtio-net-pci,netdev=n0,romfile=",
		"-kernel", vm->kernel.vmlinuz, "-initrd", initrd, "-append", command_line, NULL };

	snprintf(net, sizeof(net), "--net=%s", rig->ns.path);
	snprintf(memory, sizeof(memory), "%u", vm->memory_mb);
	snprintf(console, sizeof(console), "file,id=console,append=on,path=%s/console.log",
		rig->image_dir);
	snprintf(commands, sizeof(commands), "socket,id=commands,server=on,wait=off,path=%s/guest.sock",
		rig->ns.run_dir);
	snprintf(qmp, sizeof(qmp), "unix:%s/qmp.sock,server=on,wait=off", rig->ns.run_dir);
	pp_rig_log_path(rig, "qemu.log", log, sizeof(log));
	return pp_child_start(argv, -1, log, err);
}

static off_t console_size(const struct pp_rig *rig)
{
	char path[4096];
	struct stat st;

	pp_rig_log_path(rig, "console.log", path, sizeof(path));
	return stat(path, &st) ? 0 : st.st_size;
}

static pid_t vm_boot(struct pp_rig *rig, struct pp_error *err)
{
	struct vm *vm = rig->own;
	char initrd[256];

	pp_rig_path(rig, "initrd", initrd, sizeof(initrd));
	vm->console_start = console_size(rig);
	return write_initrd(rig, initrd, err) ? -1 : start_qemu(rig, initrd, err);
}

/* ---- reset ------------------------------------------------------------------------------ */

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

static int qmp(struct pp_rig *rig, const char *command, struct pp_error *err)
{
	static const char hello[] = "{\"execute\": \"qmp_capabilities\"}\n";
	char path[256], text[256];
	int fd, rc;

	pp_rig_path(rig, "qmp.sock", path, sizeof(path));
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

static int vm_reset(struct pp_rig *rig, struct pp_error *err)
{
	struct vm *vm = rig->own;

	vm->console_start = console_size(rig);
	return qmp(rig, "system_reset", err);
}

/* ---- the guest's command line ----------------------------------------------------------- */

/* Whether the guest of this boot has said that it is ready. */
static bool vm_ready(struct pp_rig *rig)
{
	const struct vm *vm = rig->own;
	char path[4096];
	struct pp_buf log;
	off_t start;
	bool ready;

	pp_rig_log_path(rig, "console.log", path, sizeof(path));
	pthread_mutex_lock(&rig->lock);
	start = vm->console_start;
	pthread_mutex_unlock(&rig->lock);
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

static int vm_run(struct pp_rig *rig, const char *line, int64_t until_ns, struct pp_buf *out,
	int *status, struct pp_error *err)
{
	struct vm *vm = rig->own;
	char path[256], text[8192];
	int rc = 0;

	pp_rig_path(rig, "guest.sock", path, sizeof(path));
	if (snprintf(text, sizeof(text), "%s\n", line) >= (int)sizeof(text))
		return pp_fail(err, PP_ERR_USAGE, "the command for the guest is too long");
	pthread_mutex_lock(&vm->guest_lock);
	drop_guest_connection(vm);
	vm->guest_fd = pp_lab_connect(path, 1000, err);
	if (vm->guest_fd < 0)
		rc = -1;
	else if (pp_write_all(vm->guest_fd, text, strlen(text)))
		rc = pp_fail_os(err, errno, "cannot command the guest");
	else
		rc = read_answer(vm->guest_fd, until_ns, out, status, err);
	drop_guest_connection(vm);
	pthread_mutex_unlock(&vm->guest_lock);
	return rc;
}

const struct pp_rig_kind pp_rig_kind_vm = {
	.name = "vm", .key_path = "/etc/plugpull.key",
	.kill_agent_line = "killall -9 plugpull-dut", .kill_signal = SIGKILL,
	.open = vm_open, .close = vm_close, .start_drive = vm_start_drive, .boot = vm_boot,
	.reset = vm_reset, .ready = vm_ready, .run = vm_run,
};
