/* SPDX-License-Identifier: MIT */
#include "loop_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "drive_host.h"
#include "core/text.h"
#include "rig_parts.h"

#define CONFIG_BYTES    (1 << 17)
#define MAX_AGENT_WORDS 256
#define MAX_VOLUMES     16
#define ATTACH_TRIES    100

static struct {
	char boot_id[64], folder[128];
	char *agent[MAX_AGENT_WORDS + 1];
	int agent_words;
	char volumes[512];             /* where drive letters are; "": none */
	char nodes[MAX_VOLUMES][32];   /* of the drives, in their order; "": not attached */
	int drives;
} boot;

static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	dprintf(2, "plugpull-lab-guest: %s\n", text);
}

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int rc = fd < 0 ? -1 : pp_write_all(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return rc;
}

static int make_file(const char *path, const char *text)
{
	struct pp_error err = { 0 };

	if (!pp_file_write(path, text, strlen(text), 0600, &err))
		return 0;
	say("%s", err.text);
	return -1;
}

/* ---- the holder ------------------------------------------------------------------------- */

/* Slaves: what the host unmounts goes here too, what happens here the host never sees. */
static int leave_mounts(void)
{
	if (!mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL))
		return 0;
	say("cannot leave the host's mounts: %s", strerror(errno));
	return -1;
}

int loop_hold(const char *ready)
{
	if (unshare(CLONE_NEWNS)) {
		say("cannot make a mount namespace: %s", strerror(errno));
		return 2;
	}
	if (leave_mounts() || make_file(ready, ""))
		return 2;
	for (;;)
		pause();
}

/* ---- drives ----------------------------------------------------------------------------- */

static int attach_to(int loop_fd, int file_fd, const char *serial, int block_bytes)
{
	struct loop_config config = { .fd = (uint32_t)file_fd, .block_size = (uint32_t)block_bytes,
		.info = { .lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO } };

	snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%s", serial);
	return ioctl(loop_fd, LOOP_CONFIGURE, &config);
}

/* A loop device keeps this setting when it changes hands, and without it the kernel sends no flush:
 * it must be as the kernel makes it, whatever somebody had tried. */
static void expect_flushes(int number)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/block/loop%d/queue/write_cache", number);
	if (write_text(path, "write back"))
		say("cannot write '%s': %s", path, strerror(errno));
}

/* btrfs remembers devices it has seen, which a boot does not; it would refuse one that is older
 * than it was. */
static void forget_btrfs(const char *node)
{
	int fd = open("/dev/btrfs-control", O_RDWR | O_CLOEXEC);
	struct btrfs_ioctl_vol_args args = { 0 };

	if (fd < 0)
		return;
	snprintf(args.name, sizeof(args.name), "%s", node);
	ioctl(fd, BTRFS_IOC_FORGET_DEV, &args);
	close(fd);
}

/* The loop device stays attached for as long as we, or what is mounted on it, have it open. */
static void attach(const char *serial, int block_bytes, const char *file, char taken[32])
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int file_fd = open(file, O_RDWR | O_CLOEXEC);
	int number, fd, code = errno;
	char node[32];

	if (control < 0 || file_fd < 0) {
		say("cannot attach drive '%s': %s", serial, strerror(code));
		return;
	}
	for (int i = 0; i < ATTACH_TRIES; i++) {
		number = ioctl(control, LOOP_CTL_GET_FREE);
		snprintf(node, sizeof(node), "/dev/loop%d", number);
		fd = number < 0 ? -1 : open(node, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && !attach_to(fd, file_fd, serial, block_bytes)) {
			strcpy(taken, node);
			expect_flushes(number);
			forget_btrfs(node);
			close(file_fd);
			close(control);
			return;
		}
		code = errno;
		if (fd >= 0)
			close(fd);
		if (code != EBUSY && code != ENOENT && code != ENXIO)
			break;
		pp_clock_sleep_ms(1 + i / 10); /* another lab was faster, or the node is not there yet */
	}
	say("cannot attach drive '%s': %s", serial, strerror(code));
}

/* ---- init ------------------------------------------------------------------------------- */

static void configure(char *line)
{
	char a[LO_NAME_SIZE], b[512];
	static char unused[32];
	int n;

	if (sscanf(line, "boot_id %63s", boot.boot_id) == 1 || sscanf(line, "folder %127s",
		    boot.folder) == 1)
		return;
	if (sscanf(line, "drive %63s %d %511s", a, &n, b) == 3) {
		attach(a, n, b, boot.drives < MAX_VOLUMES ? boot.nodes[boot.drives] : unused);
		boot.drives++;
	} else if (!strncmp(line, "env ", 4)) {
		if (putenv(strdup(line + 4)))
			say("cannot set '%s'", line + 4);
	} else if (!strncmp(line, "volumes ", 8)) {
		pp_text_copy(boot.volumes, sizeof(boot.volumes), line + 8);
	} else if (!strncmp(line, "agent ", 6)) {
		if (boot.agent_words < MAX_AGENT_WORDS)
			boot.agent[boot.agent_words++] = strdup(line + 6);
	} else {
		say("cannot understand '%s'", line);
	}
}

static int read_conf(const char *path)
{
	struct pp_error err = { 0 };
	struct pp_buf text;
	char *save = NULL;
	int rc;

	pp_buf_init(&text, CONFIG_BYTES);
	rc = pp_file_read(path, &text, &err);
	if (rc)
		say("%s", err.text);
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line && !rc;
	     line = strtok_r(NULL, "\n", &save))
		configure(line);
	pp_buf_release(&text);
	return rc;
}

static int make_proc(void)
{
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL)
	    || mount("tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")
	    || mkdir(LOOP_RUN, 0700)) {
		say("cannot mount the machine's own folders: %s", strerror(errno));
		return -1;
	}
	return 0;
}

static int set_boot_id(void)
{
	static const char path[] = LOOP_RUN "/boot_id";
	char text[80];

	snprintf(text, sizeof(text), "%s\n", boot.boot_id);
	if (make_file(path, text))
		return -1;
	if (!mount(path, "/proc/sys/kernel/random/boot_id", NULL, MS_BIND, NULL))
		return 0;
	say("cannot give the machine a boot identity: %s", strerror(errno));
	return -1;
}

/* A drive letter stands for a file system that is mounted, or is not there: a folder of /run in its
 * place would take what was meant for the drive. */
static void mount_volumes(void)
{
	char letter[600], where[64];

	for (int i = 0; i < MAX_VOLUMES; i++) {
		snprintf(letter, sizeof(letter), "%s/%c:", boot.volumes, 'd' + i);
		unlink(letter);
		if (!boot.nodes[i][0])
			continue;
		snprintf(where, sizeof(where), LOOP_RUN "/volume-%c", 'd' + i);
		if (mkdir(where, 0755) || mount(boot.nodes[i], where, "ext4", MS_NOATIME, NULL)
		    || symlink(where, letter))
			say("cannot mount drive %d as %c: %s", i, 'D' + i, strerror(errno));
	}
}

static pid_t start_agent(void)
{
	char text[32];
	pid_t pid = fork();

	if (!pid) {
		setsid();
		execv(boot.agent[0], boot.agent);
		say("cannot start '%s': %s", boot.agent[0], strerror(errno));
		_exit(127);
	}
	snprintf(text, sizeof(text), "%d\n", (int)pid);
	make_file(LOOP_AGENT_PID, text);
	return pid;
}

static void set_path(void)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:"
		"/bin", boot.folder);
	setenv("PATH", path, 1);
}

/* 1 in its PID namespace: when it ends, the kernel kills all else in there. */
static void run_init(const char *pid_text)
{
	char path[192];
	pid_t agent = -1, pid;
	sigset_t none;
	int status;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (leave_mounts() || make_proc() || set_boot_id())
		_exit(2);
	if (symlink(boot.folder, LOOP_SMART))
		say("cannot link the drives' counters: %s", strerror(errno));
	set_path();
	if (boot.volumes[0])
		mount_volumes();
	if (boot.agent_words)
		agent = start_agent();
	snprintf(path, sizeof(path), "%s/" LOOP_READY_FILE, boot.folder);
	make_file(path, pid_text);
	for (;;) {
		pid = wait(&status);
		if (pid < 0)
			pp_clock_sleep_ms(100);
		else if (pid == agent)
			say("agent ended with %s %d", WIFEXITED(status) ? "status" : "signal",
				WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	}
}

/* ---- the machine's process ----------------------------------------------------------------- */

/* Both clocks begin anew, to the nanosecond: the uptime must not exceed the time since power-on. */
static int start_clocks(void)
{
	int64_t boot_ns = pp_clock_boot_ns(), mono_ns = pp_clock_mono_ns();
	char text[128];

	if (unshare(CLONE_NEWTIME)) {
		say("cannot make a time namespace: %s", strerror(errno));
		return -1;
	}
	snprintf(text, sizeof(text), "monotonic %lld %lld\nboottime %lld %lld\n",
		(long long)(-mono_ns / PP_NS_PER_S - 1),
		(long long)(PP_NS_PER_S - mono_ns % PP_NS_PER_S) % PP_NS_PER_S,
		(long long)(-boot_ns / PP_NS_PER_S - 1),
		(long long)(PP_NS_PER_S - boot_ns % PP_NS_PER_S) % PP_NS_PER_S);
	if (!write_text("/proc/self/timens_offsets", text))
		return 0;
	say("cannot set the machine's clocks: %s", strerror(errno));
	return -1;
}

static int status_of(int status)
{
	if (!WIFSIGNALED(status))
		return 2;
	/* reboot(2): as seen by the parent of a PID namespace's init. */
	return WTERMSIG(status) == SIGINT ? 0 : WTERMSIG(status) == SIGHUP ? PP_RIG_EXIT_REBOOT : 1;
}

int loop_boot(const char *conf_path)
{
	char pid_text[32];
	int ends[2], status, number;
	sigset_t set;
	pid_t init;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* Drives are attached out here: a loop device that was opened in the machine's own mounts would
	 * lose the path of its file with them, and nobody could tell whose it is while it goes away. */
	if (start_clocks() || read_conf(conf_path) || pipe2(ends, O_CLOEXEC))
		return 2;
	/* fork(2) into new namespaces; no stack, as fork. */
	init = (pid_t)syscall(SYS_clone, SIGCHLD | CLONE_NEWPID | CLONE_NEWNS, NULL, NULL, NULL, NULL);
	if (init < 0) {
		say("cannot make the machine's namespaces: %s", strerror(errno));
		return 2;
	}
	if (!init) {
		ssize_t n = read(ends[0], pid_text, sizeof(pid_text) - 1);

		if (n > 0) {
			pid_text[n] = '\0';
			close(ends[1]);
			run_init(pid_text);
		}
		_exit(2);
	}
	snprintf(pid_text, sizeof(pid_text), "%d\n", (int)init);
	if (pp_write_all(ends[1], pid_text, strlen(pid_text)))
		kill(init, SIGKILL);
	for (;;) {
		if (!sigwait(&set, &number) && number == SIGTERM)
			kill(init, SIGKILL);
		if (waitpid(init, &status, WNOHANG) == init)
			return status_of(status);
	}
}

/* ---- the end ---------------------------------------------------------------------------- */

bool loop_inside(void)
{
	return !access(LOOP_RUN, F_OK);
}

void loop_smart_path(const char *node, char *out, size_t bytes)
{
	struct loop_info64 info = { 0 };
	int fd = open(node, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		ioctl(fd, LOOP_GET_STATUS64, &info);
		close(fd);
	}
	snprintf(out, bytes, LOOP_SMART "/smart.%.63s.json", (char *)info.lo_file_name);
}

static int serial_of(const char *node, char serial[LO_NAME_SIZE])
{
	struct loop_info64 info = { 0 };
	int fd = open(node, O_RDONLY | O_CLOEXEC);
	int rc = fd < 0 ? -1 : ioctl(fd, LOOP_GET_STATUS64, &info);

	if (fd >= 0)
		close(fd);
	snprintf(serial, LO_NAME_SIZE, "%s", (char *)info.lo_file_name);
	return rc;
}

/* FOLDER/dN.sock: the drive's file is FOLDER/dN/..., as the boot's configuration has it. */
static int find_socket(const char *serial, char *path, size_t bytes, struct pp_error *err)
{
	char name[LO_NAME_SIZE], file[512], conf[128], *save = NULL;
	struct pp_buf text;
	int n, rc = -1;

	snprintf(conf, sizeof(conf), "%s/boot.conf", LOOP_SMART);
	pp_buf_init(&text, CONFIG_BYTES);
	if (pp_file_read(conf, &text, err)) {
		pp_buf_release(&text);
		return -1;
	}
	pp_fail(err, PP_ERR_USAGE, "the lab has no drive '%s'", serial);
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (sscanf(line, "drive %63s %d %511s", name, &n, file) != 3 || strcmp(name, serial)
		    || !strrchr(file, '/'))
			continue;
		*strrchr(file, '/') = '\0';
		rc = snprintf(path, bytes, "%s.sock", file) < (int)bytes ? 0
			: pp_fail_os(err, ENAMETOOLONG, "cannot use '%s'", file);
	}
	pp_buf_release(&text);
	return rc;
}

int loop_cache(const char *node, const char *word, bool *on, struct pp_error *err)
{
	struct pp_drive_host host = { .pid = getpid() }; /* it has power: its socket is what we need */
	char command[32] = "stat";
	struct pp_buf out;
	int rc;

	if (serial_of(node, host.drive.serial))
		return pp_fail_os(err, errno, "cannot ask '%s' whose it is", node);
	if (find_socket(host.drive.serial, host.control, sizeof(host.control), err))
		return -1;
	if (word)
		snprintf(command, sizeof(command), "cache %s", word);
	pp_buf_init(&out, 1 << 14);
	rc = pp_drive_host_command(&host, command, &out, err);
	*on = !rc && strstr(out.data, "\"cache\": \"on\"");
	pp_buf_release(&out);
	return rc;
}

/* A loop device is the machine's if its counters are. */
static bool is_ours(const char *node)
{
	char path[256];

	loop_smart_path(node, path, sizeof(path));
	return !access(path, F_OK);
}

/* One mount on a drive, the latest first, so that one on another goes before it. */
static int unmount_one(void)
{
	char last[512] = "", node[64], where[512], *save = NULL;
	struct pp_buf text;

	pp_buf_init(&text, 1 << 20);
	pp_file_read("/proc/self/mounts", &text, NULL);
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "%63s %511s", node, where) == 2 && !strncmp(node, "/dev/loop", 9)
		    && is_ours(node))
			strcpy(last, where);
	pp_buf_release(&text);
	if (!last[0])
		return 1;
	if (!umount(last))
		return 0;
	say("cannot unmount '%s': %s", last, strerror(errno));
	return -1;
}

int loop_shut_down(int reboot_command)
{
	int rc;

	/* As any init does: what is still open cannot be unmounted. Spares us and init. */
	kill(-1, SIGTERM);
	pp_clock_sleep_ms(100);
	kill(-1, SIGKILL);
	while (!(rc = unmount_one()))
		;
	if (rc < 0)
		say("going down all the same");
	if (!reboot(reboot_command))
		for (;;)
			pause();
	say("cannot go down: %s", strerror(errno));
	return -1;
}
