/* SPDX-License-Identifier: MIT
 *
 * How a failure travels: every function that can fail returns 0 or -1 (or a pointer or NULL) and
 * takes a `struct pp_error *err` last. The text is what a person reads: lower case, no full stop,
 * what failed first, the subject quoted, then the system's reason, then what to do about it.
 * A finding (a drive lost data) is never an error; findings travel in results.
 */
#ifndef PP_CORE_ERROR_H
#define PP_CORE_ERROR_H

#include <stdint.h>

#include "os.h"

enum pp_error_class {
	PP_ERR_NONE = 0,
	PP_ERR_USAGE,       /* what the person wrote: options, plan, profile */
	PP_ERR_SYSTEM,      /* the operating system refused; os_code has its own code */
	PP_ERR_PEER,        /* the other end (agent, listener, power switch) misbehaved or is away */
	PP_ERR_EVIDENCE,    /* evidence is missing, damaged or contradicts itself */
	PP_ERR_UNSUPPORTED, /* this system, target or device has none: shown as n/a */
	PP_ERR_REFUSED,     /* a safety rule said no */
};

struct pp_error {
	enum pp_error_class class;
	int64_t os_code; /* errno here; the system's own code elsewhere; 0 where there is none */
	char text[512];  /* always terminated; cut, never overrun */
};

/* Fills *err (may be NULL) and returns -1, so that `return pp_fail(err, ...)` reads as it acts. */
int pp_fail(struct pp_error *err, enum pp_error_class class, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 3, 4)));

/* The same for a refused system call: appends ": " and the system's text for code. */
int pp_fail_os(struct pp_error *err, int64_t code, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 3, 4)));

/* The system's text for one of its codes. On Windows the code may be an errno of the C runtime, an
 * HRESULT of a Win32 code (0x8007....) or an NTSTATUS (0xC.......): no value means two things. */
void pp_os_text(int64_t code, char *out, unsigned out_bytes);

/* The errno that is nearest to one of those codes; EIO where none is. */
int pp_os_errno(int64_t code);

/* Puts "what: " in front of the text that err already has; returns -1. */
int pp_fail_within(struct pp_error *err, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 2, 3)));

#endif
