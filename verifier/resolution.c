/* SPDX-License-Identifier: MIT
 *
 * M6.5: what a person writes into the evidence to clear a trial that could not be settled. It names
 * a cause, the report prints it, and it never turns a confirmed loss into anything else.
 */
#include "evidence.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "src/core/text.h"

#define CAUSE_BYTES 200

static bool is_blank(const char *text)
{
	return text[strspn(text, " \t\r\n")] == '\0';
}

static int path_of(char *out, size_t bytes, const char *folder, uint32_t cut,
	const char *serial_folder, struct pp_error *err)
{
	if (!pp_text_format(out, bytes, "%s/resolutions/%04u-%s.json", folder, cut, serial_folder))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", folder);
	return 0;
}

int pp_resolution_load(const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_run_facts *run, struct pp_error *err)
{
	char path[4608], who[128], cause[CAUSE_BYTES], serial[256];
	struct pp_json_in in = { .where = path, .err = err, .ok = true };
	struct stat st;
	json_t *o;

	run->resolution[0] = '\0';
	run->swapped = false;
	if (path_of(path, sizeof(path), folder, cut, serial_folder, err) != 0)
		return -1;
	if (stat(path, &st) != 0)
		return errno == ENOENT ? 0 : pp_fail_os(err, errno, "cannot look at '%s'", path);
	o = pp_json_load(path, err);
	if (!o)
		return -1;
	in.object = o;
	pp_json_str(&in, "who", who, sizeof(who));
	pp_json_str(&in, "cause", cause, sizeof(cause));
	pp_json_str(&in, "serial", serial, sizeof(serial));
	if (in.ok && (pp_json_int(&in, "cut", 1, 999999) != cut || strcmp(serial, serial_folder) != 0)
		&& in.ok) {
		pp_fail(err, PP_ERR_EVIDENCE, "'%s' is the resolution of another trial", path);
		in.ok = false;
	} else if (in.ok && is_blank(cause)) {
		pp_fail(err, PP_ERR_EVIDENCE, "'%s' names no cause", path);
		in.ok = false;
	}
	if (in.ok && json_object_get(o, "swapped"))
		run->swapped = pp_json_bool(&in, "swapped");
	if (in.ok)
		snprintf(run->resolution, sizeof(run->resolution), "%s%.190s (%.40s)",
			run->swapped ? "swapped: " : "", cause, is_blank(who) ? "unsigned" : who);
	json_decref(o);
	return in.ok ? 0 : -1;
}

/* The judged trial of this folder must be one that a resolution clears. */
static int check_trial(const char *folder, uint32_t cut, const char *serial_folder,
	const struct pp_resolution *resolution, struct pp_error *err)
{
	struct pp_evidence evidence;
	struct pp_run_facts run;
	const char *why = NULL;
	char path[4608];
	struct stat st;
	size_t i;
	int rc = 0;

	if (!pp_text_format(path, sizeof(path), "%s/cuts/%04u/%s/run.json", folder, cut, serial_folder))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", folder);
	if (stat(path, &st) != 0)
		return pp_fail_os(err, errno, "no trial of drive '%s' in cut %u: '%s'", serial_folder, cut,
			path);
	if (pp_run_facts_load(&run, path, err) != 0 || pp_evidence_load(&evidence, folder, false, err) != 0)
		return -1;
	for (i = 0; i < evidence.trial_count; i++)
		if (evidence.trials[i].cut == cut && strcmp(evidence.trials[i].key.serial, run.serial) == 0)
			break;
	if (i == evidence.trial_count)
		why = "it was not judged";
	else if (evidence.trials[i].resolution[0])
		why = "it has a resolution already, and what a person wrote is not written over";
	else
		why = pp_trial_not_clearable(&evidence.trials[i], resolution->swapped);
	if (why)
		rc = pp_fail(err, PP_ERR_USAGE, "cannot clear cut %u of drive '%s': %s", cut, serial_folder,
			why);
	pp_evidence_release(&evidence);
	return rc;
}

static int write_one(const char *path, uint32_t cut, const char *serial_folder,
	const struct pp_resolution *resolution, struct pp_error *err)
{
	json_t *o = json_object(), *cause = json_string(resolution->cause);
	json_t *who = json_string(resolution->who);

	if (!o || !cause || !who) {
		json_decref(o);
		json_decref(cause);
		json_decref(who);
		return pp_fail(err, PP_ERR_USAGE, "cause and name are not UTF-8");
	}
	json_object_set_new(o, "format", json_integer(1));
	json_object_set_new(o, "cut", json_integer(cut));
	json_object_set_new(o, "serial", json_string(serial_folder));
	json_object_set_new(o, "cause", cause);
	json_object_set_new(o, "who", who);
	json_object_set_new(o, "swapped", json_boolean(resolution->swapped));
	return pp_json_save(o, path, err);
}

int pp_resolution_save(const char *folder, uint32_t cut, const char *serial_folder,
	const struct pp_resolution *resolution, struct pp_error *err)
{
	char path[4608];

	if (strchr(serial_folder, '/') || serial_folder[0] == '.' || strlen(serial_folder) >= 256)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is no drive's folder", serial_folder);
	if (is_blank(resolution->cause) || strlen(resolution->cause) >= CAUSE_BYTES)
		return pp_fail(err, PP_ERR_USAGE, "a resolution names a cause, in 1 to %d characters",
			CAUSE_BYTES - 1);
	if (strlen(resolution->who) >= 128)
		return pp_fail(err, PP_ERR_USAGE, "the name of who says so is too long");
	if (check_trial(folder, cut, serial_folder, resolution, err) != 0)
		return -1;
	if (!pp_text_format(path, sizeof(path), "%s/resolutions", folder))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", folder);
	if (mkdir(path, 0755) != 0 && errno != EEXIST)
		return pp_fail_os(err, errno, "cannot make folder '%s'", path);
	if (path_of(path, sizeof(path), folder, cut, serial_folder, err) != 0 ||
		write_one(path, cut, serial_folder, resolution, err) != 0 ||
		pp_evidence_write_result(folder, err) != 0)
		return -1;
	return pp_evidence_seal(folder, err);
}
