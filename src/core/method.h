/* SPDX-License-Identifier: MIT
 *
 * The methods table: each row is one way to make a write durable, with what the operating system's
 * own documentation promises of it (docs/method.md, M2.1). The writer acts by the row, the judge
 * judges by the row, the matrix prints the rows in this order.
 */
#ifndef PP_CORE_METHOD_H
#define PP_CORE_METHOD_H

#include <stdbool.h>
#include <stddef.h>

enum pp_promise {
	PP_PROMISE_NA,     /* the call does not exist or does nothing on this kind of target */
	PP_PROMISE_NONE,   /* nothing: a control, or a buffered write */
	PP_PROMISE_DEVICE, /* handed to the device, perhaps only to its cache */
	PP_PROMISE_MEDIA,  /* survives power loss */
};

enum pp_target_kind { PP_TARGET_FILE, PP_TARGET_RAW };

/* What one sync call covers (M2.1); a lane calls it once for each such unit of its group. */
enum pp_coverage { PP_COVERS_NOTHING, PP_COVERS_WRITE, PP_COVERS_RANGE, PP_COVERS_FILE, PP_COVERS_FS };

/* The call after the write, if the method has one of its own. */
enum pp_sync_call {
	PP_SYNC_NONE, PP_SYNC_FDATASYNC, PP_SYNC_FSYNC,
};

struct pp_method {
	const char *name;        /* whole name, " (direct)" included */
	bool direct;             /* O_DIRECT */
	bool o_dsync;            /* opened O_DSYNC */
	bool o_sync;             /* opened O_SYNC */
	enum pp_sync_call sync;  /* PP_SYNC_NONE where the sync is in the write, or nowhere */
	enum pp_promise promise_file;
	enum pp_promise promise_raw;
	enum pp_coverage coverage;
	bool control;            /* promises nothing and must lose if the rig works (M7) */
	/*
	 * On a pre-written block the kernel may send one FUA write and no flush (iomap's direct
	 * path since xfs 4.18, ext4 5.6): exposure then needs M8.1's flush rule.
	 */
	bool may_send_fua;
	const char *source;      /* the man page or kernel file that the promise rests on */
};

extern const struct pp_method pp_methods[];
extern const size_t pp_method_count;

/* The one lookup: the whole name must match. NULL if there is none. */
const struct pp_method *pp_method_find(const char *name);

enum pp_promise pp_method_promise(const struct pp_method *method, enum pp_target_kind kind);
const char *pp_promise_name(enum pp_promise promise);

/* True where the sync is in the write: such a method acks each record as its write returns (M2.2). */
bool pp_method_sync_in_write(const struct pp_method *method);

/* Flags for open(2) beyond the access mode. */
int pp_method_open_flags(const struct pp_method *method);

#endif
