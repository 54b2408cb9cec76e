/* SPDX-License-Identifier: MIT
 *
 * Windows keeps no log that says of each line which disk it speaks of: the events of `disk`,
 * `stornvme` and `Ntfs` name a device object or a volume's letter. Nothing is watched here, which
 * the agent says in its answer (`log_watched` is false there); a failed write or sync ends the run all
 * the same.
 */
#include "kmsg.h"

#include <stdio.h>
#include <string.h>

const char *pp_kmsg_class_name(enum pp_kmsg_class class)
{
	static const char *const names[] = {
		[PP_KMSG_IO_ERROR] = "I/O error",
		[PP_KMSG_FS_ERROR] = "file system error",
		[PP_KMSG_LINK] = "link",
		[PP_KMSG_MISSED] = "lines missed",
	};

	return names[class];
}

int pp_kmsg_open(struct pp_kmsg *watch, const char *disk, struct pp_error *err)
{
	memset(watch, 0, sizeof(*watch));
	watch->fd = -1;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "the system's log is not watched for '%s' on Windows",
		disk);
}

void pp_kmsg_open_source(struct pp_kmsg *watch, const char *disk, struct pp_kmsg_source source)
{
	memset(watch, 0, sizeof(*watch));
	watch->fd = -1;
	watch->source = source;
	pp_kmsg_add_name(watch, disk);
}

bool pp_kmsg_add_name(struct pp_kmsg *watch, const char *name)
{
	if (watch->name_count >= PP_KMSG_NAMES_MAX || strlen(name) >= sizeof(watch->names[0]))
		return false;
	strcpy(watch->names[watch->name_count++], name);
	return true;
}

void pp_kmsg_close(struct pp_kmsg *watch)
{
	watch->fd = -1;
}

int pp_kmsg_poll(struct pp_kmsg *watch, struct pp_kmsg_event *event, struct pp_error *err)
{
	(void)watch;
	(void)event;
	(void)err;
	return 0;
}

bool pp_kmsg_match(const struct pp_kmsg *watch, const char *text, enum pp_kmsg_class *class)
{
	(void)watch;
	(void)text;
	(void)class;
	return false;
}
