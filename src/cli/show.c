/* SPDX-License-Identifier: MIT */
#include "show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int print(const struct pp_evidence *evidence, const struct pp_verdict *verdict,
	enum pp_show_form form, const struct pp_report_end *end, FILE *out, struct pp_error *err)
{
	struct pp_report_input in = { .verdict = verdict, .speed = evidence->speed,
		.speed_count = evidence->speed_count, .end = end,
		.colour = form == PP_SHOW_TEXT && isatty(fileno(out)) && !getenv("NO_COLOR") };
	struct pp_buf text;
	int rc;

	pp_buf_init(&text, 64U << 20);
	rc = form == PP_SHOW_JSON ? pp_report_json(&in, &text, err)
		: form == PP_SHOW_CSV ? pp_report_csv(&in, &text, err) : pp_report_text(&in, &text, err);
	if (rc == 0 && text.bytes && fwrite(text.data, 1, text.bytes, out) != text.bytes)
		rc = pp_fail_os(err, errno, "cannot write the report");
	pp_buf_release(&text);
	return rc;
}

int pp_show_folder(const char *folder, const char *const *earlier, size_t earlier_count,
	enum pp_show_form form, const struct pp_report_end *end, FILE *out, struct pp_error *err)
{
	struct pp_evidence evidence, *before = calloc(earlier_count + 1, sizeof(*before));
	struct pp_verdict verdict;
	size_t loaded = 0;
	int status = -1;

	if (!before)
		return pp_fail_os(err, ENOMEM, "cannot judge");
	if (pp_evidence_load(&evidence, folder, false, err) != 0)
		goto out_before;
	for (; loaded < earlier_count; loaded++)
		if (pp_evidence_load(&before[loaded], earlier[loaded], false, err) != 0)
			goto out_evidence;
	if (pp_evidence_verdict(&evidence, before, earlier_count, &verdict, err) != 0)
		goto out_verdict;
	if (print(&evidence, &verdict, form, end, out, err) == 0)
		status = pp_verdict_exit(&verdict);
out_verdict:
	pp_verdict_release(&verdict);
out_evidence:
	pp_evidence_release(&evidence);
out_before:
	while (loaded-- > 0)
		pp_evidence_release(&before[loaded]);
	free(before);
	return status;
}
