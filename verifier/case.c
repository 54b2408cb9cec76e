/* SPDX-License-Identifier: MIT
 *
 * Loads the files of one trial. What run.json says is there must be there and whole; what it does
 * not claim may be missing.
 */
#include "judge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/core/file.h"
#include "src/core/text.h"

static int join(char *out, size_t bytes, const char *folder, const char *name, struct pp_error *err)
{
	if (!pp_text_format(out, bytes, "%s/%s", folder, name))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s/%s'", folder, name);
	return 0;
}

static int load_counters(const struct pp_case *c, const char *name, struct pp_drive_counters *out,
	struct pp_error *err)
{
	char path[4352];
	struct pp_buf buf;

	memset(out, 0, sizeof(*out));
	if (join(path, sizeof(path), c->path, name, err) != 0)
		return -1;
	if (access(path, F_OK) != 0)
		return 0;
	pp_buf_init(&buf, 16U << 20);
	if (pp_file_read(path, &buf, err) != 0) {
		pp_buf_release(&buf);
		return -1;
	}
	pp_drive_counters_parse(buf.data, buf.bytes, out);
	pp_buf_release(&buf);
	return 0;
}

static int load_ledger(struct pp_case *c, const char *name, const struct pp_run_id *run,
	uint32_t lanes, struct pp_ledger_data *ledger, bool *has, struct pp_error *err)
{
	char path[4352];

	if (join(path, sizeof(path), c->path, name, err) != 0)
		return -1;
	if (access(path, F_OK) != 0 && errno == ENOENT)
		return 0;
	if (pp_ledger_load(path, ledger, err) != 0)
		return pp_fail_within(err, "'%s'", path);
	*has = true;
	if (!pp_run_id_equal(&ledger->run, run) || ledger->lanes != lanes)
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' is the ledger of another run", path);
	return 0;
}

static int load_scan(const char *folder, const char *name, struct pp_scan **scan,
	struct pp_error *err)
{
	char path[4608];

	if (join(path, sizeof(path), folder, name, err) != 0)
		return -1;
	*scan = pp_scan_load(path, err);
	return *scan ? 0 : -1;
}

static int load_base(const struct pp_case *c, const char *base, struct pp_scan **scan,
	struct pp_error *err)
{
	if (strstr(base, "..") || base[0] == '/')
		return pp_fail(err, PP_ERR_EVIDENCE, "base '%s' is outside the evidence", base);
	return load_scan(c->folder, base, scan, err);
}

static int load_rereads(const struct pp_case *c, const char *prefix, uint32_t rereads,
	struct pp_scan **scan, struct pp_error *err)
{
	char name[48];
	uint32_t i;

	if (rereads > PP_REREADS_MAX)
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' claims %u re-reads", c->path, rereads);
	for (i = 0; i < rereads; i++) {
		snprintf(name, sizeof(name), "%s-%u.bin", prefix, i + 1);
		if (load_scan(c->path, name, &scan[i], err) != 0)
			return -1;
	}
	return 0;
}

static int load_scans(struct pp_case *c, struct pp_error *err)
{
	if (c->run.aftermath != PP_AFTER_SCANNED)
		return 0;
	if (load_base(c, c->run.base, &c->base, err) != 0 ||
		load_scan(c->path, "scan.bin", &c->scan, err) != 0)
		return -1;
	return load_rereads(c, "reread", c->run.rereads, c->reread, err);
}

static int load_noise(struct pp_case *c, struct pp_error *err)
{
	const struct pp_noise_facts *n = &c->run.noise_run;

	if (!c->run.noise)
		return 0;
	if (load_ledger(c, "noise.ledger", &n->run_id, n->layout.lanes, &c->noise_ledger,
		&c->has_noise_ledger, err) != 0)
		return -1;
	if (!n->scanned)
		return 0;
	if (load_base(c, n->base, &c->noise_base, err) != 0 ||
		load_scan(c->path, "noise.bin", &c->noise_scan, err) != 0)
		return -1;
	return load_rereads(c, "noise-reread", n->rereads, c->noise_reread, err);
}

static int load_all(struct pp_case *c, const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_error *err)
{
	char path[4352];

	snprintf(c->folder, sizeof(c->folder), "%s", folder);
	if (!pp_text_format(c->path, sizeof(c->path), "%s/cuts/%04u/%s", folder, cut, serial_folder))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", folder);
	if (!pp_text_format(path, sizeof(path), "%s/cuts/%04u/cut.json", folder, cut))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", folder);
	if (pp_cut_facts_load(&c->cut, path, err) != 0)
		return -1;
	if (c->cut.number != cut)
		return pp_fail(err, PP_ERR_EVIDENCE, "'%s' says that it is cut %u", path, c->cut.number);
	if (join(path, sizeof(path), c->path, "run.json", err) != 0 ||
		pp_run_facts_load(&c->run, path, err) != 0)
		return -1;
	if (load_ledger(c, "acks.ledger", &c->run.run_id, c->run.layout.lanes, &c->ledger,
		&c->has_ledger, err) != 0 || load_scans(c, err) != 0 || load_noise(c, err) != 0)
		return -1;
	/* It is made before the run is ordered: without it a loss would pass for a void trial. */
	if (!c->has_ledger && c->cut.t_run_ns)
		return pp_fail(err, PP_ERR_EVIDENCE, "acks.ledger is missing from '%s': evidence with holes "
			"is not judged", c->path);
	if (load_counters(c, "drive-before.json", &c->before, err) != 0)
		return -1;
	return load_counters(c, "drive-after.json", &c->after, err);
}

int pp_case_load(struct pp_case *c, const char *folder, uint32_t cut, const char *serial_folder,
	struct pp_error *err)
{
	memset(c, 0, sizeof(*c));
	if (load_all(c, folder, cut, serial_folder, err) == 0)
		return 0;
	pp_case_release(c);
	return -1;
}

void pp_case_release(struct pp_case *c)
{
	size_t i;

	if (c->has_ledger)
		pp_ledger_data_release(&c->ledger);
	pp_scan_free(c->base);
	pp_scan_free(c->scan);
	if (c->has_noise_ledger)
		pp_ledger_data_release(&c->noise_ledger);
	pp_scan_free(c->noise_base);
	pp_scan_free(c->noise_scan);
	for (i = 0; i < PP_REREADS_MAX; i++) {
		pp_scan_free(c->reread[i]);
		pp_scan_free(c->noise_reread[i]);
	}
	memset(c, 0, sizeof(*c));
}
