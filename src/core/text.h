/* SPDX-License-Identifier: MIT
 *
 * Short texts in fixed arrays.
 */
#ifndef PP_CORE_TEXT_H
#define PP_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "os.h"

/* Copies what fits, always terminated. For texts that people read; never for names to be matched. */
void pp_text_copy(char *to, size_t bytes, const char *from);

/* snprintf(3) that says whether all of it fitted. */
bool pp_text_format(char *to, size_t bytes, const char *fmt, ...)
	__attribute__((format(PP_FORMAT, 3, 4)));

#endif
