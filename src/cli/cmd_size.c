/* SPDX-License-Identifier: MIT
 *
 * plugpull size: how many cuts a criterion needs (docs/method.md, M8.3, M7.3, M9.1), and how long
 * that takes, before anybody plugs in anything.
 */
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_size.h"
#include "src/core/stats.h"

static const char usage[] =
	"Usage: plugpull size [OPTION]...\n"
	"Says how many cuts a criterion needs, and how many hours.\n"
	"\n"
	"      --criterion C/R  C % sure that R % of cuts or more lose nothing (95/90)\n"
	"      --arms N         arms that must be SAFE, one method each (1)\n"
	"      --controls N     cuts for the controls, all together (what `write` and\n"
	"                       `direct` need at least, before the arms and once more\n"
	"                       after them)\n"
	"      --cycle-s S      seconds from cut to cut (120)\n"
	"      --json           one object\n"
	"      --help           show this\n";

struct size {
	struct pp_criterion criterion;
	uint64_t arms, controls, cycle_s;
	bool controls_given, json;
};

/* The fewest cuts of `direct` that let n clean cuts speak, if every one of them loses (M7.3). */
static uint32_t direct_cuts(uint32_t clean)
{
	uint32_t n = 1;

	while (pp_stats_detection_power(pp_stats_bound_lower(n, n, 0.95), clean) < 0.95)
		n++;
	return n;
}

/* A whole number from low to high, nothing else. */
static int parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *out)
{
	uint64_t value = 0;
	const char *at;

	for (at = text; *at >= '0' && *at <= '9' && value <= high; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	if (at == text || *at || value < low || value > high) {
		fprintf(stderr, "plugpull size: '%s' is not a whole number from %llu to %llu\n",
			text, (unsigned long long)low, (unsigned long long)high);
		return -1;
	}
	*out = value;
	return 0;
}

/* 1: go on; 0: help was shown; -1: said what is wrong. */
static int parse(int argc, char **argv, struct size *size)
{
	static const struct option options[] = {
		{ "criterion", required_argument, NULL, 'c' },
		{ "arms", required_argument, NULL, 'a' },
		{ "controls", required_argument, NULL, 'k' },
		{ "cycle-s", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct pp_error err;
	int c, bad = 0;

	optind = 1;
	while (!bad && (c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'c':
			bad = pp_criterion_parse(optarg, &size->criterion, &err);
			if (bad)
				fprintf(stderr, "plugpull size: %s\n", err.text);
			break;
		case 'a':
			bad = parse_number(optarg, 1, 100000, &size->arms);
			break;
		case 'k':
			bad = parse_number(optarg, 0, 1000000, &size->controls);
			size->controls_given = true;
			break;
		case 's':
			bad = parse_number(optarg, 1, 86400, &size->cycle_s);
			break;
		case 'j':
			size->json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			bad = -1;
		}
	}
	if (!bad && optind == argc)
		return 1;
	if (!bad)
		fprintf(stderr, "plugpull size: unexpected '%s'\n", argv[optind]);
	fputs("try 'plugpull size --help'\n", stderr);
	return -1;
}

static void print_text(const struct size *size, uint32_t clean, uint32_t direct)
{
	unsigned long long arms = size->arms, controls = size->controls;
	unsigned long long cuts = clean * arms + controls;

	printf("criterion %s: %u clean cuts an arm\n", size->criterion.text, clean);
	printf("  none lost in %u: at most %.2g %% of cuts lose (95 %% confidence)\n", clean,
		100.0 * pp_stats_bound_upper(0, clean, 0.95));
	printf("  the control `direct` must lose in %u of %u cuts, or in enough of more, else "
		"the rig is too blind\n", direct, direct);
	printf("cuts:  %u x %llu arm%s + %llu for controls = %llu\n", clean, arms,
		arms == 1 ? "" : "s", controls, cuts);
	printf("hours: %.1f at %llu s a cut; void and unexposed cuts come on top\n",
		(double)cuts * (double)size->cycle_s / 3600.0, (unsigned long long)size->cycle_s);
}

static void print_json(const struct size *size, uint32_t clean, uint32_t direct)
{
	unsigned long long cuts = clean * size->arms + size->controls;

	printf("{\"format\": 1, \"criterion\": \"%s\", \"clean_cuts_per_arm\": %u, "
		"\"direct_cuts_min\": %u, \"arms\": %llu, \"control_cuts\": %llu, \"cuts\": %llu, "
		"\"cycle_s\": %llu, \"duration_s\": %llu}\n", size->criterion.text, clean, direct,
		(unsigned long long)size->arms, (unsigned long long)size->controls, cuts,
		(unsigned long long)size->cycle_s, cuts * (unsigned long long)size->cycle_s);
}

int pp_cmd_size(int argc, char **argv)
{
	struct size size = { .arms = 1, .cycle_s = 120 };
	uint32_t clean, direct;
	int go;

	if (pp_criterion_parse("95/90", &size.criterion, NULL) != 0)
		return 2;
	go = parse(argc, argv, &size);
	if (go < 0)
		return 2;
	if (go > 0) {
		clean = pp_criterion_clean_cuts(&size.criterion);
		direct = direct_cuts(clean);
		/* `write` as often as `direct`, and both again at the end (M1.4). */
		if (!size.controls_given)
			size.controls = 4 * (uint64_t)direct;
		if (size.json)
			print_json(&size, clean, direct);
		else
			print_text(&size, clean, direct);
	}
	return fflush(stdout) == 0 ? 0 : 2;
}
