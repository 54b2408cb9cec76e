/* SPDX-License-Identifier: MIT */
#include "cpio.h"

#include <string.h>
#include <sys/stat.h>

static void pad(struct pp_buf *archive)
{
	static const char zeros[4];

	pp_buf_add(archive, zeros, -archive->bytes & 3);
}

static void entry(struct pp_buf *archive, const char *name, mode_t mode, const void *data,
	size_t bytes, unsigned major, unsigned minor)
{
	/* Inode numbers matter to hard links only, and a link count of 1 says there are none. */
	pp_buf_addf(archive, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x", 0,
		(unsigned)mode, 0, 0, 1, 0, bytes, 0, 0, major, minor, strlen(name) + 1, 0);
	pp_buf_add(archive, name, strlen(name) + 1);
	pad(archive);
	pp_buf_add(archive, data, bytes);
	pad(archive);
}

void pp_cpio_dir(struct pp_buf *archive, const char *name)
{
	entry(archive, name, S_IFDIR | 0755, "", 0, 0, 0);
}

void pp_cpio_file(struct pp_buf *archive, const char *name, mode_t permissions, const void *data,
	size_t bytes)
{
	entry(archive, name, S_IFREG | permissions, data, bytes, 0, 0);
}

void pp_cpio_link(struct pp_buf *archive, const char *name, const char *to)
{
	entry(archive, name, S_IFLNK | 0777, to, strlen(to), 0, 0);
}

void pp_cpio_char_device(struct pp_buf *archive, const char *name, unsigned major, unsigned minor)
{
	entry(archive, name, S_IFCHR | 0600, "", 0, major, minor);
}

void pp_cpio_end(struct pp_buf *archive)
{
	entry(archive, "TRAILER!!!", 0, "", 0, 0, 0);
}
