/* SPDX-License-Identifier: MIT
 *
 * The write cache of a lab's drive. NBD has no command for it and a loop device no setting, so inside a
 * lab's machine a program of the lab stands for the drive's own: PP_POLICY_LAB_PROGRAM NODE [on|off]
 * prints "on", "off" or "none". No real machine has it; there such drives cannot be asked.
 */
#include <errno.h>
#include <string.h>

#include "policy_ops_linux.h"
#include "subprocess.h"

#define TIMEOUT_MS 20000

static int run(const char *node, const char *word, enum pp_drive_cache *cache)
{
	const char *argv[] = {PP_POLICY_LAB_PROGRAM, node, word, NULL};
	struct pp_subprocess what = {.argv = argv, .timeout_ms = TIMEOUT_MS};
	struct pp_subprocess_result result;
	struct pp_error err;
	struct pp_buf out;
	char path[512];
	int rc = 0;

	if (!pp_subprocess_find(PP_POLICY_LAB_PROGRAM, path, sizeof(path)))
		return ENOTSUP;
	pp_buf_init(&out, 4096);
	what.out = &out;
	if (pp_subprocess_run(&what, &result, &err) != 0 || result.exit_status != 0 || !out.data)
		rc = EIO;
	else if (strcmp(out.data, "on\n") == 0)
		*cache = PP_CACHE_ON;
	else if (strcmp(out.data, "off\n") == 0)
		*cache = PP_CACHE_OFF;
	else if (strcmp(out.data, "none\n") == 0)
		*cache = PP_CACHE_NONE;
	else
		rc = EIO;
	pp_buf_release(&out);
	return rc;
}

int pp_policy_lab_cache(const char *node, enum pp_drive_cache *cache)
{
	return run(node, NULL, cache);
}

int pp_policy_lab_set_cache(const char *node, bool on)
{
	enum pp_drive_cache now = PP_CACHE_UNKNOWN;

	return run(node, on ? "on" : "off", &now);
}
