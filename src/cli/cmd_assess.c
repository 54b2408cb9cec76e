/* SPDX-License-Identifier: MIT
 *
 * plugpull assess: which figures of a speed matrix cannot be, or are a trap. Warnings, never a
 * verdict (M10.2), so the exit status does not tell them apart.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_assess.h"
#include "src/core/assess.h"
#include "src/core/buf.h"
#include "src/core/file.h"
#include "verifier/report_fields.h"

struct options {
	bool json;
	const char *link, *rpm, *cache;
};

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{ { "link", required_argument, NULL, 'l' }, "TEXT",
		"of the drive: 'PCIe 3.0 x4', 'SATA 6.0 Gbps',\n"
		"                             'USB 5000 Mbps', '2000 MB/s'" },
	{ { "rpm", required_argument, NULL, 'r' }, "N", "the platter's turns a minute" },
	{ { "cache", required_argument, NULL, 'c' }, "on|off|protected", "the drive's write cache" },
	{ { "json", no_argument, NULL, 'j' }, NULL, "one JSON object" },
	{ { "help", no_argument, NULL, 'h' }, NULL, "print this, exit" },
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))

static int usage_error(const char *what, const char *subject)
{
	fprintf(stderr, "plugpull assess: %s '%s'\nTry 'plugpull assess --help'.\n", what, subject);
	return 2;
}

static void help(void)
{
	size_t i;

	printf("Usage: plugpull assess [OPTION]... FILE...\n"
		"Names the figures of a speed matrix that are not plausible. FILE is what\n"
		"'plugpull matrix --json' or pg_test_fsync (on any system) printed, or a list by\n"
		"hand: 'fdatasync: 3065 ops/s', 'sequential read: 2.79 GB/s', a line each; '-' is\n"
		"standard input.\n\n");
	for (i = 0; i < OPTIONS; i++) {
		char left[64];

		snprintf(left, sizeof(left), "--%s%s%s", table[i].option.name,
			table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-26s %s\n", left, table[i].help);
	}
	printf("\nWhat is warned of:\n");
	for (i = 0; i < pp_assess_rule_count; i++)
		printf("  %-12s %s\n", pp_assess_rules[i].name, pp_assess_rules[i].summary);
	printf("\nExit status: 0 assessed, with or without warnings; 2 could not.\n");
}

/* 0: go on; 1: answered; 2: usage error. */
static int parse(int argc, char **argv, struct options *o)
{
	struct option longs[OPTIONS + 1] = { 0 };
	size_t i;
	int c;

	for (i = 0; i < OPTIONS; i++)
		longs[i] = table[i].option;
	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":", longs, NULL)) != -1) {
		if (c == 'h') {
			help();
			return 1;
		}
		if (c == 'j')
			o->json = true;
		else if (c == 'l')
			o->link = optarg;
		else if (c == 'r')
			o->rpm = optarg;
		else if (c == 'c')
			o->cache = optarg;
		else
			return usage_error(c == ':' ? "no value for" : "unknown option", argv[optind - 1]);
	}
	return optind < argc ? 0 : usage_error("expected a", "FILE");
}

static int read_stream(struct pp_buf *text, struct pp_error *err)
{
	char part[65536];
	size_t n;

	while ((n = fread(part, 1, sizeof(part), stdin)) > 0)
		pp_buf_add(text, part, n);
	if (ferror(stdin))
		return pp_fail_os(err, errno, "cannot read standard input");
	return text->failed ? pp_fail(err, PP_ERR_USAGE, "standard input is too long") : 0;
}

/* What a person says of the drive counts more than what the file has. */
static int take_facts(const struct options *o, struct pp_assess_facts *facts, struct pp_error *err)
{
	if ((o->link && pp_assess_fact("link", o->link, facts, err) != 0) ||
		(o->rpm && pp_assess_fact("rpm", o->rpm, facts, err) != 0) ||
		(o->cache && pp_assess_fact("cache", o->cache, facts, err) != 0))
		return -1;
	return 0;
}

static void print_text(const char *path, const struct pp_assess_input *in,
	const struct pp_assess_finding *findings, size_t count)
{
	char lead[64], line[1024];
	struct pp_buf text;
	size_t i;

	printf("%s: %s, %zu figure%s, %zu warning%s\n", path, in->format, in->count,
		in->count == 1 ? "" : "s", count, count == 1 ? "" : "s");
	pp_buf_init(&text, 1U << 20);
	for (i = 0; i < count; i++) {
		snprintf(lead, sizeof(lead), "  %s: ", findings[i].rule);
		snprintf(line, sizeof(line), "%s: %s", findings[i].row->label, findings[i].text);
		pp_report_wrapped(&text, lead, line);
	}
	if (text.bytes)
		fwrite(text.data, 1, text.bytes, stdout);
	pp_buf_release(&text);
}

static void add_json(json_t *files, const char *path, const struct pp_assess_input *in,
	const struct pp_assess_finding *findings, size_t count)
{
	json_t *warnings = json_array();
	size_t i;

	for (i = 0; i < count; i++)
		json_array_append_new(warnings, json_pack("{s:s, s:s, s:s, s:f, s:f, s:s}", "rule",
			findings[i].rule, "label", findings[i].row->label, "group",
			findings[i].row->group, "figure", findings[i].figure, "limit",
			findings[i].limit, "text", findings[i].text));
	json_array_append_new(files, json_pack("{s:s, s:s, s:i, s:o}", "file", path, "form",
		in->format, "figures", (int)in->count, "warnings", warnings));
}

static int assess(const struct options *o, const char *path, json_t *files)
{
	struct pp_assess_input *in = malloc(sizeof(*in));
	struct pp_assess_finding *findings = NULL;
	struct pp_error err = { 0 };
	struct pp_buf text;
	size_t count;
	int rc;

	pp_buf_init(&text, PP_ASSESS_BYTES_MAX);
	rc = !in ? pp_fail(&err, PP_ERR_SYSTEM, "out of memory") : strcmp(path, "-") == 0
		? read_stream(&text, &err) : pp_file_read(path, &text, &err);
	if (rc == 0)
		rc = pp_assess_read(text.data ? text.data : "", text.bytes, in, &err);
	if (rc == 0)
		rc = take_facts(o, &in->facts, &err);
	if (rc == 0) {
		count = pp_assess(in, NULL, 0);
		findings = calloc(count + 1, sizeof(*findings));
		if (!findings)
			rc = pp_fail(&err, PP_ERR_SYSTEM, "out of memory");
		else if (pp_assess(in, findings, count), o->json)
			add_json(files, path, in, findings, count);
		else
			print_text(path, in, findings, count);
	}
	if (rc != 0)
		fprintf(stderr, "plugpull assess: cannot assess '%s': %s\n", path, err.text);
	free(findings);
	free(in);
	pp_buf_release(&text);
	return rc;
}

int pp_cmd_assess(int argc, char **argv)
{
	struct options o = { 0 };
	json_t *files = json_array(), *whole;
	int rc = parse(argc, argv, &o), i, status = 0;

	for (i = optind; rc == 0 && i < argc; i++)
		if (assess(&o, argv[i], files) != 0)
			status = 2;
	if (rc == 0 && o.json) {
		whole = json_pack("{s:i, s:O}", "format", 1, "files", files);
		if (!whole || json_dumpf(whole, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(10)) != 0)
			status = 2;
		json_decref(whole);
		putchar('\n');
	} else if (rc == 0 && status == 0) {
		printf("Warnings are no verdict: only a power cut shows whether a promise was kept.\n");
	}
	json_decref(files);
	return rc == 1 ? 0 : rc ? 2 : status;
}
