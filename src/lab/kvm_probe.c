/* SPDX-License-Identifier: MIT */
#include "kvm_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "core/clock.h"
#include "core/file.h"
#include "cpio.h"

#define TRIAL_MS 8000

static bool spoke(const char *console)
{
	struct pp_buf text;
	bool found;

	pp_buf_init(&text, 1 << 20);
	found = !pp_file_read(console, &text, NULL) && text.data
		&& strstr(text.data, "plugpull-lab-guest: up");
	pp_buf_release(&text);
	return found;
}

static bool boots(const char *vmlinuz, const char *initrd, const char *console)
{
	int64_t until_ns = pp_clock_mono_ns() + TRIAL_MS * PP_NS_PER_MS;
	char chardev[300];
	const char *argv[] = { "qemu-system-x86_64", "-M", "q35", "-accel", "kvm", "-cpu", "host",
		"-m", "256", "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
		"-chardev", chardev, "-serial", "chardev:console", "-kernel", vmlinuz, "-initrd", initrd,
		"-append", "console=ttyS0 quiet panic=-1", NULL };
	bool good = false, ended = false;
	pid_t pid;

	snprintf(chardev, sizeof(chardev), "file,id=console,path=%s", console);
	pid = pp_child_start(argv, -1, NULL, NULL);
	if (pid < 0)
		return false;
	while (!good && !ended && pp_clock_mono_ns() < until_ns) {
		pp_clock_sleep_ms(20);
		good = spoke(console);
		ended = waitpid(pid, NULL, WNOHANG) == pid;
	}
	if (!ended) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return good;
}

static bool try_boot(const char *vmlinuz, const struct pp_buf *image, const char *work_dir)
{
	char initrd[256], console[256];
	struct pp_buf end;
	bool good = false;
	int fd;

	snprintf(initrd, sizeof(initrd), "%s/kvm-initrd", work_dir);
	snprintf(console, sizeof(console), "%s/kvm-console", work_dir);
	pp_buf_init(&end, 4096);
	pp_cpio_end(&end);
	fd = open(initrd, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0) {
		good = !pp_write_all(fd, image->data, image->bytes)
			&& !pp_write_all(fd, end.data, end.bytes);
		good = !close(fd) && good && boots(vmlinuz, initrd, console);
	}
	pp_buf_release(&end);
	unlink(initrd);
	unlink(console);
	return good;
}

bool pp_kvm_works(const char *vmlinuz, const struct pp_buf *image, const char *work_dir,
	const char *memo_dir)
{
	char memo[4096 + 32];
	struct pp_buf boot_id, known;
	struct stat st;
	bool good, remembered;
	int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return false;
	close(fd);
	pp_buf_init(&boot_id, 128);
	pp_buf_init(&known, 128);
	snprintf(memo, sizeof(memo), "%s/kvm-trial", memo_dir);
	pp_file_read("/proc/sys/kernel/random/boot_id", &boot_id, NULL);
	remembered = !pp_file_read(memo, &known, NULL) && known.bytes == boot_id.bytes + 1
		&& boot_id.bytes && !memcmp(known.data + 1, boot_id.data, boot_id.bytes);
	good = remembered ? known.data[0] == '1' : try_boot(vmlinuz, image, work_dir);
	if (!remembered) {
		pp_buf_clear(&known);
		pp_buf_addf(&known, "%d%s", good, boot_id.data ? boot_id.data : "");
		/* Without a memo the next lab tries again. Under sudo it is the user's, as its folder. */
		if (!pp_file_write(memo, known.data, known.bytes, 0644, NULL) && !stat(memo_dir, &st)
		    && chown(memo, st.st_uid, st.st_gid))
			unlink(memo);
	}
	pp_buf_release(&boot_id);
	pp_buf_release(&known);
	return good;
}
