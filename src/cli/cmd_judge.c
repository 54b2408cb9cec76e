/* SPDX-License-Identifier: MIT
 *
 * plugpull judge DIR: the verdict again, from the evidence alone, after checking its seal.
 * plugpull report DIR...: the same for one or more folders, and for all their drives together.
 */
#include "cmd_judge.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "show.h"
#include "verifier/evidence.h"

enum { OPT_JSON = 256, OPT_CSV, OPT_JUNIT, OPT_HTML, OPT_EARLIER, OPT_NO_SEAL, OPT_RESOLVE, OPT_CAUSE, OPT_WHO, OPT_SWAPPED,
	OPT_HELP };

static const struct {
	struct option option;
	const char *argument, *help;
	int judge, report;
} table[] = {
	{ { "json", no_argument, NULL, OPT_JSON }, NULL, "one JSON object (\"format\": 1)", 1, 1 },
	{ { "csv", no_argument, NULL, OPT_CSV }, NULL, "comma-separated values, a line an arm", 1, 1 },
	{ { "junit", required_argument, NULL, OPT_JUNIT }, "FILE",
		"write JUnit XML too: a testsuite a drive, a testcase an arm; -: stdout", 1, 1 },
	{ { "html", required_argument, NULL, OPT_HTML }, "FILE",
		"write a page to read and print too; -: standard output", 1, 1 },
	{ { "earlier", required_argument, NULL, OPT_EARLIER }, "DIR",
		"an earlier campaign of the same arms: its losses count; may be repeated", 1, 0 },
	{ { "unsealed", no_argument, NULL, OPT_NO_SEAL }, NULL,
		"judge although SHA256SUMS does not fit (says so)", 1, 1 },
	{ { "resolve", required_argument, NULL, OPT_RESOLVE }, "CUT:DRIVE",
		"clear an open trial, or a void one that misses acked data; needs --cause", 1, 0 },
	{ { "cause", required_argument, NULL, OPT_CAUSE }, "TEXT", "what was found to be the cause", 1, 0 },
	{ { "swapped", no_argument, NULL, OPT_SWAPPED }, NULL,
		"the drive that was gone had been taken out, or exchanged, by a person", 1, 0 },
	{ { "who", required_argument, NULL, OPT_WHO }, "NAME", "who says so (default: $USER)", 1, 0 },
	{ { "help", no_argument, NULL, OPT_HELP }, NULL, "print this, exit", 1, 1 },
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))
#define EARLIER_MAX 32

struct options {
	const char *name;
	struct pp_show show;
	const char *earlier[EARLIER_MAX];
	const char *resolve, *cause, *who;
	bool swapped;
};

static int help(const char *name, int judge)
{
	size_t i;

	printf(judge ? "Usage: plugpull judge [OPTION]... DIR\n"
		"Judges a campaign again from its evidence alone: no lab, no power switch, no\n"
		"root.\n"
		"Exit status: 0 every required arm is SAFE, 1 a promise was broken, 2 neither.\n\n"
		: "Usage: plugpull report [OPTION]... DIR...\n"
		"Prints what campaigns found, and what several say of one kind of drive together.\n"
		"Exit status as of judge, the worst of them.\n\n");
	for (i = 0; i < OPTIONS; i++)
		if (judge ? table[i].judge : table[i].report)
			printf("  --%s%s%s\n      %s\n", table[i].option.name, table[i].argument ? " " : "",
				table[i].argument ? table[i].argument : "", table[i].help);
	(void)name;
	return 0;
}

static int usage(const char *name, const char *what)
{
	fprintf(stderr, "plugpull %s: %s\nTry 'plugpull %s --help'.\n", name, what, name);
	return 2;
}

/* -1: go on; else the exit status. */
static int parse(struct options *o, int argc, char **argv, int judge)
{
	struct option options[OPTIONS + 1];
	struct pp_error err;
	size_t i, n = 0;
	int c;

	memset(options, 0, sizeof(options));
	for (i = 0; i < OPTIONS; i++)
		if (judge ? table[i].judge : table[i].report)
			options[n++] = table[i].option;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case OPT_JSON: o->show.form = PP_SHOW_JSON; break;
		case OPT_CSV: o->show.form = PP_SHOW_CSV; break;
		case OPT_JUNIT: o->show.junit = optarg; break;
		case OPT_HTML: o->show.html = optarg; break;
		case OPT_NO_SEAL: o->show.unsealed = true; break;
		case OPT_RESOLVE: o->resolve = optarg; break;
		case OPT_CAUSE: o->cause = optarg; break;
		case OPT_WHO: o->who = optarg; break;
		case OPT_SWAPPED: o->swapped = true; break;
		case OPT_HELP: return help(o->name, judge);
		case OPT_EARLIER:
			if (o->show.earlier_count == EARLIER_MAX)
				return usage(o->name, "too many --earlier");
			o->earlier[o->show.earlier_count++] = optarg;
			break;
		default: return usage(o->name, "unknown option");
		}
	}
	if (optind == argc)
		return usage(o->name, "names no evidence folder");
	o->show.command = o->name;
	o->show.earlier = o->earlier;
	return pp_show_check(&o->show, &err) == 0 ? -1 : usage(o->name, err.text);
}

/* M6.5. What does not fit its seal must not get a new one that fits. */
static int resolve(const struct options *o, const char *folder)
{
	struct pp_resolution resolution = { .cause = o->cause, .who = o->who ? o->who : getenv("USER"),
		.swapped = o->swapped };
	struct pp_error err;
	char *end;
	unsigned long cut = strtoul(o->resolve, &end, 10);

	if (o->resolve[0] < '0' || o->resolve[0] > '9' || *end != ':' || !end[1] || cut == 0 ||
		cut > 999999 || !o->cause)
		return usage(o->name, "--resolve takes CUT:DRIVE and needs --cause TEXT");
	if (!resolution.who)
		resolution.who = "unknown";
	if (pp_evidence_check_seal(folder, &err) != 0) {
		fprintf(stderr, "plugpull %s: %s; nothing is resolved in evidence that does not fit its "
			"seal\n", o->name, err.text);
		return 2;
	}
	if (pp_resolution_save(folder, (uint32_t)cut, end + 1, &resolution, &err) != 0) {
		fprintf(stderr, "plugpull %s: %s\n", o->name, err.text);
		return 2;
	}
	fprintf(stderr, "plugpull %s: cut %lu of drive '%s' is cleared: %s (%s); judged and sealed "
		"anew\n", o->name, cut, end + 1, o->cause, resolution.who);
	return -1;
}

int pp_cmd_judge(int argc, char **argv)
{
	struct options o = { .name = "judge" };
	int status = parse(&o, argc, argv, 1);

	if (status >= 0)
		return status;
	if (optind + 1 != argc)
		return usage("judge", "takes one evidence folder; --earlier names others");
	if (!o.resolve && (o.cause || o.who || o.swapped))
		return usage("judge", "--cause, --who and --swapped go with --resolve");
	if (o.resolve) {
		status = resolve(&o, argv[optind]);
		if (status >= 0)
			return status;
	}
	return pp_show_folders(&o.show, (const char *const *)argv + optind, 1);
}

int pp_cmd_report(int argc, char **argv)
{
	struct options o = { .name = "report" };
	int status = parse(&o, argc, argv, 0);

	if (status >= 0)
		return status;
	return pp_show_folders(&o.show, (const char *const *)argv + optind, (size_t)(argc - optind));
}
