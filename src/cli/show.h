/* SPDX-License-Identifier: MIT
 *
 * What campaign, judge and report have in common: evidence folders in, verdicts out, as text, JSON or
 * CSV on standard output and as files for people and test servers.
 */
#ifndef PP_CLI_SHOW_H
#define PP_CLI_SHOW_H

#include <stdbool.h>
#include <stddef.h>

#include "src/core/error.h"
#include "verifier/report.h"

enum pp_show_form { PP_SHOW_TEXT, PP_SHOW_JSON, PP_SHOW_CSV };

struct pp_show {
	const char *command;         /* stands in messages */
	enum pp_show_form form;
	const char *junit, *html;    /* a file to write; "-": standard output, nothing else there */
	const char *const *earlier;  /* M9.3 */
	size_t earlier_count;
	bool unsealed;               /* go on although a seal does not fit; says so */
	bool just_sealed;            /* by this process: the seal is not checked again */
	const struct pp_report_end *end;
};

/*
 * Whether the files can be written, before anything is done that takes days: one of them alone may go
 * to standard output, and then without form; a folder must be there and take files.
 */
int pp_show_check(const struct pp_show *show, struct pp_error *err);

/* Whether none of the files would be inside this folder of evidence; one that is not there yet is fine. */
int pp_show_check_outside(const struct pp_show *show, const char *folder, struct pp_error *err);

/*
 * Judges the folders, prints and writes what show asks for, and says on standard error what went
 * wrong. Returns the exit status of M8.7, the worst of the folders. A folder that cannot be judged is
 * told and makes 2; the others are shown, but no file is written, and there is no lot view. A file
 * inside a folder of evidence is refused: it would break the seal.
 */
int pp_show_folders(const struct pp_show *show, const char *const *folders, size_t count);

#endif
