/* SPDX-License-Identifier: MIT
 *
 * plugpull campaign PLAN: reads the plan, starts a lab where the plan has one, hands both to the
 * controller, and shows how it goes: one line on a terminal, an event a line elsewhere.
 */
#include "cmd_campaign.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lab_keys.h"
#include "show.h"
#include "src/campaign/controller.h"
#include "src/campaign/dry_run.h"
#include "src/core/text.h"
#include "src/core/tree.h"

enum { OPT_OUT = 256, OPT_CUTS, OPT_RESUME, OPT_DRY_RUN, OPT_EARLIER, OPT_JSON, OPT_JUNIT,
	OPT_HTML, OPT_QUIET, OPT_HELP };

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{ { "out", required_argument, NULL, OPT_OUT }, "DIR",
		"evidence folder (default: the plan's name with .campaign)" },
	{ { "cuts", required_argument, NULL, OPT_CUTS }, "N", "at most N trials of each arm" },
	{ { "resume", no_argument, NULL, OPT_RESUME }, NULL,
		"go on with DIR; what had been cut is judged first" },
	{ { "dry-run", no_argument, NULL, OPT_DRY_RUN }, NULL, "check the plan, touch nothing" },
	{ { "earlier", required_argument, NULL, OPT_EARLIER }, "DIR",
		"an earlier campaign of the same arms: its losses count; may be repeated" },
	{ { "json", no_argument, NULL, OPT_JSON }, NULL, "print the result as JSON" },
	{ { "junit", required_argument, NULL, OPT_JUNIT }, "FILE",
		"write the result as JUnit XML too; -: standard output" },
	{ { "html", required_argument, NULL, OPT_HTML }, "FILE",
		"write the result as a page to read and print too; -: standard output" },
	{ { "quiet", no_argument, NULL, OPT_QUIET }, NULL, "no talk on stderr but errors" },
	{ { "help", no_argument, NULL, OPT_HELP }, NULL, "print this, exit" },
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))

struct run {
	struct pp_plan plan;
	struct pp_campaign_config config;
	struct pp_lab_of_plan lab_config;
	struct pp_lab *lab;
	const char *plan_path;
	char out[4096];
	const char *earlier[16]; /* of the plan, and of --earlier */
	size_t earlier_count;
	struct pp_show show;
	bool dry_run, quiet, terminal, line_shown;
	pthread_mutex_t lock;
};

static volatile sig_atomic_t stop_wanted;
static struct pp_listener *to_wake; /* under wake_lock */
static pthread_mutex_t wake_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- talk --------------------------------------------------------------------------------------- */

static void clear_line(struct run *r)
{
	if (r->line_shown)
		fputs("\r\033[K", stderr);
	r->line_shown = false;
}

static void say(void *ctx, const char *text)
{
	struct run *r = ctx;
	char at[16];
	time_t now = time(NULL);
	struct tm tm;

	if (r->quiet)
		return;
	localtime_r(&now, &tm);
	strftime(at, sizeof(at), "%H:%M:%S", &tm);
	pthread_mutex_lock(&r->lock);
	clear_line(r);
	fprintf(stderr, "%s %s\n", at, text);
	pthread_mutex_unlock(&r->lock);
}

static void progress(void *ctx, const struct pp_progress *p)
{
	struct run *r = ctx;
	char line[256], left[32] = "";

	if (!r->terminal || r->quiet)
		return;
	if (p->left_s >= 0)
		snprintf(left, sizeof(left), ", %lld:%02lld left", (long long)p->left_s / 60,
			(long long)p->left_s % 60);
	snprintf(line, sizeof(line), "cut %u of about %u, %s: %.24s, %.0f acks/s%s", p->cut,
		p->cut + p->cuts_left, p->state, p->arms, p->acks_per_s, left);
	pthread_mutex_lock(&r->lock);
	fprintf(stderr, "\r\033[K%.79s", line);
	r->line_shown = true;
	pthread_mutex_unlock(&r->lock);
}

/* ---- signals: one thread takes them all, so that no call is interrupted anywhere ----------------- */

static void listening(void *ctx, struct pp_listener *listener, uint16_t port)
{
	(void)ctx;
	(void)port;
	pthread_mutex_lock(&wake_lock);
	to_wake = listener;
	pthread_mutex_unlock(&wake_lock);
}

static void *take_signals(void *arg)
{
	sigset_t *set = arg;
	int sig;

	while (sigwait(set, &sig) == 0) {
		stop_wanted = 1;
		fputs("\nplugpull: stopping: the cut in work ends with its outlet on; resume with --resume\n",
			stderr);
		pthread_mutex_lock(&wake_lock);
		if (to_wake)
			pp_listener_wake(to_wake);
		pthread_mutex_unlock(&wake_lock);
	}
	return NULL;
}

static int start_signals(struct pp_error *err)
{
	static sigset_t set;
	pthread_t thread;
	int code;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	code = pthread_create(&thread, NULL, take_signals, &set);
	if (code != 0)
		return pp_fail_os(err, code, "cannot start a thread");
	pthread_detach(thread);
	return 0;
}

/* ---- options ------------------------------------------------------------------------------------ */

static int help(void)
{
	size_t i;

	printf("Usage: plugpull campaign [OPTION]... PLAN\n"
		"Cuts the power of the plan's machine until every arm has its verdict,\n"
		"unattended. It destroys what the plan says it destroys, and cuts the outlets\n"
		"that the plan names.\n"
		"Exit status: 0 every required arm is SAFE, 1 a promise was broken, 2 neither.\n\n");
	for (i = 0; i < OPTIONS; i++)
		printf("  --%s%s%s\n      %s\n", table[i].option.name, table[i].argument ? " " : "",
			table[i].argument ? table[i].argument : "", table[i].help);
	return 0;
}

static int usage(const char *what)
{
	fprintf(stderr, "plugpull campaign: %s\nTry 'plugpull campaign --help'.\n", what);
	return 2;
}

static int set_option(struct run *r, int c)
{
	char *end;
	unsigned long n;

	switch (c) {
	case OPT_OUT:
		if (!pp_text_format(r->out, sizeof(r->out), "%s", optarg))
			return usage("--out is too long");
		break;
	case OPT_CUTS:
		n = strtoul(optarg, &end, 10);
		if (!*optarg || *end || n < 1 || n > 1000000)
			return usage("--cuts takes a whole number from 1 to 1000000");
		r->config.cuts = (uint32_t)n;
		break;
	case OPT_EARLIER:
		if (r->earlier_count == 8)
			return usage("too many --earlier");
		r->earlier[r->earlier_count++] = optarg;
		break;
	case OPT_RESUME: r->config.resume = true; break;
	case OPT_DRY_RUN: r->dry_run = true; break;
	case OPT_JSON: r->show.form = PP_SHOW_JSON; break;
	case OPT_JUNIT: r->show.junit = optarg; break;
	case OPT_HTML: r->show.html = optarg; break;
	case OPT_QUIET: r->quiet = true; break;
	case OPT_HELP: return help();
	default: return usage("unknown option");
	}
	return -1;
}

static int parse(struct run *r, int argc, char **argv)
{
	struct option options[OPTIONS + 1];
	struct pp_error err;
	size_t i;
	int c;

	memset(options, 0, sizeof(options));
	for (i = 0; i < OPTIONS; i++)
		options[i] = table[i].option;
	optind = 1;
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		int status = set_option(r, c);

		if (status >= 0)
			return status;
	}
	if (optind + 1 != argc)
		return usage(optind == argc ? "names no plan" : "takes one plan");
	r->plan_path = argv[optind];
	return pp_show_check(&r->show, &err) == 0 ? -1 : usage(err.text);
}

/* ---- the campaign -------------------------------------------------------------------------------- */

static void name_out(struct run *r)
{
	const char *slash = strrchr(r->plan_path, '/'), *base = slash ? slash + 1 : r->plan_path;
	const char *dot = strrchr(base, '.');

	if (!r->out[0])
		pp_text_format(r->out, sizeof(r->out), "%.*s.campaign",
			(int)(dot && dot != base ? dot - base : (long)strlen(base)), base);
}

/* Before a lab is started for nothing, and its folder left beside somebody else's. */
static int check_out(const struct run *r, struct pp_error *err)
{
	char plan[8300];
	bool there = access(r->out, F_OK) == 0;

	if (!pp_text_format(plan, sizeof(plan), "%s/plan.ini", r->out))
		return pp_fail(err, PP_ERR_USAGE, "--out is too long");
	if (r->config.resume && access(plan, F_OK) != 0)
		return pp_fail(err, PP_ERR_USAGE, "there is no campaign in '%s' to go on with: %s", r->out,
			there ? "it has no plan.ini" : "no such folder; leave --resume away to begin one");
	if (!r->config.resume && there && access(plan, F_OK) != 0)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is there already and is no campaign; name a folder "
			"with --out that is not there yet", r->out);
	if (!r->config.resume && there)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is there already; say --resume to go on with it, or "
			"name another folder with --out", r->out);
	return 0;
}

static void lab_talk(const char *text)
{
	fprintf(stderr, "lab: %s\n", text);
}

/* Images of a lab's drives stay beside the evidence until the campaign is done. */
static int open_lab(struct run *r, struct pp_error *err)
{
	struct pp_lab_info info;

	if (!r->plan.has_lab)
		return 0;
	if (!pp_text_format(r->lab_config.work_dir, sizeof(r->lab_config.work_dir), "%s.lab", r->out))
		return pp_fail(err, PP_ERR_USAGE, "--out is too long");
	r->lab_config.config.work_dir = r->lab_config.work_dir;
	r->lab_config.config.talk = r->quiet ? NULL : lab_talk;
	r->lab = pp_lab_open(&r->lab_config.config, &info, err);
	if (!r->lab)
		return pp_fail_within(err, "lab");
	/* Whoever reads the evidence must not take a lab for a rack. */
	if (!r->plan.note[0])
		pp_text_copy(r->plan.note, sizeof(r->plan.note), "lab: the machine, its drives and its "
			"power switch are simulated");
	return pp_lab_fill_plan(&r->plan, &info, err);
}

static void close_lab(struct run *r, bool done)
{
	struct pp_error err;

	if (!r->lab)
		return;
	pp_lab_close(r->lab);
	r->lab = NULL;
	if (done && pp_tree_remove(r->lab_config.work_dir, &err) != 0)
		fprintf(stderr, "plugpull campaign: %s\n", err.text);
	pp_tree_give_to_sudo_user(r->lab_config.work_dir);
}

static const char *sentence(const struct pp_campaign_result *result)
{
	switch (result->end) {
	case PP_CAMPAIGN_DONE: return NULL;
	case PP_CAMPAIGN_INTERRUPTED: return "interrupted; --resume goes on with it";
	case PP_CAMPAIGN_PAUSED: return "paused";
	}
	return NULL;
}

static int show(struct run *r, const struct pp_campaign_result *result)
{
	char outlet[256], clean[640], where[8240];
	struct pp_report_end end = { .where = where, .outlet = outlet, .policy = result->policy,
		.clean_up = clean };
	const char *folder = r->out;
	int status;

	snprintf(where, sizeof(where), "%s (plugpull judge %s)", r->out, r->out);
	snprintf(outlet, sizeof(outlet), "%s is %s", result->outlet, result->outlet_state);
	if (r->plan.has_lab && result->end == PP_CAMPAIGN_DONE)
		snprintf(clean, sizeof(clean), "nothing is left running; the lab's machine and drives are gone");
	else if (r->plan.has_lab)
		snprintf(clean, sizeof(clean), "nothing is left running; '%.400s.lab', the lab's drives, "
			"stays for --resume", r->out);
	else
		snprintf(clean, sizeof(clean), "on the machine: remove the target ('plugpull.target*', "
			"'plugpull.noise'), and the agent with 'plugpull agent --uninstall'");
	if (sentence(result))
		fprintf(stderr, "plugpull campaign: %s%s%s\n", sentence(result), result->why[0] ? ": " : "",
			result->why);
	r->show.command = "campaign";
	r->show.earlier = r->earlier;
	r->show.earlier_count = r->earlier_count;
	r->show.unsealed = r->show.just_sealed = true;
	r->show.end = &end;
	status = pp_show_folders(&r->show, &folder, 1);
	return status == 0 && result->end != PP_CAMPAIGN_DONE ? 2 : status;
}

static int run_campaign(struct run *r)
{
	struct pp_campaign_result result;
	struct pp_error err;
	int rc;

	if (start_signals(&err) != 0 || check_out(r, &err) != 0 || open_lab(r, &err) != 0) {
		fprintf(stderr, "plugpull campaign: %s\n", err.text);
		close_lab(r, false);
		return 2;
	}
	r->config.plan = &r->plan;
	r->config.plan_path = r->plan_path;
	r->config.out = r->out;
	r->config.stop = &stop_wanted;
	r->config.listening = listening;
	r->config.say = say;
	r->config.progress = progress;
	r->config.ctx = r;
	rc = pp_campaign_run(&r->config, &result, &err);
	listening(NULL, NULL, 0);
	/* Without evidence there is nothing to go on with either. */
	close_lab(r, (rc == 0 && result.end == PP_CAMPAIGN_DONE) || access(r->out, F_OK) != 0);
	clear_line(r);
	pp_tree_give_to_sudo_user(r->out);
	if (rc != 0) {
		fprintf(stderr, "plugpull campaign: %s\n", err.text);
		if (r->plan.has_lab && access(r->out, F_OK) == 0)
			fprintf(stderr, "plugpull campaign: '%s.lab', the lab's drives, stays for --resume\n",
				r->out);
		if (result.outlet[0])
			fprintf(stderr, "plugpull campaign: %s is %s\n", result.outlet, result.outlet_state);
		if (result.policy[0])
			fprintf(stderr, "plugpull campaign: cache policy: %s\n", result.policy);
		return 2;
	}
	return show(r, &result);
}

static void dry_finding(void *ctx, bool problem, const char *text)
{
	const struct run *r = ctx;

	fprintf(stderr, "plugpull campaign: %s: %s%s\n", r->plan_path, problem ? "" : "note: ", text);
}

static int dry_run(struct run *r)
{
	const struct pp_plan *p = &r->plan;
	struct pp_dry_run found;
	char text[300];
	uint32_t i;

	pp_plan_dry_run(p, r->config.cuts, dry_finding, r, &found);
	for (i = 0; p->has_lab && i < p->drives; i++) {
		if (r->lab_config.drives[i].size_bytes >= p->drive[i].size_bytes)
			continue;
		snprintf(text, sizeof(text), "drive '%.64s': size_mib = %llu is more than the lab's drive has",
			p->drive[i].name, (unsigned long long)p->drive[i].size_bytes >> 20);
		dry_finding(r, true, text);
		found.problems++;
	}
	if (found.problems) {
		fprintf(stderr, "plugpull campaign: %s: %u problem%s; nothing was touched\n", r->plan_path,
			found.problems, found.problems == 1 ? "" : "s");
		return 2;
	}
	printf("%s: plan is sound; %u drive%s, criterion %s, about %u cuts; evidence would go to %s\n",
		r->plan_path, p->drives, p->drives == 1 ? "" : "s", p->criterion.text, found.cuts, r->out);
	return 0;
}

int pp_cmd_campaign(int argc, char **argv)
{
	static struct run r;
	struct pp_error err;
	uint32_t i;
	int status;

	memset(&r, 0, sizeof(r));
	pthread_mutex_init(&r.lock, NULL);
	r.terminal = isatty(STDERR_FILENO);
	status = parse(&r, argc, argv);
	if (status >= 0)
		return status;
	if (pp_plan_load(&r.plan, r.plan_path, &err) != 0 ||
		(r.plan.has_lab && pp_lab_of_plan(&r.lab_config, &r.plan, r.plan_path, &err) != 0) ||
		(!r.plan.has_lab && pp_plan_check(&r.plan, &err) != 0)) {
		fprintf(stderr, "plugpull campaign: %s\n", err.text);
		return 2;
	}
	name_out(&r);
	if (pp_show_check_outside(&r.show, r.out, &err) != 0)
		return usage(err.text);
	for (i = 0; i < r.plan.earlier_count; i++)
		r.earlier[r.earlier_count++] = r.plan.earlier[i];
	if (r.dry_run)
		return dry_run(&r);
	return run_campaign(&r);
}
