/* SPDX-License-Identifier: MIT */
#include "matrix_show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/assess.h"
#include "src/core/text.h"

#define COLUMNS     80
#define LABEL_WIDTH 29
#define EACH_MAX    3  /* so many rows of one rule are told one by one */

/* Nobody reads any more: measuring on would only wear the drive. */
static void flush_or_stop(const struct pp_matrix_printer *p)
{
	if (fflush(stdout) != 0)
		*p->stop = 1;
}

/* ---- pg_test_fsync's layout ------------------------------------------------------------------ */

static const struct {
	const char *section, *heading;
} pg_headings[] = {
	{ "one", "\nCompare file sync methods using one 8kB write:\n"
		"(in wal_sync_method preference order, except fdatasync is Linux's default)\n" },
	{ "two", "\nCompare file sync methods using two 8kB writes:\n"
		"(in wal_sync_method preference order, except fdatasync is Linux's default)\n" },
	{ "sizes", "\nCompare open_sync with different write sizes:\n"
		"(This is designed to compare the cost of writing 16kB in different write\n"
		"open_sync sizes.)\n" },
	{ "reopen", "\nTest if fsync on non-write file descriptor is honored:\n"
		"(If the times are similar, fsync() can sync data written on a different\n"
		"descriptor.)\n" },
	{ "none", "\nNon-sync'ed 8kB writes:\n" },
};

void pp_matrix_pg_end(struct pp_matrix_printer *p)
{
	if (p->direct_refused)
		printf("* This file system and its mount options do not support direct\n"
			"  I/O, e.g. ext4 in journaled mode.\n");
	p->direct_refused = false;
}

void pp_matrix_pg_began(void *ctx, const struct pp_matrix_row *row)
{
	struct pp_matrix_printer *p = ctx;
	size_t i;

	if (!p->header_done)
		printf("%u second%s per test\n"
			"O_DIRECT supported on this platform for open_datasync and open_sync.\n",
			p->seconds, p->seconds == 1 ? "" : "s");
	p->header_done = true;
	if (strcmp(p->section, row->section) != 0) {
		pp_matrix_pg_end(p);
		pp_text_copy(p->section, sizeof(p->section), row->section);
		for (i = 0; i < sizeof(pg_headings) / sizeof(pg_headings[0]); i++)
			if (strcmp(pg_headings[i].section, row->section) == 0)
				fputs(pg_headings[i].heading, stdout);
	}
	printf("        %-30s", row->label);
	flush_or_stop(p);
}

void pp_matrix_pg_done(void *ctx, const struct pp_matrix_row *row)
{
	struct pp_matrix_printer *p = ctx;
	const struct pp_method *method = pp_method_find(row->method);
	bool direct = method && method->direct;

	if (row->status == PP_MATRIX_NA) {
		printf("%21s\n", direct ? "n/a*" : "n/a");
		/* As there: the footnote belongs to the tables of methods. */
		p->direct_refused |= direct && strcmp(row->section, "sizes") != 0;
	} else {
		printf("%13.3f ops/sec  %6.0f usecs/op\n", row->ops_per_s,
			(double)row->elapsed_ns / 1e3 / (double)row->ops);
	}
	flush_or_stop(p);
}

/* ---- lines ------------------------------------------------------------------------------------ */

/* Text in lines of 80 columns; the first begins with lead, the others with as many blanks. */
static void wrapped(const char *lead, const char *text)
{
	int indent = (int)strlen(lead), room = indent < COLUMNS / 2 ? COLUMNS - indent : COLUMNS / 2;

	printf("%s", lead);
	for (;;) {
		int length = (int)strlen(text), cut = length;

		for (cut = length < room ? length : room; cut < length && cut > 0 && text[cut] != ' '; cut--)
			;
		if (cut == 0)
			cut = length < room ? length : room; /* a word longer than the line */
		printf("%.*s\n", cut, text);
		text += cut + strspn(text + cut, " ");
		if (!*text)
			return;
		printf("%*s", indent < COLUMNS / 2 ? indent : 4, "");
	}
}

/* A name that is too long for its column gets a line of its own: no column slips. */
static const char *label_cell(const char *label)
{
	if (strlen(label) <= LABEL_WIDTH)
		return label;
	printf("%s\n", label);
	return "";
}

/* ---- our own table --------------------------------------------------------------------------- */

static void duration(double ns, char text[16])
{
	static const struct { double below, unit; int digits; const char *name; } scales[] = {
		{ 1e4, 1e3, 2, "us" }, { 1e6, 1e3, 1, "us" }, { 1e8, 1e6, 2, "ms" }, { 1e9, 1e6, 0, "ms" },
		{ 1e300, 1e9, 2, "s" },
	};
	size_t i;

	for (i = 0; ns >= scales[i].below; i++)
		;
	snprintf(text, 16, "%.*f %s", scales[i].digits, ns / scales[i].unit, scales[i].name);
}

static void per_op(double value, char text[16])
{
	if (value < 0)
		snprintf(text, 16, "-");
	else
		snprintf(text, 16, "%.2f", value);
}

struct cells {
	char p50[16], p90[16], p99[16], p999[16], max[16], variation[16], slices[16];
	char flushes[16], fua[16], writes[16], kbytes[16];
};

static void fill_cells(const struct pp_matrix_row *row, struct cells *c)
{
	duration((double)row->latency_ns_p50, c->p50);
	duration((double)row->latency_ns_p90, c->p90);
	duration((double)row->latency_ns_p99, c->p99);
	duration((double)row->latency_ns_p999, c->p999);
	duration((double)row->latency_ns_max, c->max);
	snprintf(c->variation, sizeof(c->variation), "%.2f", row->latency_variation);
	snprintf(c->slices, sizeof(c->slices), "%.2f", row->slice_variation);
	per_op(row->counted ? row->flushes_per_op : -1, c->flushes);
	per_op(row->fua_per_op, c->fua);
	per_op(row->counted ? row->writes_per_op : -1, c->writes);
	per_op(row->counted && row->bytes_per_op >= 0 ? row->bytes_per_op / 1024 : -1, c->kbytes);
}

static void columns(const struct pp_matrix_printer *p, bool throughput)
{
	if (throughput)
		printf("%-29s  %-7s  %9s  %8s  %8s  %8s", "throughput", "block", "MB/s", "p50", "p99",
			"flush/op");
	else
		printf("%-29s  %-7s  %9s  %8s  %8s  %8s", "method", "promise", "ops/s", "p50", "p99",
			"flush/op");
	if (p->wide)
		printf("  %6s  %8s  %6s  %8s  %8s  %8s  %5s  %6s", "FUA/op", "write/op", "kB/op", "p90",
			"p99.9", "max", "CV", "slices");
	printf("\n");
}

/* Not before the first row: an error is not preceded by half a table. */
void pp_matrix_table_began(void *ctx, const struct pp_matrix_row *row)
{
	struct pp_matrix_printer *p = ctx;
	bool throughput = strcmp(row->section, "throughput") == 0;
	char section[64];

	if (throughput)
		pp_text_copy(section, sizeof(section), row->section);
	else
		pp_text_format(section, sizeof(section), "%s, %u bytes, %u thread%s", row->workload,
			row->write_bytes, row->threads, row->threads == 1 ? "" : "s");
	if (strcmp(section, p->section) == 0)
		return;
	if (p->header_done)
		printf("\n");
	pp_text_copy(p->section, sizeof(p->section), section);
	if (p->axes && !throughput)
		printf("%s\n", section);
	columns(p, throughput);
	p->header_done = true;
	flush_or_stop(p);
}

void pp_matrix_table_done(void *ctx, const struct pp_matrix_row *row)
{
	const struct pp_matrix_printer *p = ctx;
	bool throughput = strcmp(row->section, "throughput") == 0;
	char block[16], lead[64];
	struct cells c;

	if (row->status == PP_MATRIX_NA) {
		snprintf(lead, sizeof(lead), "%-29s  n/a: ", label_cell(row->label));
		wrapped(lead, row->reason);
		flush_or_stop(p);
		return;
	}
	fill_cells(row, &c);
	snprintf(block, sizeof(block), "%u kB", row->write_bytes / 1024);
	printf("%-29s  %-7s  %9.1f  %8s  %8s  %8s", label_cell(row->label),
		throughput ? block : pp_promise_name(row->promise),
		throughput ? row->bytes_per_s / 1e6 : row->ops_per_s, c.p50, c.p99, c.flushes);
	if (p->wide)
		printf("  %6s  %8s  %6s  %8s  %8s  %8s  %5s  %6s", c.fua, c.writes, c.kbytes, c.p90,
			c.p999, c.max, c.variation, c.slices);
	printf("\n");
	if (row->settled)
		printf("%-29s  settled after %.1f s\n", "", (double)row->elapsed_ns / 1e9);
	flush_or_stop(p);
}

/* ---- what stands beneath ----------------------------------------------------------------------- */

/* What others' traffic did is one sentence about the disk, with the worst of it. */
static const struct pp_assess_finding *worst(const struct pp_assess_finding *f, size_t count)
{
	const struct pp_assess_finding *found = f;
	size_t i;

	for (i = 1; i < count && strcmp(f->rule, "foreign") == 0; i++)
		if (f[i].figure > found->figure)
			found = &f[i];
	return found;
}

/* Findings come rule by rule: many of one rule are one line, with their number. */
static void show_findings(const struct pp_assess_finding *f, size_t count)
{
	char text[512];
	size_t i, k, n;

	for (i = 0; i < count; i += n) {
		for (n = 1; i + n < count && strcmp(f[i + n].rule, f[i].rule) == 0; n++)
			;
		for (k = 0; n <= EACH_MAX && k < n; k++) {
			snprintf(text, sizeof(text), "%s: %s", f[i + k].row->label, f[i + k].text);
			wrapped("warning: ", text);
		}
		if (n <= EACH_MAX)
			continue;
		snprintf(text, sizeof(text), "%zu rows, %s among them: %s; 'plugpull assess' shows each", n,
			worst(f + i, n)->row->label, worst(f + i, n)->text);
		wrapped("warning: ", text);
	}
}

int pp_matrix_table_end(const struct pp_matrix *matrix, struct pp_error *err)
{
	struct pp_assess_finding *findings = NULL;
	struct pp_assess_input *in = malloc(sizeof(*in));
	char text[600];
	size_t count;

	if (!in)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	printf("\n");
	if (matrix->disk[0] && matrix->no_flushes)
		snprintf(text, sizeof(text), "flushes not counted: this system counts none of disk %s",
			matrix->disk);
	else if (matrix->disk[0])
		snprintf(text, sizeof(text), "flushes as counted by disk %s%s%s", matrix->disk,
			matrix->no_trace_reason[0] ? "; FUA not counted: " : "", matrix->no_trace_reason);
	else
		snprintf(text, sizeof(text), "flushes not counted: %s", matrix->no_disk_reason);
	wrapped("", text);
	pp_matrix_assess_input(matrix, in);
	count = pp_assess(in, NULL, 0);
	findings = calloc(count + 1, sizeof(*findings));
	if (!findings) {
		free(in);
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	}
	show_findings(findings, pp_assess(in, findings, count));
	printf("Speed is no verdict: only a power cut shows whether a promise was kept.\n");
	free(findings);
	free(in);
	return 0;
}
