/* SPDX-License-Identifier: MIT
 *
 * Writes the plan that a person would have written for profile by-hand, and hands it to `campaign`. The
 * plan stays, beside the evidence: it is what --resume goes on with.
 */
#include "cmd_listen.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd_campaign.h"
#include "src/core/buf.h"
#include "src/core/file.h"
#include "src/core/text.h"

static const char usage[] =
	"Usage: plugpull listen [OPTION]... SERIAL [FOLDER|uuid:FSUUID]\n"
	"Listens for a machine whose plug a person pulls, says when to pull it, and\n"
	"judges. On the machine: 'plugpull-dut write --to THIS_HOST SERIAL' (or the\n"
	"folder), and after each boot 'plugpull-dut verify --from THIS_HOST' with the\n"
	"same. Without FOLDER or UUID it writes to the whole drive: DATA THERE IS\n"
	"DESTROYED, and --destroy must say so.\n"
	"Exit status: 0 every required arm is SAFE, 1 a promise was broken, 2 neither.\n"
	"\n"
	"      --address IP:PORT   where to listen (default: 0.0.0.0:7333)\n"
	"      --key FILE          the shared key, see 'plugpull key' (plugpull.key)\n"
	"      --method LIST       as methods in a plan (default: fdatasync)\n"
	"      --criterion C/R     confidence/reliability in per cent (default: 95/50:\n"
	"                          5 clean cuts)\n"
	"      --cuts N            at most N cuts with each method\n"
	"      --size-mib N        of the target (default: 256)\n"
	"      --destroy SERIAL    the drive's serial again: all of it may go\n"
	"      --out DIR           evidence folder (default: by-hand.campaign)\n"
	"      --resume            go on with DIR\n"
	"      --help              show this\n";

struct choice {
	const char *address, *key, *method, *criterion, *cuts, *size_mib, *destroy, *serial, *where;
	char out[4000], plan[4096];
	bool resume;
};

static int hint(const char *what)
{
	fprintf(stderr, "plugpull listen: %s; try 'plugpull listen --help'\n", what);
	return 2;
}

/* -1: go on; else the exit status. */
static int parse(struct choice *o, int argc, char **argv)
{
	static const struct option options[] = {
		{ "address", required_argument, NULL, 'a' }, { "key", required_argument, NULL, 'k' },
		{ "method", required_argument, NULL, 'm' }, { "criterion", required_argument, NULL, 'c' },
		{ "cuts", required_argument, NULL, 'n' }, { "size-mib", required_argument, NULL, 's' },
		{ "destroy", required_argument, NULL, 'd' }, { "out", required_argument, NULL, 'o' },
		{ "resume", no_argument, NULL, 'r' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	int c;

	optind = 1;
	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (c) {
		case 'a': o->address = optarg; break;
		case 'k': o->key = optarg; break;
		case 'm': o->method = optarg; break;
		case 'c': o->criterion = optarg; break;
		case 'n': o->cuts = optarg; break;
		case 's': o->size_mib = optarg; break;
		case 'd': o->destroy = optarg; break;
		case 'r': o->resume = true; break;
		case 'o':
			if (!*optarg || !pp_text_format(o->out, sizeof(o->out), "%s", optarg))
				return hint("--out is empty or too long");
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return hint("bad option");
		}
	}
	if (argc - optind > 2)
		return hint("takes a serial and, perhaps, a folder or uuid:FSUUID");
	if (optind < argc)
		o->serial = argv[optind++];
	if (optind < argc)
		o->where = argv[optind];
	if (o->resume && o->serial)
		return hint("--resume goes on with what the plan says: name no target");
	if (!o->resume && !o->serial)
		return hint("names no drive ('plugpull identify' on the machine prints its serial)");
	return -1;
}

/* A line of the plan; what is more than one line would be more than one key. */
static int add_key(struct pp_buf *plan, const char *key, const char *value)
{
	if (!value)
		return 0;
	if (strpbrk(value, "\n\r"))
		return hint("an argument has more than one line");
	pp_buf_addf(plan, "%s = %s\n", key, value);
	return 0;
}

static int add_drive(const struct choice *o, struct pp_buf *plan)
{
	bool uuid = o->where && strncmp(o->where, "uuid:", 5) == 0;
	int bad = add_key(plan, "serial", o->serial);

	if (!o->where)
		pp_buf_addf(plan, "target = raw\n");
	else
		bad |= add_key(plan, uuid ? "uuid" : "path", uuid ? o->where + 5 : o->where);
	return bad | add_key(plan, "destroy", o->destroy) | add_key(plan, "size_mib", o->size_mib);
}

static int write_plan(const struct choice *o)
{
	struct pp_buf plan;
	struct pp_error err;
	int bad;

	if (access(o->plan, F_OK) == 0) {
		fprintf(stderr, "plugpull listen: '%s' is there already: say --resume to go on with it, or "
			"name another folder with --out\n", o->plan);
		return 2;
	}
	pp_buf_init(&plan, 1U << 16);
	pp_buf_addf(&plan, "; written by plugpull listen\n[campaign]\nname = by hand\n");
	bad = add_key(&plan, "criterion", o->criterion) | add_key(&plan, "cuts", o->cuts);
	pp_buf_addf(&plan, "[machine]\nboot_deadline_s = 600\n");
	bad |= add_key(&plan, "key", o->key) | add_key(&plan, "listen", o->address);
	pp_buf_addf(&plan, "[pdu]\nprofile = by-hand\n[drive by-hand]\n");
	bad |= add_drive(o, &plan);
	pp_buf_addf(&plan, "[arms]\n");
	bad |= add_key(&plan, "methods", o->method);
	if (!bad && pp_file_write(o->plan, plan.data, plan.bytes, 0644, &err) != 0) {
		fprintf(stderr, "plugpull listen: %s\n", err.text);
		bad = 2;
	}
	pp_buf_release(&plan);
	return bad ? 2 : 0;
}

int pp_cmd_listen(int argc, char **argv)
{
	struct choice o = { .address = "0.0.0.0:7333", .key = "plugpull.key", .method = "fdatasync",
		.criterion = "95/50", .out = "by-hand.campaign" };
	char *words[6] = { (char *)"campaign", (char *)"--out", o.out, o.plan, NULL, NULL };
	int status = parse(&o, argc, argv), n = 4;

	if (status >= 0)
		return status;
	pp_text_format(o.plan, sizeof(o.plan), "%s.ini", o.out);
	if (o.resume)
		words[n++] = (char *)"--resume";
	else if (write_plan(&o) != 0)
		return 2;
	status = pp_cmd_campaign(n, words);
	/* What never came to a campaign leaves nothing in the way of the next try. */
	if (!o.resume && access(o.out, F_OK) != 0)
		unlink(o.plan);
	return status;
}
