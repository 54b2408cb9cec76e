/* SPDX-License-Identifier: MIT
 *
 * What campaign, judge and report have in common: evidence folders in, a verdict out.
 */
#ifndef PP_CLI_SHOW_H
#define PP_CLI_SHOW_H

#include <stddef.h>
#include <stdio.h>

#include "src/core/error.h"
#include "verifier/evidence.h"

enum pp_show_form { PP_SHOW_TEXT, PP_SHOW_JSON, PP_SHOW_CSV };

/*
 * Judges folder (with earlier ones, M9.3), prints to out, and returns the exit status of M8.7; -1
 * with err where there is no verdict to be had.
 */
int pp_show_folder(const char *folder, const char *const *earlier, size_t earlier_count,
	enum pp_show_form form, const struct pp_report_end *end, FILE *out, struct pp_error *err);

#endif
