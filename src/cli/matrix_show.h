/* SPDX-License-Identifier: MIT
 *
 * How cmd_matrix prints: as the rows come, in our layout or in pg_test_fsync's, or as one JSON
 * object at the end.
 */
#ifndef PP_CLI_MATRIX_SHOW_H
#define PP_CLI_MATRIX_SHOW_H

#include <signal.h>
#include <stdbool.h>

#include "writer/matrix.h"

struct pp_matrix_printer {
	unsigned seconds;
	bool wide, axes;           /* axes: more than one workload, block or number of threads */
	volatile sig_atomic_t *stop; /* set when nobody reads any more */
	bool header_done;
	char section[64];
	bool direct_refused;       /* in the section that is being printed */
};

/* ctx is the printer; for pp_matrix_config.began and .done. */
void pp_matrix_pg_began(void *ctx, const struct pp_matrix_row *row);
void pp_matrix_pg_done(void *ctx, const struct pp_matrix_row *row);
void pp_matrix_pg_end(struct pp_matrix_printer *printer);
void pp_matrix_table_began(void *ctx, const struct pp_matrix_row *row);
void pp_matrix_table_done(void *ctx, const struct pp_matrix_row *row);

/* What is behind a result beside its rows: the JSON object without them. */
struct pp_matrix_facts {
	const char *path;
	unsigned seconds;
	bool settle;
	unsigned compressible;
};

/* matrix_json.c: the whole result as text; a buffer that the caller frees, NULL if there is no memory. */
char *pp_matrix_json(const struct pp_matrix_facts *facts, const struct pp_matrix *matrix);

/* What stands beneath the table: where the counts come from, and what is suspicious (M10.2). */
int pp_matrix_table_end(const struct pp_matrix *matrix, struct pp_error *err);

/* "on", "off" or "unknown". */
struct pp_drive_info;
const char *pp_matrix_cache_of(const struct pp_drive_info *drive);

/* The rows that were measured, and what the system knows of their disk, for src/core/assess.h. */
struct pp_assess_input;
void pp_matrix_assess_input(const struct pp_matrix *matrix, struct pp_assess_input *input);

#endif
