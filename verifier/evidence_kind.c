/* SPDX-License-Identifier: MIT
 *
 * What a folder is that somebody takes for evidence. The seal alone cannot tell a stranger's folder, or
 * a campaign that still runs, from evidence that was spoilt; what to do about them is not the same.
 */
#include "evidence.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/text.h"

static bool has(const char *folder, const char *name)
{
	char path[4608];
	struct stat st;

	pp_text_format(path, sizeof(path), "%.4200s/%s", folder, name);
	return stat(path, &st) == 0;
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	while (n && text[n - 1] == '/')
		n--;
	return n >= m && strncmp(text + n - m, end, m) == 0;
}

static uint32_t newest_cut(const char *folder)
{
	char path[4352];
	struct dirent *entry;
	uint32_t newest = 0;
	DIR *dir;

	pp_text_format(path, sizeof(path), "%.4200s/cuts", folder);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		char *end;
		unsigned long n = strtoul(entry->d_name, &end, 10);

		if (entry->d_name[0] != '.' && !*end && n > newest && n <= 999999)
			newest = (uint32_t)n;
	}
	if (dir)
		closedir(dir);
	return newest;
}

/* A cut that did not come to its judgement; what cannot be read is not in work. */
static bool cut_in_work(const char *folder)
{
	static const char *const ends[] = { "judged", "abandoned", "no-boot" };
	struct pp_cut_facts facts;
	struct pp_error ignored;
	uint32_t cut = newest_cut(folder);
	char path[4352];
	size_t i;

	pp_text_format(path, sizeof(path), "%.4200s/cuts/%04u/cut.json", folder, cut);
	if (!cut || pp_cut_facts_load(&facts, path, &ignored) != 0)
		return false;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(facts.state, ends[i]) == 0)
			return false;
	return true;
}

enum pp_evidence_kind pp_evidence_kind(const char *folder, struct pp_error *err)
{
	struct stat st;

	if (stat(folder, &st) != 0) {
		pp_fail_os(err, errno, "cannot open '%s'", folder);
		return PP_EVIDENCE_NOT;
	}
	if (!S_ISDIR(st.st_mode)) {
		pp_fail(err, PP_ERR_USAGE, "'%s' is no folder; evidence is the folder that a campaign wrote",
			folder);
		return PP_EVIDENCE_NOT;
	}
	if (!has(folder, "target.json") && !has(folder, "SHA256SUMS")) {
		if (has(folder, "cut.json") || has(folder, "run.json"))
			pp_fail(err, PP_ERR_USAGE, "'%s' is a part of a campaign's evidence; name its whole "
				"folder, the one with target.json", folder);
		else if (ends_with(folder, ".lab"))
			pp_fail(err, PP_ERR_USAGE, "'%s' holds a lab's drives; the evidence is the folder of "
				"the same name without .lab", folder);
		else if (has(folder, "plan.ini") && has(folder, "cuts"))
			pp_fail(err, PP_ERR_USAGE, "'%s' is a campaign that has only begun: no machine has "
				"answered it yet", folder);
		else
			pp_fail(err, PP_ERR_USAGE, "'%s' is no evidence: a campaign's folder has a target.json",
				folder);
		return PP_EVIDENCE_NOT;
	}
	if (has(folder, "target.json") && (!has(folder, "SHA256SUMS") || cut_in_work(folder))) {
		pp_fail(err, PP_ERR_EVIDENCE, "'%s' is not finished: its campaign runs still, or was killed; "
			"wait for it, or go on with it: plugpull campaign --resume --out %s PLAN", folder,
			folder);
		return PP_EVIDENCE_UNFINISHED;
	}
	return PP_EVIDENCE_WHOLE;
}
