/* SPDX-License-Identifier: MIT
 *
 * drive.h on the living storage stack (win_identify.h). A drive is a physical drive by its serial or
 * WWN; where the disk beneath tells neither, the volume stands in its place (volume_win.h). A sysroot is
 * Linux's; here it is not looked at.
 */
#include "drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "handle_win.h"
#include "volume_win.h"
#include "win_identify.h"

#define VOLUMES_MAX 26
#define PAUSE_MS    250

const struct pp_sysroot pp_sysroot_live = { .root = "", .ops = NULL };

static bool is_physical(const char *name)
{
	unsigned disk;

	return pp_win_disk_number(name, &disk);
}

static bool has_identity(const char *name)
{
	struct pp_drive_info info;

	return pp_win_drive_read(&pp_win_storage_live, name, &info, NULL) == 0 &&
		(info.serial[0] || info.wwn[0]);
}

/* Does the volume stand for a disk that has a name of its own? Then it is none beside it. */
static bool is_named_otherwise(const struct pp_drive_info *volume)
{
	struct pp_stack stack;
	char root[8];

	snprintf(root, sizeof(root), "%.2s\\", volume->name);
	if (pp_win_drive_of_path(&pp_win_storage_live, root, &stack, NULL) != 0 || !stack.disk_count)
		return false;
	for (size_t i = 0; i < stack.disk_count; i++)
		if (!has_identity(stack.disks[i]))
			return false;
	return true;
}

int pp_drive_list(const struct pp_sysroot *sys, struct pp_drive_info **infos, size_t *count,
	struct pp_error *err)
{
	struct pp_drive_info *grown, *volumes;
	size_t found;

	(void)sys;
	if (pp_win_drive_list(&pp_win_storage_live, infos, count, err) != 0)
		return -1;
	volumes = calloc(VOLUMES_MAX, sizeof(*volumes));
	grown = volumes ? realloc(*infos, (*count + VOLUMES_MAX) * sizeof(**infos)) : NULL;
	if (!grown) {
		free(volumes);
		free(*infos);
		*infos = NULL;
		*count = 0;
		return pp_fail(err, PP_ERR_SYSTEM, "no memory for a list of drives");
	}
	*infos = grown;
	found = pp_volume_list(volumes, VOLUMES_MAX);
	for (size_t i = 0; i < found; i++)
		if (!is_named_otherwise(&volumes[i]))
			grown[(*count)++] = volumes[i];
	free(volumes);
	return 0;
}

static int read_volume(const char *name, struct pp_drive_info *info, struct pp_error *err)
{
	struct pp_drive_info *volumes = calloc(VOLUMES_MAX, sizeof(*volumes));
	size_t count = volumes ? pp_volume_list(volumes, VOLUMES_MAX) : 0;
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		found = strcmp(volumes[i].name, name) == 0;
		if (found)
			*info = volumes[i];
	}
	free(volumes);
	return found ? 0 : pp_fail(err, PP_ERR_UNSUPPORTED, "there is no drive '%s'", name);
}

int pp_drive_read(const struct pp_sysroot *sys, const char *name, struct pp_drive_info *info,
	struct pp_error *err)
{
	(void)sys;
	if (is_physical(name))
		return pp_win_drive_read(&pp_win_storage_live, name, info, err);
	return read_volume(name, info, err);
}

int pp_drive_find(const struct pp_sysroot *sys, const char *id, struct pp_drive_info *info,
	struct pp_error *err)
{
	(void)sys;
	if (pp_volume_is_id(id))
		return pp_volume_find(id, info, err);
	return pp_win_drive_find(&pp_win_storage_live, id, info, err);
}

int pp_drive_wait(const struct pp_sysroot *sys, const char *id, int64_t timeout_ms,
	struct pp_drive_info *info, struct pp_error *err)
{
	int64_t until_ns = pp_clock_mono_ns() + timeout_ms * PP_NS_PER_MS;
	struct pp_error why = {.class = PP_ERR_NONE};

	for (;;) {
		if (pp_drive_find(sys, id, info, &why) == 0)
			return 0;
		/* Two of one name do not become one by waiting. */
		if (why.class != PP_ERR_UNSUPPORTED || pp_clock_mono_ns() >= until_ns)
			break;
		pp_clock_sleep_ms(PAUSE_MS);
	}
	if (err)
		*err = why;
	return -1;
}

int pp_drive_of_path(const struct pp_sysroot *sys, const char *path, struct pp_stack *stack,
	struct pp_error *err)
{
	(void)sys;
	return pp_win_drive_of_path(&pp_win_storage_live, path, stack, err);
}

int pp_drive_of_name(const struct pp_sysroot *sys, const char *name, struct pp_stack *stack,
	struct pp_error *err)
{
	struct pp_drive_info info;

	if (pp_drive_read(sys, name, &info, err) != 0)
		return -1;
	if (is_physical(name))
		return pp_win_drive_of_path(&pp_win_storage_live, info.name, stack, err);
	/* A volume in a drive's place. */
	memset(stack, 0, sizeof(*stack));
	snprintf(stack->layers[0].name, sizeof(stack->layers[0].name), "%s", info.name);
	stack->layers[0].kind = "disk";
	stack->layers[0].whole = true;
	stack->layer_count = stack->disk_count = 1;
	snprintf(stack->disks[0], sizeof(stack->disks[0]), "%s", info.name);
	return 0;
}

/* The file itself, past junctions and links in its path. */
int pp_drive_of_fd(int fd, const char *path, struct pp_stack *stack, struct pp_error *err)
{
	HANDLE handle = pp_handle_of(fd);
	char *real = NULL;
	wchar_t final[1024];
	DWORD n = 0;
	int rc;

	if (handle != INVALID_HANDLE_VALUE)
		n = GetFinalPathNameByHandleW(handle, final, 1024, VOLUME_NAME_DOS);
	if (n > 0 && n < 1024)
		real = pp_utf8(final);
	rc = pp_win_drive_of_path(&pp_win_storage_live, real ? real : path, stack, err);
	free(real);
	if (rc == 0 && is_physical(path))
		return 0;
	for (size_t i = 0; rc == 0 && i < stack->disk_count; i++)
		if (!has_identity(stack->disks[i]))
			rc = -1;
	if (rc == 0 && stack->disk_count)
		return 0;
	return pp_volume_stack(fd, path, stack, err);
}

/* Two volumes may well be on one disk, and nobody can tell. */
int pp_drives_share(const struct pp_sysroot *sys, const char *a, const char *b, char *why,
	size_t why_bytes, struct pp_error *err)
{
	(void)sys;
	if (!is_physical(a) || !is_physical(b))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "cannot tell whether %s and %s share a disk: test one "
			"at a time", a, b);
	return pp_win_drives_share(&pp_win_storage_live, a, b, why, why_bytes, err);
}

int pp_drive_carries_system(const struct pp_sysroot *sys, const char *name, char *why,
	size_t why_bytes, struct pp_error *err)
{
	const char *root = getenv("SystemDrive");

	(void)sys;
	if (why_bytes)
		why[0] = '\0';
	if (is_physical(name))
		return pp_win_drive_carries_system(&pp_win_storage_live, name, why, why_bytes, err);
	if (!root || strcmp(root, name) != 0)
		return 0;
	if (why_bytes > 0)
		strncat(why, "it carries Windows", why_bytes - 1);
	return 1;
}

/* The drive's own log and table, in the words of smartctl: who reads one reads the other. A volume
 * keeps no counters. */
int pp_drive_smart_raw(const struct pp_drive_info *info, struct pp_buf *json, struct pp_error *err)
{
	struct pp_win_facts *facts;
	unsigned disk;
	int rc;

	if (!pp_win_disk_number(info->name, &disk))
		return 0;
	facts = malloc(sizeof(*facts));
	if (!facts)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	rc = pp_win_ask(&pp_win_storage_live, disk, PP_WIN_ASK_COUNTERS, facts, err);
	if (rc == 0)
		pp_win_smart_json(facts, json);
	free(facts);
	return rc;
}
