/* SPDX-License-Identifier: MIT
 *
 * The allow list: the machine's owner said what may be written to; the key alone is not enough.
 */
#include "agent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/core/file.h"

#define REAL_BYTES 4096
#define UUID_PREFIX   "uuid:"
#define POLICY_PREFIX "policy:"

int pp_allow_add(struct pp_allow *allow, const char *text, struct pp_error *err)
{
	const char *c;

	if (allow->count >= PP_ALLOW_MAX)
		return pp_fail(err, PP_ERR_USAGE, "more than %d targets are allowed", PP_ALLOW_MAX);
	if (!text[0] || strlen(text) >= PP_ALLOW_TEXT_BYTES)
		return pp_fail(err, PP_ERR_USAGE, "an allowed target must have 1 to %d characters",
			PP_ALLOW_TEXT_BYTES - 1);
	for (c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return pp_fail(err, PP_ERR_USAGE, "an allowed target holds a control character");
	if (strcmp(text, UUID_PREFIX) == 0 || strcmp(text, UUID_PREFIX "auto") == 0)
		return pp_fail(err, PP_ERR_USAGE, "'%s' names no file system", text);
	if (strcmp(text, POLICY_PREFIX) == 0)
		return pp_fail(err, PP_ERR_USAGE, "'%s' names no drive", text);
	if (pp_path_is_root(text))
		return pp_fail(err, PP_ERR_USAGE, "'%s' would allow every file of this machine: name a "
			"folder, 'uuid:' and a file system's UUID, or a drive's serial", text);
	if (pp_path_absolute(text) && pp_path_is_device(text))
		return pp_fail(err, PP_ERR_USAGE, "'%s' may be another drive after the next boot: name a "
			"drive by its serial (see plugpull identify --all)", text);
	memcpy(allow->text[allow->count++], text, strlen(text) + 1);
	return 0;
}

/* By the very words, or because drive and entry are two names of one drive (serial and WWN). */
static bool drive_allowed(const struct pp_allow *allow, const char *id)
{
	struct pp_drive_info info;
	size_t i;

	for (i = 0; i < allow->count; i++)
		if (strcmp(allow->text[i], id) == 0)
			return true;
	if (pp_drive_find(NULL, id, &info, NULL) != 0)
		return false;
	for (i = 0; i < allow->count; i++)
		if (pp_drive_is(&info, allow->text[i]))
			return true;
	return false;
}

static bool uuid_allowed(const struct pp_allow *allow, const char *uuid)
{
	size_t i, n = strlen(UUID_PREFIX);

	for (i = 0; i < allow->count; i++)
		if (strncmp(allow->text[i], UUID_PREFIX, n) == 0 && strcasecmp(allow->text[i] + n, uuid) == 0)
			return true;
	return false;
}

/* Both as they really are: neither a symbolic link nor ".." leads out. */
static bool path_allowed(const struct pp_allow *allow, const char *path)
{
	char real[REAL_BYTES], folder[REAL_BYTES];
	size_t i, n;

	if (!pp_path_absolute(path) || !pp_path_real(path, real, sizeof(real)))
		return false;
	for (i = 0; i < allow->count; i++) {
		if (!pp_path_absolute(allow->text[i]) ||
			!pp_path_real(allow->text[i], folder, sizeof(folder)))
			continue;
		n = strlen(folder);
		if (n > 1 && strncmp(real, folder, n) == 0 && (real[n] == '/' || real[n] == '\0'))
			return true;
	}
	return false;
}

static bool has_dotdot(const char *path)
{
	const char *p = path, *end;

	while (*p) {
		end = p + strcspn(p, "/\\");
		if (end - p == 2 && p[0] == '.' && p[1] == '.')
			return true;
		p = *end ? end + 1 : end;
	}
	return false;
}

/* An agent mounts in its own place only, whoever asks. */
static int check_places(const struct pp_target_spec *spec, struct pp_error *err)
{
	size_t n = strlen(PP_TARGET_MOUNT_ROOT);

	if (has_dotdot(spec->directory) || spec->directory[0] == '/' ||
		pp_path_absolute(spec->directory))
		return pp_fail(err, PP_ERR_REFUSED, "folder '%s' leads out of the target",
			spec->directory);
	if (spec->mount_dir[0] && (strncmp(spec->mount_dir, PP_TARGET_MOUNT_ROOT "/", n + 1) != 0 ||
		has_dotdot(spec->mount_dir)))
		return pp_fail(err, PP_ERR_REFUSED, "mount folder '%s' is not below " PP_TARGET_MOUNT_ROOT,
			spec->mount_dir);
	return 0;
}

int pp_allow_check(const struct pp_allow *allow, const struct pp_target_spec *spec,
	bool whole_drive, struct pp_error *err)
{
	bool files = spec->kind == PP_TARGET_FILE && !whole_drive;

	if (check_places(spec, err) != 0)
		return -1;
	if (drive_allowed(allow, spec->serial))
		return 0;
	if (files && spec->path[0] && path_allowed(allow, spec->path))
		return 0;
	if (files && spec->fs_uuid[0] && uuid_allowed(allow, spec->fs_uuid))
		return 0;
	if (!files)
		return pp_fail(err, PP_ERR_REFUSED, "drive '%s' is not on this agent's allow list: start "
			"it with --allow '%s'", spec->serial, spec->serial);
	if (spec->path[0])
		return pp_fail(err, PP_ERR_REFUSED, "folder '%s' is not on this agent's allow list: start "
			"it with --allow '%s'", spec->path, spec->path);
	return pp_fail(err, PP_ERR_REFUSED, "file system '%s' on drive '%s' is not on this agent's "
		"allow list: start it with --allow '%s' or --allow uuid:UUID", spec->fs_uuid,
		spec->serial, spec->serial);
}

/* The whole drive, or this alone: a policy holds for every file on the drive, not for a target's. */
int pp_allow_policy(const struct pp_allow *allow, const char *serial, struct pp_error *err)
{
	struct pp_drive_info info;
	size_t i, n = strlen(POLICY_PREFIX);
	bool known;

	if (drive_allowed(allow, serial))
		return 0;
	known = pp_drive_find(NULL, serial, &info, NULL) == 0;
	for (i = 0; i < allow->count; i++)
		if (strncmp(allow->text[i], POLICY_PREFIX, n) == 0 &&
			(strcmp(allow->text[i] + n, serial) == 0 ||
			(known && pp_drive_is(&info, allow->text[i] + n))))
			return 0;
	return pp_fail(err, PP_ERR_REFUSED, "the cache policy of drive '%s' may not be changed here: "
		"start the agent with --allow 'policy:%s'", serial, serial);
}
