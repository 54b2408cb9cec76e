/* SPDX-License-Identifier: MIT
 *
 * plugpull compare A B: does one of two campaigns, or arms, lose in a larger share of its cuts than
 * the other (docs/method.md, M9.2)? Counts can also be entered by hand: 2/2 0/53.
 */
#include "cmd_compare.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/core/text.h"
#include "verifier/compare.h"

enum { OPT_ARM = 256, OPT_JSON, OPT_UNSEALED, OPT_HELP };

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{ { "arm", required_argument, NULL, OPT_ARM }, "METHOD[,WORKLOAD[,SERIAL]]",
		"the arm, where A or B is a folder that names none" },
	{ { "json", no_argument, NULL, OPT_JSON }, NULL, "one JSON object (\"format\": 1)" },
	{ { "unsealed", no_argument, NULL, OPT_UNSEALED }, NULL,
		"compare although SHA256SUMS does not fit (says so)" },
	{ { "help", no_argument, NULL, OPT_HELP }, NULL, "print this, exit" },
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))

/* A or B, as it was given and as it was read. */
struct given {
	char folder[4096];
	struct pp_compare_source source;
	struct pp_compare_side counts;
	bool by_hand;
	struct pp_evidence evidence;
	struct pp_verdict verdict;
};

struct options {
	const char *arm;
	bool json, unsealed;
};

static int help(void)
{
	size_t i;

	printf("Usage: plugpull compare [OPTION]... A B\n"
		"Says whether A or B loses in a larger share of its cuts. Each is an evidence\n"
		"folder, DIR#METHOD[,WORKLOAD[,SERIAL]] for one arm of it, or K/N: K of N cuts\n"
		"lost.\n"
		"Exit status: 0 no difference shown (95 %%), 1 a difference, 2 could not compare.\n\n");
	for (i = 0; i < OPTIONS; i++)
		printf("  --%s%s%s\n      %s\n", table[i].option.name, table[i].argument ? " " : "",
			table[i].argument ? table[i].argument : "", table[i].help);
	return 0;
}

static int usage(const char *what)
{
	fprintf(stderr, "plugpull compare: %s\nTry 'plugpull compare --help'.\n", what);
	return 2;
}

/* -1: go on; else the exit status. */
static int parse(struct options *o, int argc, char **argv)
{
	struct option options[OPTIONS + 1];
	size_t i;
	int c;

	memset(options, 0, sizeof(options));
	for (i = 0; i < OPTIONS; i++)
		options[i] = table[i].option;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case OPT_ARM: o->arm = optarg; break;
		case OPT_JSON: o->json = true; break;
		case OPT_UNSEALED: o->unsealed = true; break;
		case OPT_HELP: return help();
		default: return usage("unknown option");
		}
	}
	return optind + 2 == argc ? -1 : usage("takes two: folders, DIR#ARM, or K/N");
}

/* Splits DIR#ARM; a folder whose own name has a # is taken whole. */
static int read_name(struct given *g, const char *text, const struct options *o,
	struct pp_error *err)
{
	const char *hash = strrchr(text, '#');
	struct stat st;

	if (pp_compare_counts(text, &g->counts)) {
		g->by_hand = true;
		return 0;
	}
	if (stat(text, &st) != 0 && text[strspn(text, "0123456789/")] == '\0')
		return pp_fail(err, PP_ERR_USAGE, "'%s' is neither a folder nor K/N with K of N cuts lost",
			text);
	if (!hash || stat(text, &st) == 0) {
		if (!pp_text_format(g->folder, sizeof(g->folder), "%s", text))
			return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", text);
		return o->arm ? pp_compare_arm(o->arm, &g->source, err) : 0;
	}
	if (!pp_text_format(g->folder, sizeof(g->folder), "%.*s", (int)(hash - text), text))
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", text);
	return pp_compare_arm(hash + 1, &g->source, err);
}

static int load(struct given *g, const struct options *o, struct pp_error *err)
{
	struct pp_error why;

	if (g->by_hand)
		return 0;
	if (pp_evidence_kind(g->folder, &why) == PP_EVIDENCE_NOT) {
		*err = why;
		return -1;
	}
	if (pp_evidence_check_seal(g->folder, err) != 0) {
		fprintf(stderr, "plugpull compare: %s%s\n", err->text, o->unsealed ?
			"; compared all the same, as --unsealed asks" :
			"; --unsealed compares it all the same");
		if (!o->unsealed) {
			err->text[0] = '\0';
			return -1;
		}
	}
	if (pp_evidence_load(&g->evidence, g->folder, false, err) != 0 ||
		pp_evidence_verdict(&g->evidence, NULL, 0, &g->verdict, err) != 0)
		return -1;
	g->source.folder = g->folder;
	g->source.evidence = &g->evidence;
	g->source.verdict = &g->verdict;
	return 0;
}

/* At least one of the two was entered by hand. */
static int compare_counts(struct given *given, struct pp_comparisons *out, struct pp_error *err)
{
	int i;

	memset(out, 0, sizeof(*out));
	out->list = calloc(1, sizeof(*out->list));
	if (!out->list)
		return pp_fail_os(err, ENOMEM, "cannot compare");
	out->count = 1;
	for (i = 0; i < 2; i++) {
		const struct pp_verdict_arm *arm;

		if (given[i].by_hand) {
			out->list[0].side[i] = given[i].counts;
			continue;
		}
		arm = pp_compare_only(&given[i].source, err);
		if (!arm)
			return -1;
		pp_compare_fill(&out->list[0].side[i], &given[i].source, arm);
	}
	pp_compare(&out->list[0], 1);
	return 0;
}

static int show(const struct pp_comparisons *c, const struct options *o, struct pp_error *err)
{
	struct pp_buf text;
	int rc;

	pp_buf_init(&text, 16U << 20);
	rc = o->json ? pp_comparisons_json(c, &text, err) : pp_comparisons_text(c, &text, err);
	if (rc == 0 && fwrite(text.data, 1, text.bytes, stdout) != text.bytes)
		rc = pp_fail_os(err, errno, "cannot write the comparison");
	pp_buf_release(&text);
	return rc;
}

static int compare(struct given *given, const struct options *o, char **names)
{
	struct pp_comparisons result = { 0 };
	struct pp_error err = { 0 };
	int i, rc = 0, status = 2;

	for (i = 0; i < 2 && rc == 0; i++)
		rc = read_name(&given[i], names[i], o, &err);
	for (i = 0; i < 2 && rc == 0; i++)
		rc = load(&given[i], o, &err);
	if (rc == 0)
		rc = given[0].by_hand || given[1].by_hand ? compare_counts(given, &result, &err)
			: pp_compare_campaigns(&given[0].source, &given[1].source, &result, &err);
	if (rc == 0)
		rc = show(&result, o, &err);
	if (rc == 0)
		status = pp_comparisons_exit(&result);
	else if (err.text[0])
		fprintf(stderr, "plugpull compare: %s\n", err.text);
	pp_comparisons_release(&result);
	return status;
}

int pp_cmd_compare(int argc, char **argv)
{
	struct given *given = calloc(2, sizeof(*given));
	struct options o = { 0 };
	int i, status = parse(&o, argc, argv);

	if (!given)
		return usage("out of memory");
	if (status < 0)
		status = compare(given, &o, argv + optind);
	for (i = 0; i < 2; i++) {
		pp_verdict_release(&given[i].verdict);
		pp_evidence_release(&given[i].evidence);
	}
	free(given);
	return status;
}
