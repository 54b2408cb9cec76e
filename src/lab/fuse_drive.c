/* SPDX-License-Identifier: MIT */
#define FUSE_USE_VERSION 35
#include "fuse_drive.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "drive_daemon.h"
#include "drive_model.h"

#define FILE_INODE  2
#define FOREVER_S   86400.0
#define WRITE_BYTES (1 << 20)

static void fill(fuse_ino_t inode, struct stat *st)
{
	*st = (struct stat){ .st_ino = inode, .st_nlink = 1, .st_mode = S_IFDIR | 0700 };
	if (inode == FILE_INODE) {
		st->st_mode = S_IFREG | 0600;
		st->st_size = (off_t)pp_drive_daemon_size_bytes();
		st->st_blksize = 4096;
		st->st_blocks = st->st_size / 512;
	}
}

static void do_init(void *ctx, struct fuse_conn_info *conn)
{
	(void)ctx;
	conn->max_write = WRITE_BYTES;
	/* The kernel's own cache would answer reads for the drive, and hold writes back from it. */
	conn->want &= ~(unsigned)FUSE_CAP_WRITEBACK_CACHE;
}

static void do_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = { .ino = FILE_INODE, .attr_timeout = FOREVER_S,
		.entry_timeout = FOREVER_S };

	if (parent != FUSE_ROOT_ID || strcmp(name, PP_FUSE_DRIVE_FILE)) {
		fuse_reply_err(req, ENOENT);
		return;
	}
	fill(FILE_INODE, &entry.attr);
	fuse_reply_entry(req, &entry);
}

static void do_getattr(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *info)
{
	struct stat st;

	(void)info;
	fill(inode, &st);
	fuse_reply_attr(req, &st, FOREVER_S);
}

static void do_open(fuse_req_t req, fuse_ino_t inode, struct fuse_file_info *info)
{
	if (inode != FILE_INODE) {
		fuse_reply_err(req, EISDIR);
		return;
	}
	info->direct_io = 1;
#if FUSE_VERSION >= 315
	info->parallel_direct_writes = 1;
#endif
	fuse_reply_open(req, info);
}

static void do_read(fuse_req_t req, fuse_ino_t inode, size_t bytes, off_t offset,
	struct fuse_file_info *info)
{
	uint64_t end = pp_drive_daemon_size_bytes(), at = (uint64_t)offset;
	char *data;

	(void)inode;
	(void)info;
	bytes = at >= end ? 0 : end - at < bytes ? end - at : bytes;
	data = malloc(bytes ? bytes : 1);
	if (!data)
		fuse_reply_err(req, ENOMEM);
	else if (bytes && pp_drive_daemon_read(data, bytes, at))
		fuse_reply_err(req, errno);
	else
		fuse_reply_buf(req, data, bytes);
	free(data);
}

static void do_write(fuse_req_t req, fuse_ino_t inode, const char *data, size_t bytes,
	off_t offset, struct fuse_file_info *info)
{
	(void)inode;
	(void)info;
	if (pp_drive_daemon_write(data, bytes, (uint64_t)offset, false))
		fuse_reply_err(req, errno);
	else
		fuse_reply_write(req, bytes);
}

static void do_fsync(fuse_req_t req, fuse_ino_t inode, int datasync, struct fuse_file_info *info)
{
	(void)inode;
	(void)datasync;
	(void)info;
	fuse_reply_err(req, pp_drive_daemon_flush() ? errno : 0);
}

/* How a loop device asks for zeros: they are writes like any other. */
static void do_fallocate(fuse_req_t req, fuse_ino_t inode, int mode, off_t offset, off_t length,
	struct fuse_file_info *info)
{
	static const char zeros[65536];
	int code = mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE) ? 0 : EOPNOTSUPP;

	(void)inode;
	(void)info;
	while (!code && length > 0) {
		size_t bytes = length < (off_t)sizeof(zeros) ? (size_t)length : sizeof(zeros);

		if (pp_drive_daemon_write(zeros, bytes, (uint64_t)offset, false))
			code = errno;
		offset += (off_t)bytes;
		length -= (off_t)bytes;
	}
	fuse_reply_err(req, code);
}

static const struct fuse_lowlevel_ops operations = {
	.init = do_init, .lookup = do_lookup, .getattr = do_getattr, .open = do_open,
	.read = do_read, .write = do_write, .fsync = do_fsync, .fallocate = do_fallocate,
};

static void complain(const char *text)
{
	fprintf(stderr, "plugpull-lab-drive: %s\n", text);
}

int pp_fuse_drive_serve(const char *folder, struct pp_error *err)
{
	char *argv[] = { (char *)"plugpull-lab-drive", (char *)"-ofsname=plugpull-drive",
		(char *)"-osubtype=plugpull-drive", NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_loop_config config = { .max_idle_threads = 4 };
	struct fuse_session *session = fuse_session_new(&args, &operations, sizeof(operations), NULL);
	int rc = -1;

	umount2(folder, MNT_DETACH);
	if (!session) {
		pp_fail_os(err, ENOMEM, "cannot make a FUSE session");
		goto out;
	}
	fuse_set_signal_handlers(session);
	if (fuse_session_mount(session, folder)) {
		pp_fail_os(err, errno, "cannot mount on '%s'", folder);
		goto out;
	}
	rc = pp_drive_daemon_start(complain, err);
	/* Threads of its own for each request: a slow write must not hold up the others. */
	if (!rc && fuse_session_loop_mt(session, &config) < 0)
		rc = pp_fail(err, PP_ERR_SYSTEM, "cannot serve '%s'", folder);
	fuse_session_unmount(session);
out:
	if (session)
		fuse_session_destroy(session);
	fuse_opt_free_args(&args);
	return rc;
}
