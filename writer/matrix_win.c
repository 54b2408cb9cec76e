/* SPDX-License-Identifier: MIT */
#include "matrix.h"

int pp_matrix_run(const struct pp_matrix_config *config, struct pp_matrix *matrix,
	struct pp_error *err)
{
	(void)config;
	(void)matrix;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "there is no matrix on Windows yet");
}
