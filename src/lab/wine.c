/* SPDX-License-Identifier: MIT */
#include "wine.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/subprocess.h"
#include "core/text.h"
#include "core/tree.h"

#define PREFIX    "wine"
#define BOOT_MS   120000
#define FORMAT_MS 60000
#define SERIAL    "volume."

/* No talk, no .NET and HTML engines to ask for, no menu entries on this host's desktop. */
static const char *const wine_env[] = { "WINEDEBUG=-all",
	"WINEDLLOVERRIDES=mscoree,mshtml,winemenubuilder.exe=" };

bool pp_wine_wanted(const char *dut)
{
	size_t n = dut ? strlen(dut) : 0;

	return n > 4 && strcmp(dut + n - 4, ".exe") == 0;
}

static int find_wine(char *path, size_t bytes, struct pp_error *err)
{
	static const char *const names[] = { "/usr/lib/wine/wine64", "wine64", "wine" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (pp_subprocess_find(names[i], path, bytes))
			return 0;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "a Windows machine in the lab needs Wine (apt-get install "
		"wine64)");
}

/* The server's socket lies in $TMPDIR, and stays there when the machine is killed. */
static void own_env(const char *run_dir, char prefix[256], char tmp[256])
{
	snprintf(prefix, 256, "WINEPREFIX=%s/" PREFIX, run_dir);
	snprintf(tmp, 256, "TMPDIR=%s", run_dir);
}

static int run(const char *const *argv, const char *run_dir, int64_t timeout_ms, struct pp_error *err)
{
	char prefix[256], tmp[256];
	const char *env[] = { prefix, tmp, wine_env[0], wine_env[1], NULL };
	struct pp_subprocess what = { .argv = argv, .env = env, .timeout_ms = timeout_ms };
	struct pp_subprocess_result result;
	struct pp_buf out;
	int rc;

	own_env(run_dir, prefix, tmp);
	pp_buf_init(&out, 1000);
	what.out = &out;
	rc = pp_subprocess_run(&what, &result, err);
	if (rc == 0 && result.exit_status != 0)
		rc = pp_fail(err, PP_ERR_SYSTEM, "%s %s: %s", argv[0],
			result.timed_out ? "does not end" : "failed", out.data ? out.data : "no reason given");
	pp_buf_release(&out);
	return rc;
}

/* The agent ends its machine by Windows' own command; here that is the machine's own power switch. */
static int make_shutdown(const char *run_dir, const char *guest_tool, struct pp_error *err)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/" PREFIX "/drive_c/windows/system32/shutdown.exe", run_dir);
	unlink(path);
	return symlink(guest_tool, path) == 0 ? 0 : pp_fail_os(err, errno, "cannot make '%s'", path);
}

int pp_wine_open(const char *run_dir, const char *guest_tool, struct pp_error *err)
{
	char wine[256], server[300], *slash;
	const char *boot[] = { wine, "wineboot", "-i", NULL }, *end[] = { server, "-k", NULL };

	if (find_wine(wine, sizeof(wine), err) != 0)
		return -1;
	pp_text_copy(server, sizeof(server), wine);
	slash = strrchr(server, '/');
	if (!slash)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot tell where '%s' is", wine);
	strcpy(slash, "/wineserver64");
	if (run(boot, run_dir, BOOT_MS, err) != 0)
		return pp_fail_within(err, "cannot make Wine's folder");
	run(end, run_dir, BOOT_MS, NULL); /* says that there is none when it has ended by itself */
	return make_shutdown(run_dir, guest_tool, err);
}

static bool is_volume(const char *serial)
{
	size_t n = strlen(SERIAL);

	return strncmp(serial, SERIAL, n) == 0 && strspn(serial + n, "0123456789ABCDEF") == 8 &&
		strlen(serial) == n + 8;
}

/* What a volume begins with: its serial, and the agent's folder. */
static int make_seed(const char *seed, const char *serial, struct pp_error *err)
{
	char path[512], text[16];

	snprintf(path, sizeof(path), "%s/" PP_WINE_FOLDER, seed);
	if (pp_mkdirs(path, err) != 0)
		return -1;
	snprintf(path, sizeof(path), "%s/.windows-serial", seed);
	snprintf(text, sizeof(text), "%s\n", serial + strlen(SERIAL));
	return pp_file_write(path, text, strlen(text), 0644, err);
}

int pp_wine_format(const char *image, const char *serial, uint64_t size_bytes, const char *run_dir,
	struct pp_error *err)
{
	char seed[256], size[32];
	const char *argv[] = { "mke2fs", "-q", "-F", "-t", "ext4", "-E",
		"lazy_itable_init=0,lazy_journal_init=0", "-d", seed, image, size, NULL };
	int rc;

	if (!is_volume(serial))
		return pp_fail(err, PP_ERR_USAGE, "drive '%s': in a Windows machine of the lab a drive is "
			"called " SERIAL "XXXXXXXX, eight upper-case hex digits", serial);
	if (access(image, F_OK) == 0)
		return 0;
	snprintf(size, sizeof(size), "%lluk", (unsigned long long)size_bytes / 1024);
	snprintf(seed, sizeof(seed), "%s/seed", run_dir);
	rc = make_seed(seed, serial, err);
	if (rc == 0)
		rc = run(argv, run_dir, FORMAT_MS, err);
	pp_tree_remove(seed, NULL);
	return rc;
}

int pp_wine_conf(const char *run_dir, struct pp_buf *conf, struct pp_error *err)
{
	char wine[256], prefix[256], tmp[256];

	if (find_wine(wine, sizeof(wine), err) != 0)
		return -1;
	own_env(run_dir, prefix, tmp);
	pp_buf_addf(conf, "env %s\nenv %s\n", prefix, tmp);
	for (size_t i = 0; i < sizeof(wine_env) / sizeof(wine_env[0]); i++)
		pp_buf_addf(conf, "env %s\n", wine_env[i]);
	pp_buf_addf(conf, "volumes %s/" PREFIX "/dosdevices\nagent %s\n", run_dir, wine);
	return 0;
}
