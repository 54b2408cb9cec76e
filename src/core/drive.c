/* SPDX-License-Identifier: MIT
 *
 * What is said of a drive, whatever system found it.
 */
#include "drive.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	bool remote;
	bool layer;
} transports[] = {
	[PP_TRANSPORT_OTHER] = {"other", false, false},
	[PP_TRANSPORT_NVME] = {"nvme", false, false},
	[PP_TRANSPORT_SATA] = {"sata", false, false},
	[PP_TRANSPORT_SAS] = {"sas", false, false},
	[PP_TRANSPORT_SCSI] = {"scsi", false, false},
	[PP_TRANSPORT_USB] = {"usb", false, false},
	[PP_TRANSPORT_VIRTIO] = {"virtio", true, false},
	[PP_TRANSPORT_MMC] = {"mmc", false, false},
	[PP_TRANSPORT_ISCSI] = {"iscsi", true, false},
	[PP_TRANSPORT_NBD] = {"nbd", true, false},
	[PP_TRANSPORT_LOOP] = {"loop", true, true},
	[PP_TRANSPORT_MD] = {"md", false, true},
	[PP_TRANSPORT_DM] = {"dm", false, true},
	[PP_TRANSPORT_RAM] = {"ram", false, false},
};

const char *pp_transport_name(enum pp_transport transport)
{
	return transports[transport].name;
}

bool pp_transport_remote(enum pp_transport transport)
{
	return transports[transport].remote;
}

bool pp_transport_layer(enum pp_transport transport)
{
	return transports[transport].layer;
}

/* Whole, but for the blanks that drives pad their strings with. */
static bool same_trimmed(const char *a, const char *b)
{
	size_t a_bytes, b_bytes;

	while (isspace((unsigned char)*a))
		a++;
	while (isspace((unsigned char)*b))
		b++;
	a_bytes = strlen(a);
	b_bytes = strlen(b);
	while (a_bytes && isspace((unsigned char)a[a_bytes - 1]))
		a_bytes--;
	while (b_bytes && isspace((unsigned char)b[b_bytes - 1]))
		b_bytes--;
	return a_bytes && a_bytes == b_bytes && memcmp(a, b, a_bytes) == 0;
}

bool pp_drive_is(const struct pp_drive_info *info, const char *id)
{
	return same_trimmed(info->serial, id) || same_trimmed(info->wwn, id);
}

void pp_drive_policy(const struct pp_drive_info *info, char *out, size_t out_bytes)
{
	bool back = strcmp(info->write_cache, "write back") == 0;
	const char *fua = !back ? "" : info->fua ? ", fua" : ", no fua";
	const char *drive = "";

	/* The drive's own word is told only where it contradicts the kernel's belief. */
	if (back && (info->drive_cache == PP_CACHE_OFF || info->drive_cache == PP_CACHE_NONE))
		drive = ", drive cache off";
	else if (!back && info->drive_cache == PP_CACHE_ON)
		drive = ", drive cache on";
	snprintf(out, out_bytes, "%s%s%s", info->write_cache[0] ? info->write_cache : "unknown", fua,
		drive);
}

void pp_drive_folder_name(const char *id, char *out, size_t out_bytes)
{
	size_t n = 0;

	for (; *id && n + 1 < out_bytes; id++) {
		bool plain = isalnum((unsigned char)*id) || *id == '_' || *id == '-' ||
			(*id == '.' && n > 0);

		out[n++] = plain ? *id : '_';
	}
	out[n] = '\0';
}

bool pp_stack_has(const struct pp_stack *stack, const char *name)
{
	for (size_t i = 0; i < stack->layer_count; i++)
		if (strcmp(stack->layers[i].name, name) == 0 && stack->layers[i].whole)
			return true;
	return false;
}

bool pp_stack_option(const struct pp_stack *stack, const char *option)
{
	const char *at = stack->mount_options;
	size_t bytes = strlen(option);

	while (*at) {
		size_t n = strcspn(at, ",");

		if (n == bytes && strncmp(at, option, n) == 0)
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

bool pp_stack_no_barrier(const struct pp_stack *stack)
{
	/* fsync_mode is f2fs's; "volatile" is overlayfs's, which omits every sync. */
	static const char *const traps[] = {
		"nobarrier", "barrier=0", "barrier=none", "fsync_mode=nobarrier", "volatile",
	};

	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++)
		if (pp_stack_option(stack, traps[i]))
			return true;
	return false;
}
