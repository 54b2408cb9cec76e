/* SPDX-License-Identifier: MIT
 *
 * What the agent says of its machine, and how it switches it off.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/reboot.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <version.h>

#include "agent_parts.h"
#include "src/core/clock.h"
#include "src/core/file.h"
#include "src/core/os.h"
#include "src/core/subprocess.h"

#define SYNC_MS 10000

/* The binary that runs, not the file that now has its name. */
static void own_sha256(char out[65])
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint8_t chunk[65536], digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx ctx;
	ssize_t n;
	size_t i;

	out[0] = '\0';
	if (fd < 0)
		return;
	sha256_init(&ctx);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		sha256_update(&ctx, (size_t)n, chunk);
	close(fd);
	if (n < 0)
		return;
	sha256_digest(&ctx, sizeof(digest), digest);
	for (i = 0; i < sizeof(digest); i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

static int read_boot_id(char *out, size_t bytes, struct pp_error *err)
{
	struct pp_buf text;
	int rc;

	pp_buf_init(&text, 4096);
	rc = pp_file_read("/proc/sys/kernel/random/boot_id", &text, err);
	if (rc == 0 && text.data) {
		text.data[strcspn(text.data, "\n")] = '\0';
		snprintf(out, bytes, "%s", text.data);
	}
	pp_buf_release(&text);
	return rc;
}

int agent_host_hello(struct pp_hello *hello, struct pp_error *err)
{
	struct utsname name;

	hello->protocol = PP_WIRE_VERSION;
	snprintf(hello->version, sizeof(hello->version), "%s", PP_VERSION);
	snprintf(hello->commit, sizeof(hello->commit), "%s", PP_COMMIT);
	if (uname(&name) != 0)
		return pp_fail_os(err, errno, "cannot tell this machine's name");
	if (!hello->name[0])
		snprintf(hello->name, sizeof(hello->name), "%s", name.nodename);
	snprintf(hello->kernel, sizeof(hello->kernel), "%s", name.release);
	snprintf(hello->machine, sizeof(hello->machine), "%.31s", name.machine);
	snprintf(hello->os, sizeof(hello->os), "%s", PP_OS_NAME);
	own_sha256(hello->sha256);
	if (read_boot_id(hello->boot_id, sizeof(hello->boot_id), err) != 0)
		return -1;
	hello->uptime_ns = (uint64_t)pp_clock_boot_ns();
	hello->agent_ns = (uint64_t)pp_clock_mono_ns();
	return 0;
}

void agent_host_kernel(char *out, size_t bytes)
{
	struct utsname name;

	snprintf(out, bytes, "%s", uname(&name) == 0 ? name.release : "");
}

/* ---- power --------------------------------------------------------------------------------- */

static void *sync_main(void *arg)
{
	sync();
	atomic_store((atomic_bool *)arg, true);
	return NULL;
}

/* A drive that hangs must not keep the machine on. */
static void sync_for_a_while(void)
{
	static atomic_bool done; /* static: the thread may outlive us */
	int64_t until_ns = pp_clock_mono_ns() + SYNC_MS * PP_NS_PER_MS;
	pthread_t thread;

	atomic_store(&done, false);
	if (pthread_create(&thread, NULL, sync_main, &done) != 0)
		return;
	pthread_detach(thread);
	while (!atomic_load(&done) && pp_clock_mono_ns() < until_ns)
		pp_clock_sleep_ms(10);
}

int pp_agent_power(void *ctx, bool restart, struct pp_error *err)
{
	const char *const argv[] = { restart ? "reboot" : "poweroff", NULL };
	struct pp_subprocess what = { .argv = argv, .timeout_ms = 30000 };
	struct pp_subprocess_result result;

	(void)ctx;
	sync_for_a_while();
	if (pp_subprocess_run(&what, &result, NULL) == 0 && result.exit_status == 0)
		return 0;
	if (reboot(restart ? RB_AUTOBOOT : RB_POWER_OFF) == 0)
		return 0;
	return pp_fail_os(err, errno, "cannot %s this machine", restart ? "restart" : "power off");
}
