/* SPDX-License-Identifier: MIT
 *
 * init of the lab's virtual machine. It does what a machine's start-up does and no more, says on
 * the console what fails, and goes on: a drive that cannot be attached is the agent's to report.
 */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/file.h"
#include "loop_machine.h"

#define MAX_DRIVES      64
#define MAX_AGENT_WORDS 256
#define CONFIG_BYTES    65536

void guest_say(const char *fmt, ...)
{
	char text[1024];
	va_list args;
	int fd = open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC);

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (fd < 0)
		return;
	dprintf(fd, "plugpull-lab-guest: %s\n", text);
	close(fd);
}

static void mount_all(void)
{
	static const struct {
		const char *type, *where, *options;
	} mounts[] = {
		{ "devtmpfs", "/dev", "mode=0755" }, { "proc", "/proc", NULL }, { "sysfs", "/sys", NULL },
		{ "tmpfs", "/tmp", "mode=1777" }, { "tmpfs", "/run", "mode=0755" },
	};

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		mkdir(mounts[i].where, 0755);
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0, mounts[i].options)
		    && errno != EBUSY)
			guest_say("cannot mount '%s': %s", mounts[i].where, strerror(errno));
	}
}

static void load_module(char *path)
{
	const char *options = strstr(path, "/nbd.ko") ? "nbds_max=16 max_part=0" : "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || (syscall(SYS_finit_module, fd, options, 0) && errno != EEXIST))
		guest_say("cannot load '%s': %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
}

/* Calls `each` for every line of a file. */
static void for_lines(const char *path, void (*each)(char *line))
{
	struct pp_buf text;
	struct pp_error err = { 0 };
	char *save = NULL;

	pp_buf_init(&text, CONFIG_BYTES);
	if (pp_file_read(path, &text, &err))
		guest_say("%s", err.text);
	else
		for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
		     line = strtok_r(NULL, "\n", &save))
			each(line);
	pp_buf_release(&text);
}

/* ---- configuration ---------------------------------------------------------------------- */

static struct {
	char *agent[MAX_AGENT_WORDS + 1];
	int agent_words;
	int drives;
} boot;

static void configure(char *line)
{
	struct pp_error err = { 0 };
	char a[64], b[64], c[128];
	int n, m;

	if (sscanf(line, "address %63[^/]/%d %63s", a, &n, b) == 3) {
		if (guest_network_up(a, n, b, &err))
			guest_say("%s", err.text);
	} else if (sscanf(line, "nbd %63s %d %127s %d", a, &n, c, &m) == 4) {
		if (boot.drives < MAX_DRIVES && guest_nbd_attach(boot.drives, a, n, c, m, &err))
			guest_say("%s", err.text);
		boot.drives++;
	} else if (!strncmp(line, "agent ", 6)) {
		if (boot.agent_words < MAX_AGENT_WORDS)
			boot.agent[boot.agent_words++] = strdup(line + 6);
	} else {
		guest_say("cannot understand '%s' in '" GUEST_CONFIG "'", line);
	}
}

/* ---- processes -------------------------------------------------------------------------- */

static void use_console(void)
{
	int fd = open("/dev/console", O_RDWR | O_NOCTTY);

	for (int i = 0; fd >= 0 && i < 3; i++)
		dup2(fd, i);
	if (fd > 2)
		close(fd);
}

static pid_t start_agent(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setsid();
	use_console();
	execv(boot.agent[0], boot.agent);
	guest_say("cannot start '%s': %s", boot.agent[0], strerror(errno));
	_exit(127);
}

/* One command: sh runs it with its output on the command line's terminal. */
static void run_command(int fd, const char *line)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		int null = open("/dev/null", O_RDONLY);

		setsid();
		dup2(null, 0);
		dup2(fd, 1);
		dup2(fd, 2);
		execl("/bin/sh", "sh", "-c", line, (char *)NULL);
		_exit(127);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	tcdrain(fd);
	dprintf(fd, GUEST_COMMAND_END "%d\n",
		WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* The lab's way in. Lines are commands; nothing else is ever said here unasked. */
static void serve_commands(void)
{
	int fd = open(GUEST_COMMAND, O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios raw;
	static char line[8192];
	size_t have = 0;

	if (fd < 0 || tcgetattr(fd, &raw)) {
		guest_say("cannot open '" GUEST_COMMAND "': %s", strerror(errno));
		_exit(1);
	}
	cfmakeraw(&raw);
	cfsetspeed(&raw, B115200);
	tcsetattr(fd, TCSANOW, &raw);
	for (;;) {
		ssize_t n = read(fd, line + have, 1);

		if (n < 0 && errno != EINTR)
			_exit(1);
		if (n <= 0)
			continue;
		if (line[have] == '\n' || have == sizeof(line) - 2) {
			line[have] = '\0';
			have = 0;
			run_command(fd, line);
		} else {
			have++;
		}
	}
}

void guest_init(void)
{
	pid_t agent = -1, pid;
	int status;

	mount_all();
	use_console();
	setenv("PATH", "/sbin:/bin:/usr/sbin:/usr/bin", 1);
	guest_say("up after %lld ms", (long long)(pp_clock_boot_ns() / PP_NS_PER_MS));
	for_lines(GUEST_MODULES, load_module);
	if (!fork())
		serve_commands();
	for_lines(GUEST_CONFIG, configure);
	if (boot.agent_words)
		agent = start_agent();
	guest_say("ready after %lld ms", (long long)(pp_clock_boot_ns() / PP_NS_PER_MS));
	for (;;) {
		pid = wait(&status);
		if (pid < 0)
			pp_clock_sleep_ms(1000);
		else if (pid == agent)
			guest_say("agent ended with %s %d", WIFEXITED(status) ? "status" : "signal",
				WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
	}
}

/* ---- the end ---------------------------------------------------------------------------- */

/* One mount on an nbd device, the latest first, so that one on another goes before it. */
static int unmount_one(void)
{
	struct pp_buf text;
	char *save = NULL;
	char last[512] = "";
	int rc = 0;

	pp_buf_init(&text, CONFIG_BYTES);
	pp_file_read("/proc/self/mounts", &text, NULL);
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		char where[512];

		if (sscanf(line, "/dev/nbd%*s %511s", where) == 1)
			strcpy(last, where);
	}
	pp_buf_release(&text);
	if (!last[0])
		return 1;
	if (umount(last)) {
		rc = -1;
		guest_say("cannot unmount '%s': %s", last, strerror(errno));
	}
	return rc;
}

int guest_shut_down(int reboot_command)
{
	struct pp_error err = { 0 };
	char path[64];
	int rc;

	sync();
	/* As any init does: what is still open cannot be unmounted. Spares us and init. */
	kill(-1, SIGTERM);
	pp_clock_sleep_ms(100);
	kill(-1, SIGKILL);
	while (!(rc = unmount_one()))
		;
	sync();
	for (int i = 0; i < MAX_DRIVES; i++) {
		snprintf(path, sizeof(path), "/sys/block/nbd%d/pid", i);
		if (!access(path, F_OK) && guest_nbd_detach(i, &err)) {
			guest_say("%s", err.text);
			rc = -1;
		}
	}
	if (rc < 0)
		guest_say("going down all the same");
	if (!reboot(reboot_command))
		for (;;)
			pause();
	guest_say("cannot go down: %s", strerror(errno));
	return -1;
}

/* ---- smartctl --------------------------------------------------------------------------- */

int guest_smartctl(int argc, char **argv)
{
	const char *device = NULL;
	char path[256], serial[128] = "";
	struct pp_buf text;
	struct pp_error err = { 0 };
	int status;

	for (int i = 1; i < argc; i++)
		if (argv[i][0] == '/')
			device = argv[i];
	if (!device || strncmp(device, "/dev/", 5)) {
		fprintf(stderr, "smartctl: no device given\n");
		return 1;
	}
	pp_buf_init(&text, CONFIG_BYTES);
	if (loop_inside()) {
		loop_smart_path(device, path, sizeof(path));
	} else {
		snprintf(path, sizeof(path), "/sys/block/%s/backend", device + 5);
		if (!pp_file_read(path, &text, &err))
			sscanf(text.data, "%127s", serial);
		pp_buf_clear(&text);
		snprintf(path, sizeof(path), GUEST_SMART "/%s.json", serial);
	}
	status = pp_file_read(path, &text, &err) ? 2 : 0; /* 2: device open failed */
	if (status)
		fprintf(stderr, "smartctl: %s\n", err.text);
	else if (fwrite(text.data, 1, text.bytes, stdout) != text.bytes || fflush(stdout))
		status = 1;
	pp_buf_release(&text);
	return status;
}

/* ---- the drive's cache ------------------------------------------------------------------ */

/* The line of GUEST_CONFIG that this drive was attached by: they are in the order of the devices. */
static int nbd_cache(const char *node, const char *word, bool *on, struct pp_error *err)
{
	char ip[64], serial[128], *save = NULL;
	int wanted, at = 0, port, block, rc = -1;
	struct pp_buf text;

	if (sscanf(node, "/dev/nbd%d", &wanted) != 1)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is no drive of the lab", node);
	pp_buf_init(&text, CONFIG_BYTES);
	if (pp_file_read(GUEST_CONFIG, &text, err)) {
		pp_buf_release(&text);
		return -1;
	}
	pp_fail(err, PP_ERR_USAGE, "the lab has no drive '%s'", node);
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		if (sscanf(line, "nbd %63s %d %127s %d", ip, &port, serial, &block) == 4
		    && at++ == wanted)
			rc = guest_nbd_cache(ip, port, word, on, err);
	pp_buf_release(&text);
	return rc;
}

int guest_cache(int argc, char **argv)
{
	const char *word = argc == 3 ? argv[2] : NULL;
	struct pp_error err = { 0 };
	bool on = false;
	int rc;

	if (argc < 2 || argc > 3 || (word && strcmp(word, "on") && strcmp(word, "off"))) {
		fprintf(stderr, "usage: plugpull-lab-cache NODE [on|off]\n");
		return 2;
	}
	rc = loop_inside() ? loop_cache(argv[1], word, &on, &err) : nbd_cache(argv[1], word, &on, &err);
	if (rc)
		fprintf(stderr, "plugpull-lab-cache: %s\n", err.text);
	else if (printf("%s\n", on ? "on" : "off") < 0 || fflush(stdout))
		rc = -1;
	return rc ? 2 : 0;
}
