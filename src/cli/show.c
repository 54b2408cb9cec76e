/* SPDX-License-Identifier: MIT */
#include "show.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/file.h"
#include "verifier/evidence.h"
#include "verifier/lot.h"

#define REPORT_BYTES_MAX (256U << 20)

/* One folder, judged. */
struct shown {
	struct pp_evidence evidence;
	struct pp_verdict verdict;
	char seal[65];
	struct pp_report_fact facts[16];
	struct pp_report_source source;
};

static int complain(const struct pp_show *show, const struct pp_error *err)
{
	fprintf(stderr, "plugpull %s: %s\n", show->command, err->text);
	return 2;
}

static bool to_stdout(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

/* ---- files -------------------------------------------------------------------------------- */

/* The folder of a file to be, resolved. */
static int folder_of(const char *path, char out[PATH_MAX], struct pp_error *err)
{
	char copy[PATH_MAX];

	if (!*path || strlen(path) >= sizeof(copy))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is no file's name", path);
	strcpy(copy, path);
	if (!realpath(dirname(copy), out))
		return pp_fail_os(err, errno, "cannot write '%s'", path);
	return 0;
}

static int check_file(const char *path, struct pp_error *err)
{
	char folder[PATH_MAX];

	if (!path || to_stdout(path))
		return 0;
	if (folder_of(path, folder, err) != 0)
		return -1;
	return access(folder, W_OK) == 0 ? 0 : pp_fail_os(err, errno, "cannot write '%s'", path);
}

int pp_show_check(const struct pp_show *show, struct pp_error *err)
{
	int both = to_stdout(show->junit) + to_stdout(show->html);

	if (both > 1 || (both && show->form != PP_SHOW_TEXT))
		return pp_fail(err, PP_ERR_USAGE, "only one form can go to standard output");
	if (check_file(show->junit, err) != 0)
		return -1;
	return check_file(show->html, err);
}

/* Evidence that grew a report no longer fits its seal. */
static int check_outside(const char *path, const char *evidence, struct pp_error *err)
{
	char folder[PATH_MAX], inner[PATH_MAX];
	size_t bytes;

	if (!path || to_stdout(path) || !realpath(evidence, folder))
		return 0;
	if (folder_of(path, inner, err) != 0)
		return -1;
	bytes = strlen(folder);
	if (strncmp(inner, folder, bytes) == 0 && (inner[bytes] == '/' || inner[bytes] == '\0'))
		return pp_fail(err, PP_ERR_USAGE, "'%s' is inside the evidence '%s', whose seal it would "
			"break", path, evidence);
	return 0;
}

int pp_show_check_outside(const struct pp_show *show, const char *folder, struct pp_error *err)
{
	return check_outside(show->junit, folder, err) == 0 &&
		check_outside(show->html, folder, err) == 0 ? 0 : -1;
}

static int write_form(const char *path, const struct pp_buf *text, struct pp_error *err)
{
	if (!to_stdout(path))
		return pp_file_write(path, text->data, text->bytes, 0644, err);
	if (fwrite(text->data, 1, text->bytes, stdout) != text->bytes)
		return pp_fail_os(err, errno, "cannot write the report");
	return 0;
}

/* ---- folders ------------------------------------------------------------------------------ */

static void fill_source(struct shown *s)
{
	const struct pp_campaign_facts *f = &s->evidence.facts;
	const struct pp_report_fact facts[] = {
		{ "operator", f->operator }, { "note", f->note }, { "kernel of the machine", f->kernel },
		{ "power switch", f->power_switch }, { "outlets", f->outlets },
		{ "wiring", f->unproven_wiring ? "not proven" : "" },
		{ "tool", f->tool_version }, { "tool commit", f->tool_commit },
		{ "tool SHA-256", f->tool_sha256 }, { "agent", f->agent_version },
		{ "agent commit", f->agent_commit }, { "agent SHA-256", f->agent_sha256 },
	};

	memcpy(s->facts, facts, sizeof(facts));
	s->source.folder = s->evidence.folder;
	s->source.name = f->name;
	s->source.started = f->started;
	s->source.seal_sha256 = s->seal;
	s->source.simulated = f->simulated;
	s->source.unproven_wiring = f->unproven_wiring;
	s->source.facts = s->facts;
	s->source.fact_count = sizeof(facts) / sizeof(facts[0]);
}

static int check_seal(const struct pp_show *show, struct shown *s, const char *folder,
	struct pp_error *err)
{
	struct pp_error ignored, why;
	enum pp_evidence_kind kind;

	if (pp_evidence_seal_sum(folder, s->seal, &ignored) != 0)
		s->seal[0] = '\0';
	s->source.sealed = show->just_sealed || pp_evidence_check_seal(folder, err) == 0;
	if (s->source.sealed)
		return 0;
	/* A campaign that runs, or a folder of another kind, is not what --unsealed is for. */
	kind = pp_evidence_kind(folder, &why);
	if (kind == PP_EVIDENCE_NOT || (kind == PP_EVIDENCE_UNFINISHED && !show->unsealed)) {
		fprintf(stderr, "plugpull %s: %s\n", show->command, why.text);
		return -1;
	}
	if (kind == PP_EVIDENCE_UNFINISHED)
		*err = why;
	if (err->class == PP_ERR_SYSTEM && err->os_code != ENOENT) { /* --unsealed could not read it either */
		fprintf(stderr, "plugpull %s: %s\n", show->command, err->text);
		return -1;
	}
	fprintf(stderr, "plugpull %s: %s%s\n", show->command, err->text, show->unsealed ?
		"; judged all the same, as --unsealed asks" : "; --unsealed judges it all the same");
	return show->unsealed ? 0 : -1;
}

/* Judges a folder and says what is wrong with it. */
static int load(const struct pp_show *show, struct shown *s, const char *folder,
	const struct pp_evidence *earlier)
{
	struct pp_error err;

	if (check_seal(show, s, folder, &err) != 0)
		return -1;
	if (pp_evidence_load(&s->evidence, folder, false, &err) != 0 ||
		pp_evidence_verdict(&s->evidence, earlier, show->earlier_count, &s->verdict, &err) != 0 ||
		pp_show_check_outside(show, folder, &err) != 0) {
		complain(show, &err);
		return -1;
	}
	fill_source(s);
	return 0;
}

static void release(struct shown *s)
{
	pp_verdict_release(&s->verdict);
	pp_evidence_release(&s->evidence);
}

/* ---- forms -------------------------------------------------------------------------------- */

struct all {
	struct shown *shown;
	struct pp_report_input *inputs;
	const struct pp_verdict **verdicts;
	size_t count;               /* of those that were judged */
	size_t failed;
	struct pp_lots lots;
};

static int print_text(const struct all *all, struct pp_buf *out, struct pp_error *err)
{
	size_t i;

	for (i = 0; i < all->count; i++) {
		if (all->count > 1)
			pp_buf_addf(out, "%scampaign %s\n", i ? "\n" : "", all->shown[i].evidence.folder);
		if (pp_report_text(&all->inputs[i], out, err) != 0)
			return -1;
	}
	if (all->lots.count)
		pp_buf_addf(out, "\n");
	return pp_lots_text(&all->lots, out, err);
}

static int print_form(const struct pp_show *show, const struct all *all, struct pp_buf *out,
	struct pp_error *err)
{
	size_t i;

	switch (show->form) {
	case PP_SHOW_JSON:
		if (all->count + all->failed > 1)
			return pp_report_json_all(all->inputs, all->count, &all->lots, out, err);
		return all->count ? pp_report_json(all->inputs, out, err) : 0;
	case PP_SHOW_CSV:
		for (i = 0; i < all->count; i++)
			if (pp_report_csv(&all->inputs[i], out, err) != 0)
				return -1;
		return 0;
	case PP_SHOW_TEXT:
		break;
	}
	return print_text(all, out, err);
}

static int print_all(const struct pp_show *show, const struct all *all, struct pp_error *err)
{
	const struct { const char *path; bool html; } files[] = { { show->junit, false },
		{ show->html, true } };
	bool quiet = to_stdout(show->junit) || to_stdout(show->html);
	struct pp_buf out;
	int rc = 0;
	size_t i;

	pp_buf_init(&out, REPORT_BYTES_MAX);
	if (!quiet && print_form(show, all, &out, err) != 0)
		rc = -1;
	if (rc == 0 && out.bytes)
		rc = write_form("-", &out, err);
	for (i = 0; i < 2 && rc == 0 && !all->failed; i++) {
		if (!files[i].path)
			continue;
		pp_buf_clear(&out);
		rc = files[i].html ? pp_report_html(all->inputs, all->count, &all->lots, &out, err)
			: pp_report_junit(all->inputs, all->count, &out, err);
		if (rc == 0)
			rc = write_form(files[i].path, &out, err);
	}
	pp_buf_release(&out);
	return rc;
}

/* ---- all of it ---------------------------------------------------------------------------- */

/* 1 is worst (a promise was broken), then 2, then 0. */
static int worse(int a, int b)
{
	if (a == 1 || b == 1)
		return 1;
	return a == 2 || b == 2 ? 2 : 0;
}

static void judge_all(const struct pp_show *show, struct all *all, const char *const *folders,
	size_t count, const struct pp_evidence *earlier)
{
	size_t i;

	for (i = 0; i < count; i++) {
		struct shown *s = &all->shown[all->count];

		if (load(show, s, folders[i], earlier) != 0) {
			release(s);
			memset(s, 0, sizeof(*s));
			all->failed++;
			continue;
		}
		all->inputs[all->count] = (struct pp_report_input){ .verdict = &s->verdict,
			.source = &s->source, .speed = s->evidence.speed,
			.speed_count = s->evidence.speed_count, .end = show->end,
			.colour = show->form == PP_SHOW_TEXT && isatty(STDOUT_FILENO) &&
				!getenv("NO_COLOR") };
		all->verdicts[all->count++] = &s->verdict;
	}
	if (all->failed && (show->junit || show->html))
		fprintf(stderr, "plugpull %s: no file is written, since not all folders were judged\n",
			show->command);
}

static int pool(struct all *all, struct pp_error *err)
{
	size_t i, k;

	for (i = 0; i < all->count; i++)
		for (k = 0; k < i; k++)
			if (pp_evidence_same_campaign(&all->shown[i].evidence, &all->shown[k].evidence))
				return pp_fail(err, PP_ERR_USAGE, "'%s' and '%s' are the same campaign",
					all->shown[k].evidence.folder, all->shown[i].evidence.folder);
	if (all->failed || all->count < 2)
		return 0;
	return pp_lots_make(&all->lots, all->verdicts, all->count, err);
}

static int show_all(const struct pp_show *show, struct all *all)
{
	int status = all->failed ? 2 : 0;
	struct pp_error err;
	size_t i;

	if (pool(all, &err) != 0 || print_all(show, all, &err) != 0)
		return complain(show, &err);
	for (i = 0; i < all->count; i++)
		status = worse(status, pp_verdict_exit(&all->shown[i].verdict));
	return status;
}

int pp_show_folders(const struct pp_show *show, const char *const *folders, size_t count)
{
	struct pp_evidence *earlier = calloc(show->earlier_count + 1, sizeof(*earlier));
	struct all all = { .shown = calloc(count + 1, sizeof(*all.shown)),
		.inputs = calloc(count + 1, sizeof(*all.inputs)),
		.verdicts = calloc(count + 1, sizeof(*all.verdicts)) };
	struct pp_error err;
	size_t i, loaded = 0;
	int status = 2;

	if (!earlier || !all.shown || !all.inputs || !all.verdicts) {
		pp_fail_os(&err, ENOMEM, "cannot judge");
		complain(show, &err);
		goto done;
	}
	for (; loaded < show->earlier_count; loaded++)
		if (pp_evidence_load(&earlier[loaded], show->earlier[loaded], false, &err) != 0) {
			complain(show, &err);
			goto done;
		}
	judge_all(show, &all, folders, count, earlier);
	status = show_all(show, &all);
done:
	pp_lots_release(&all.lots);
	for (i = 0; all.shown && i < all.count; i++)
		release(&all.shown[i]);
	for (i = 0; i < loaded; i++)
		pp_evidence_release(&earlier[i]);
	free(earlier);
	free(all.shown);
	free(all.inputs);
	free(all.verdicts);
	return status;
}
