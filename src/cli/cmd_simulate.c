/* SPDX-License-Identifier: MIT
 *
 * plugpull simulate: power cuts in memory, by the thousand, to prove the judge (docs/simulator.md).
 * Options are one table: for getopt and for parsing.
 */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd_simulate.h"
#include "src/core/record.h"
#include "src/lab/simulate.h"

static const char usage[] =
	"Usage: plugpull simulate [OPTION]...\n"
	"Simulates power cuts in memory and compares the judge's word with the truth.\n"
	"\n"
	"      --drive NAME         a behaviour of --list, or all, honest, liars (all)\n"
	"      --list               list the behaviours of drives\n"
	"      --cuts N             cuts for each drive (1000)\n"
	"      --seed N             seed of the first rig (drawn, and printed)\n"
	"      --method NAME        one method (drawn among those that promise)\n"
	"      --workload NAME      one workload (drawn)\n"
	"      --target raw|file    kind of target (drawn)\n"
	"      --lanes N            lanes of a run (drawn)\n"
	"      --group N            records a sync (drawn)\n"
	"      --record-bytes N     record size (drawn)\n"
	"      --records N          records of a run, about (300)\n"
	"      --run-ms N           length of a run instead, about\n"
	"      --pace N             records a second, at most (no limit)\n"
	"      --rig-cuts N         cuts of one drive, before the next is taken (12)\n"
	"      --net-delay-us N     longest delay of a message (drawn)\n"
	"      --net-loss-us N      longest silence before a cut (drawn)\n"
	"      --cache-kb N         cache of the drive (drawn)\n"
	"      --destage-kb N       kB a second that it destages, with --cache-kb\n"
	"      --survive-pct N      of the cache, at a cut (drawn for each)\n"
	"      --lies-pct N         the drive lies in N % of its power cycles only\n"
	"      --io-error-pct N     in N % of the runs a write or sync fails (3)\n"
	"      --noise              unsynced writes beside the lanes\n"
	"      --nobarrier          the file system sends no flushes\n"
	"      --misses N           print so many cuts where judge and truth differ (10)\n"
	"      --replay SEED        tell what happens in that rig; other options as then\n"
	"      --campaigns N        run N whole campaigns for each drive, count verdicts\n"
	"      --control-pace auto|none  of `direct`: as the arm, or as it can (auto)\n"
	"      --criterion C/R      of the campaigns (95/90)\n"
	"      --bench              print the speed of the simulator\n"
	"      --json               one object\n"
	"      --help               show this\n";

struct options {
	struct pp_sim_plan plan;
	const char *drive;
	uint64_t cuts, seed, misses, replay, campaigns, lies_pct;
	struct pp_criterion criterion;
	bool seed_given, replays, list, bench, json;
	struct pp_sim_drive_behaviour sometimes;
};

/* Numbers: where they go, and what they may be. */
struct number {
	const char *name;
	uint64_t low, high;
};

enum { OPT_DRIVE = 1000, OPT_NOISE, OPT_CONTROL_PACE, OPT_METHOD, OPT_WORKLOAD, OPT_TARGET, OPT_CRITERION, OPT_LIST, OPT_BENCH,
	OPT_JSON, OPT_NOBARRIER, OPT_CUTS, OPT_SEED, OPT_LANES, OPT_GROUP, OPT_RECORD_BYTES,
	OPT_RECORDS, OPT_RIG_CUTS, OPT_NET_DELAY, OPT_NET_LOSS, OPT_CACHE, OPT_DESTAGE, OPT_SURVIVE,
	OPT_LIES, OPT_MISSES, OPT_REPLAY, OPT_CAMPAIGNS, OPT_IO_ERROR,
	OPT_RUN_MS, OPT_PACE };

static const struct number numbers[] = {
	{ "cuts", 1, 1000000000 }, { "seed", 0, UINT64_MAX }, { "lanes", 1, PP_LANES_MAX },
	{ "group", 1, PP_GROUP_MAX }, { "record-bytes", PP_CELL_BYTES, 65536 },
	{ "records", 8, 100000 }, { "rig-cuts", 1, 100000 }, { "net-delay-us", 0, 20000 },
	{ "net-loss-us", 0, 30000 }, { "cache-kb", 1, 1 << 20 }, { "destage-kb", 0, 1 << 24 },
	{ "survive-pct", 0, 100 }, { "lies-pct", 0, 100 }, { "misses", 0, 1000000 },
	{ "replay", 0, UINT64_MAX }, { "campaigns", 1, 1000000 }, { "io-error-pct", 0, 100 },
	{ "run-ms", 1, 10000 }, { "pace", 1, 10000000 },
};

static int complain(const char *text)
{
	fprintf(stderr, "plugpull simulate: %s\n", text);
	return -1;
}

static int parse_number(const struct number *row, const char *text, uint64_t *out)
{
	uint64_t value = 0;
	const char *at = text;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (value > (UINT64_MAX - (uint64_t)(*at - '0')) / 10)
			break;
		value = value * 10 + (uint64_t)(*at - '0');
	}
	if (at != text && !*at && value >= row->low && value <= row->high) {
		*out = value;
		return 0;
	}
	fprintf(stderr, "plugpull simulate: --%s is a whole number from %" PRIu64 " to %" PRIu64
		", not '%s'\n", row->name, row->low, row->high, text);
	return -1;
}

static void take_number(struct options *o, int option, uint64_t value)
{
	switch (option) {
	case OPT_CUTS: o->cuts = value; break;
	case OPT_SEED: o->seed = value; o->seed_given = true; break;
	case OPT_LANES: o->plan.lanes = (uint32_t)value; break;
	case OPT_GROUP: o->plan.group = (uint32_t)value; break;
	case OPT_RECORD_BYTES: o->plan.record_bytes = (uint32_t)value; break;
	case OPT_RECORDS: o->plan.records = (uint32_t)value; break;
	case OPT_RIG_CUTS: o->plan.cuts_a_rig = (uint32_t)value; break;
	case OPT_NET_DELAY: o->plan.net_delay_ns = (int64_t)value * 1000; break;
	case OPT_NET_LOSS: o->plan.net_loss_ns = (int64_t)value * 1000; break;
	case OPT_CACHE: o->plan.cache_bytes = value << 10; break;
	case OPT_DESTAGE: o->plan.destage_bytes_per_s = value << 10; break;
	case OPT_SURVIVE: o->plan.survive_pct = (unsigned)value; break;
	case OPT_LIES: o->lies_pct = value; break;
	case OPT_MISSES: o->misses = value; break;
	case OPT_REPLAY: o->replay = value; o->replays = true; break;
	case OPT_CAMPAIGNS: o->campaigns = value; break;
	case OPT_RUN_MS: o->plan.run_ms = (uint32_t)value; break;
	case OPT_PACE: o->plan.pace_per_s = (uint32_t)value; break;
	case OPT_IO_ERROR: o->plan.io_error_pct = (unsigned)value; break;
	}
}

static int take_name(struct options *o, int option, const char *text)
{
	struct pp_error err;

	switch (option) {
	case OPT_DRIVE:
		o->drive = text;
		if (!strcmp(text, "all") || !strcmp(text, "honest") || !strcmp(text, "liars") ||
			pp_sim_drive_behaviour_find(text))
			return 0;
		return complain("no such drive; see --list");
	case OPT_METHOD:
		o->plan.method = pp_method_find(text);
		return o->plan.method ? 0 : complain("no such method; see plugpull matrix");
	case OPT_WORKLOAD:
		return pp_workload_find(text, &o->plan.workload) ? 0 : complain("no such workload");
	case OPT_TARGET:
		o->plan.kind = !strcmp(text, "raw") ? PP_TARGET_RAW : PP_TARGET_FILE;
		return o->plan.kind == PP_TARGET_RAW || !strcmp(text, "file") ? 0
			: complain("--target is raw or file");
	case OPT_CRITERION:
		return pp_criterion_parse(text, &o->criterion, &err) == 0 ? 0 : complain(err.text);
	case OPT_CONTROL_PACE:
		o->plan.paced_control = !strcmp(text, "auto");
		return o->plan.paced_control || !strcmp(text, "none") ? 0
			: complain("--control-pace is auto or none");
	case OPT_LIST: o->list = true; break;
	case OPT_BENCH: o->bench = true; break;
	case OPT_JSON: o->json = true; break;
	case OPT_NOISE: o->plan.noise = true; break;
	case OPT_NOBARRIER: o->plan.barriers = false; break;
	}
	return 0;
}

static int check(const struct options *o)
{
	const struct pp_sim_plan *p = &o->plan;

	if (p->record_bytes % PP_CELL_BYTES != 0)
		return complain("--record-bytes is a multiple of 512");
	if (p->record_bytes % 4096 != 0 && (p->kind != PP_TARGET_RAW || !p->method ||
		!p->method->direct || p->workload != PP_OVERWRITE))
		return complain("records below a page need --target raw, --workload overwrite and a "
			"direct method");
	if (p->kind == PP_TARGET_RAW && p->workload != PP_WORKLOADS &&
		pp_workload_own_files(p->workload))
		return complain("that workload needs --target file");
	return 0;
}

/* 1: go on; 0: help was shown; -1: said what is wrong. */
static int parse(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{ "drive", required_argument, NULL, OPT_DRIVE },
		{ "method", required_argument, NULL, OPT_METHOD },
		{ "workload", required_argument, NULL, OPT_WORKLOAD },
		{ "target", required_argument, NULL, OPT_TARGET },
		{ "criterion", required_argument, NULL, OPT_CRITERION },
		{ "list", no_argument, NULL, OPT_LIST },
		{ "bench", no_argument, NULL, OPT_BENCH },
		{ "json", no_argument, NULL, OPT_JSON },
		{ "nobarrier", no_argument, NULL, OPT_NOBARRIER },
		{ "noise", no_argument, NULL, OPT_NOISE },
		{ "cuts", required_argument, NULL, OPT_CUTS },
		{ "seed", required_argument, NULL, OPT_SEED },
		{ "lanes", required_argument, NULL, OPT_LANES },
		{ "group", required_argument, NULL, OPT_GROUP },
		{ "record-bytes", required_argument, NULL, OPT_RECORD_BYTES },
		{ "records", required_argument, NULL, OPT_RECORDS },
		{ "rig-cuts", required_argument, NULL, OPT_RIG_CUTS },
		{ "net-delay-us", required_argument, NULL, OPT_NET_DELAY },
		{ "net-loss-us", required_argument, NULL, OPT_NET_LOSS },
		{ "cache-kb", required_argument, NULL, OPT_CACHE },
		{ "destage-kb", required_argument, NULL, OPT_DESTAGE },
		{ "survive-pct", required_argument, NULL, OPT_SURVIVE },
		{ "lies-pct", required_argument, NULL, OPT_LIES },
		{ "misses", required_argument, NULL, OPT_MISSES },
		{ "replay", required_argument, NULL, OPT_REPLAY },
		{ "campaigns", required_argument, NULL, OPT_CAMPAIGNS },
		{ "io-error-pct", required_argument, NULL, OPT_IO_ERROR },
		{ "run-ms", required_argument, NULL, OPT_RUN_MS },
		{ "pace", required_argument, NULL, OPT_PACE },
		{ "control-pace", required_argument, NULL, OPT_CONTROL_PACE },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	uint64_t value;
	int c, bad = 0;

	optind = 1;
	while (!bad && (c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (c == '?') {
			bad = -1;
		} else if (c >= OPT_CUTS) {
			bad = parse_number(&numbers[c - OPT_CUTS], optarg, &value);
			if (!bad)
				take_number(o, c, value);
		} else {
			bad = take_name(o, c, optarg);
		}
	}
	if (!bad && optind < argc)
		bad = complain("unexpected argument");
	if (!bad)
		bad = check(o);
	if (bad)
		fputs("try 'plugpull simulate --help'\n", stderr);
	return bad ? -1 : 1;
}

/* ---- results ---------------------------------------------------------------------------------- */

static void list(void)
{
	const struct pp_sim_drive_behaviour *b;
	size_t i;

	for (i = 0; (b = pp_sim_drive_behaviour_at(i)); i++)
		printf("%-21s %-6s  %s\n%30s(%s)\n", b->name, b->honest ? "honest" : "lies", b->physics,
			"", b->seen);
}

struct watching {
	const struct options *options;
	uint64_t left;
};

static bool watch(void *ctx, const struct pp_sim_plan *plan, uint64_t seed,
	const struct pp_sim_outcome *outcome)
{
	struct watching *w = ctx;

	if (outcome->word == PP_SIM_AGREES || !w->left)
		return true;
	w->left--;
	fprintf(stderr, "%s: %s in cut %u of the rig with seed %" PRIu64 ": %s\n",
		plan->behaviour->name, pp_sim_word_name(outcome->word), outcome->cut, seed,
		outcome->difference);
	return true;
}

static void print_classes(const struct pp_sim_tally *t, bool json)
{
	const char *between = "";
	int i;

	for (i = 0; i < PP_LOSS_CLASSES; i++) {
		if (!t->of[i])
			continue;
		printf(json ? "%s\"%s\": %" PRIu64 : "%s%s %" PRIu64, between,
			pp_loss_class_name((enum pp_loss_class)i), t->of[i]);
		between = json ? ", " : ", ";
	}
}

static void print_tally(const struct options *o, const struct pp_sim_plan *plan,
	const struct pp_sim_tally *t, bool first)
{
	uint64_t caught = t->lost - t->word[PP_SIM_MISSED] - t->word[PP_SIM_CONTRADICTS];

	if (!o->json) {
		if (first)
			printf("%-21s %8s %8s %8s %7s %7s %7s %7s  %s\n", "drive", "cuts", "lost",
				"caught", "missed", "false", "inexact", "veiled", "records lost");
		printf("%-21s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %7" PRIu64 " %7" PRIu64
			" %7" PRIu64 " %7" PRIu64 "  ", plan->behaviour->name, t->cuts, t->lost, caught,
			t->word[PP_SIM_MISSED] + t->word[PP_SIM_CONTRADICTS], t->word[PP_SIM_FALSE],
			t->word[PP_SIM_INEXACT], t->veiled);
		print_classes(t, false);
		putchar('\n');
		fflush(stdout);
		return;
	}
	printf("%s{\"drive\": \"%s\", \"honest\": %s, \"cuts\": %" PRIu64 ", \"cuts_lost\": %" PRIu64
		", \"caught\": %" PRIu64 ", \"missed\": %" PRIu64 ", \"false\": %" PRIu64
		", \"inexact\": %" PRIu64 ", \"contradicts\": %" PRIu64 ", \"veiled\": %" PRIu64
		", \"void\": %" PRIu64 ", \"open\": %" PRIu64 ", \"unexposed\": %" PRIu64
		", \"records_lost\": {", first ? "" : ", ", plan->behaviour->name,
		plan->behaviour->honest ? "true" : "false", t->cuts, t->lost, caught,
		t->word[PP_SIM_MISSED], t->word[PP_SIM_FALSE], t->word[PP_SIM_INEXACT],
		t->word[PP_SIM_CONTRADICTS], t->veiled, t->voids, t->opens, t->unexposed);
	print_classes(t, true);
	fputs("}}", stdout);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* How often the arm and `direct` lose on such drives, each counted by itself. */
static int loss_rate(const struct options *o, const struct pp_sim_plan *plan, const char *method,
	double *pct, uint32_t *pace_per_s, struct pp_error *err)
{
	struct pp_sim_plan own = *plan;
	struct pp_sim_tally t = { 0 };

	own.io_error_pct = 0;

	if (method) {
		own.method = pp_method_find(method);
		own.pace_per_s = plan->paced_control ? *pace_per_s : 0;
	}
	/* Only the first cuts of many rigs: those of one are not independent. */
	if (pp_simulate(&own, o->seed + 1000000, 1000, &t, NULL, NULL, err) != 0)
		return -1;
	*pct = percent(t.lost, t.cuts);
	*pace_per_s = (uint32_t)(1e9 * (double)t.records / (double)t.simulated_ns);
	return 0;
}

static int print_campaigns(const struct options *o, const struct pp_sim_plan *plan, bool first,
	struct pp_error *err)
{
	struct pp_sim_campaigns r;
	double arm_pct, direct_pct;
	uint32_t pace_per_s;

	if (loss_rate(o, plan, NULL, &arm_pct, &pace_per_s, err) != 0 ||
		loss_rate(o, plan, "direct", &direct_pct, &pace_per_s, err) != 0 ||
		pp_sim_campaign(plan, &o->criterion, o->seed, o->campaigns, &r, err) != 0)
		return -1;
	if (o->json) {
		printf("%s{\"drive\": \"%s\", \"criterion\": \"%s\", \"lies_pct\": %u, "
			"\"arm_loss_pct\": %.2f, \"direct_loss_pct\": %.2f, \"campaigns\": %" PRIu64
			", \"safe\": %" PRIu64 ", \"unsafe\": %" PRIu64 ", \"inconclusive\": %" PRIu64
			", \"blind\": %" PRIu64 ", \"cuts\": %" PRIu64 "}", first ? "" : ", ",
			plan->behaviour->name, o->criterion.text, plan->behaviour->chance_pct, arm_pct,
			direct_pct, r.campaigns, r.safe, r.unsafe, r.inconclusive, r.blind, r.cuts);
		return 0;
	}
	if (first)
		printf("%-21s %9s %8s %9s %9s %8s %8s %8s %12s %9s\n", "drive", "criterion", "a cut",
			"`direct`", "campaigns", "SAFE", "SAFE", "UNSAFE", "INCONCLUSIVE", "blind");
	printf("%-21s %9s %6.1f %% %7.1f %% %9" PRIu64 " %8" PRIu64 " %6.2f %% %8" PRIu64 " %12" PRIu64
		" %9" PRIu64 "\n", plan->behaviour->name, o->criterion.text, arm_pct, direct_pct,
		r.campaigns, r.safe, percent(r.safe, r.campaigns), r.unsafe, r.inconclusive, r.blind);
	fflush(stdout);
	return 0;
}

/* ---- what to do -------------------------------------------------------------------------------- */

static bool wanted(const struct options *o, const struct pp_sim_drive_behaviour *b)
{
	return !strcmp(o->drive, "all") || !strcmp(o->drive, b->honest ? "honest" : "liars") ||
		!strcmp(o->drive, b->name);
}

static void say(void *ctx, const char *line)
{
	(void)ctx;
	puts(line);
}

/* Honest drives behind a kernel that drops flushes lose what they were never asked to keep. */
static bool must_keep(const struct options *o, const struct pp_sim_plan *plan)
{
	return plan->behaviour->honest && plan->barriers && (!plan->method || !plan->method->control) &&
		!o->lies_pct;
}

static int each_drive(struct options *o, bool *wrong, struct pp_error *err)
{
	const struct pp_sim_drive_behaviour *b;
	struct watching w = { o, o->misses };
	bool first = true;
	size_t i;

	for (i = 0; (b = pp_sim_drive_behaviour_at(i)); i++) {
		struct pp_sim_plan plan = o->plan;
		struct pp_sim_tally t = { 0 };

		if (!wanted(o, b))
			continue;
		plan.behaviour = b;
		if (o->lies_pct) {
			o->sometimes = *b;
			o->sometimes.flags |= PP_DRIVE_SOMETIMES;
			o->sometimes.chance_pct = (unsigned)o->lies_pct;
			plan.behaviour = &o->sometimes;
		}
		if (o->replays)
			return pp_sim_replay(&plan, o->replay, say, NULL, err);
		if (o->campaigns) {
			if (print_campaigns(o, &plan, first, err) != 0)
				return -1;
		} else {
			if (pp_simulate(&plan, o->seed, o->cuts, &t, watch, &w, err) != 0)
				return -1;
			*wrong |= t.word[PP_SIM_AGREES] != t.cuts || (must_keep(o, &plan) && t.lost);
			print_tally(o, &plan, &t, first);
		}
		first = false;
	}
	return 0;
}

static int bench(const struct options *o, struct pp_error *err)
{
	struct pp_sim_plan plan = o->plan;
	struct pp_sim_tally t = { 0 };
	clock_t began;

	plan.behaviour = pp_sim_drive_behaviour_find("honest");
	plan.method = pp_method_find("fdatasync");
	plan.workload = PP_OVERWRITE;
	plan.kind = PP_TARGET_RAW;
	plan.lanes = plan.group = 1;
	plan.record_bytes = 4096;
	plan.records = 1000;
	plan.io_error_pct = 0;
	began = clock();
	if (pp_simulate(&plan, o->seed, o->cuts, &t, NULL, NULL, err) != 0)
		return -1;
	/* Processor time: what others do on this machine is no property of ours. */
	printf("%" PRIu64 " cuts of %" PRIu64 " records: %.0f cuts a minute of one core; %.0f s of "
		"simulated time\n", t.cuts, t.records / t.cuts, (double)t.cuts * 60.0 *
		CLOCKS_PER_SEC / (double)(clock() - began), (double)t.simulated_ns / 1e9);
	return 0;
}

static int draw_seed(struct options *o, struct pp_error *err)
{
	struct pp_run_id id;

	if (o->seed_given || o->replays)
		return 0;
	if (pp_run_id_draw(&id, err) != 0)
		return -1;
	/* Short enough to be typed. */
	o->seed = (uint64_t)id.bytes[0] << 24 | id.bytes[1] << 16 | id.bytes[2] << 8 | id.bytes[3];
	if (!o->json)
		fprintf(stderr, "seed %" PRIu64 "\n", o->seed);
	return 0;
}

int pp_cmd_simulate(int argc, char **argv)
{
	struct options o = { .drive = "all", .cuts = 1000, .misses = 10,
		.plan = { .workload = PP_WORKLOADS, .kind = -1, .records = 300, .net_delay_ns = -1,
			.net_loss_ns = -1, .survive_pct = 101, .barriers = true, .io_error_pct = 3,
			.paced_control = true, .cuts_a_rig = 12 } };
	struct pp_error err = { 0 };
	bool wrong = false;
	int go, rc = 0;

	if (pp_criterion_parse("95/90", &o.criterion, NULL) != 0)
		return 2;
	go = parse(argc, argv, &o);
	if (go <= 0)
		return go < 0 ? 2 : 0;
	if (o.list) {
		list();
		return fflush(stdout) == 0 ? 0 : 2;
	}
	if (draw_seed(&o, &err) != 0)
		rc = -1;
	if (rc == 0 && o.json)
		printf("{\"format\": 1, \"seed\": %" PRIu64 ", \"%s\": [", o.seed,
			o.campaigns ? "campaigns" : "drives");
	if (rc == 0)
		rc = o.bench ? bench(&o, &err) : each_drive(&o, &wrong, &err);
	if (rc == 0 && o.json)
		puts("]}");
	if (rc != 0)
		fprintf(stderr, "plugpull simulate: %s\n", err.text);
	if (rc != 0 || fflush(stdout) != 0)
		return 2;
	return wrong ? 1 : 0;
}
