/* SPDX-License-Identifier: MIT
 *
 * plugpull matrix: the speed of every way to make a write durable, as our own table, as one JSON
 * object, or in pg_test_fsync's layout, for people and scripts that know that.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_matrix.h"
#include "command.h"
#include "matrix_host.h"
#include "matrix_show.h"
#include "option_table.h"
#include "src/core/drive.h"
#include "src/core/text.h"
#include "version.h"
#include "writer/matrix.h"

#define DEFAULT_NAME    "plugpull-matrix.tmp"
#define WARM_UP_SECONDS 0.2
#define METHODS_MAX     64
#define DEFAULT_PG_NAME "./pg_test_fsync.out"

enum format { FORMAT_TABLE, FORMAT_PG, FORMAT_JSON };

struct options {
	const char *target;
	const char *destroy;
	bool force;
	const char *only[METHODS_MAX];
	size_t only_count;
	struct pp_matrix_axes axes;
	bool axes_given, throughput, no_methods, settle, wide;
	uint64_t size_bytes;
	unsigned compressible;
	unsigned seconds;
	enum format format;
};

static volatile sig_atomic_t stop;

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{ { "filename", required_argument, NULL, 'f' }, "FILE",
		"test file, must not exist; the same as TARGET" },
	{ { "secs-per-test", required_argument, NULL, 's' }, "N", "seconds per test (default 5)" },
	{ { "duration", required_argument, NULL, 'D' }, "N|auto",
		"the same; auto ends a test once its median\n"
		"                               is stable (30 s at most)" },
	{ { "only", required_argument, NULL, 'o' }, "METHOD", "this method alone; may be repeated" },
	{ { "workload", required_argument, NULL, 'w' }, "LIST",
		"of overwrite, fallocated, append, create;\n"
		"                               or all (default: overwrite)" },
	{ { "block", required_argument, NULL, 'b' }, "LIST", "bytes a write, as 512,4k,64k (default 8k)" },
	{ { "threads", required_argument, NULL, 't' }, "LIST",
		"that sync at the same time, as 1,4,16 (default 1)" },
	{ { "throughput", no_argument, NULL, 'T' }, NULL, "MB/s too: sequential, random, write, read" },
	{ { "no-methods", no_argument, NULL, 'N' }, NULL, "without the methods: throughput alone" },
	{ { "size", required_argument, NULL, 'S' }, "BYTES", "throughput's file, as 4G (default 256M)" },
	{ { "compressible", required_argument, NULL, 'c' }, "PERCENT", "of its data (default 0)" },
	{ { "wide", no_argument, NULL, 'W' }, NULL, "more columns: FUA, writes, percentiles, variation" },
	{ { "json", no_argument, NULL, 'j' }, NULL, "one JSON object" },
	{ { "format", required_argument, NULL, 'F' }, "table|pg|json",
		"pg: the tests and the layout of pg_test_fsync" },
	{ { "destroy", required_argument, NULL, 'd' }, "SERIAL",
		"TARGET is the raw device with this serial: its\n"
		"                               first 16 MB (with --throughput: SIZE) are lost" },
	{ { "force", no_argument, NULL, 'X' }, NULL, "with --destroy: also what holds data" },
	{ { "version", no_argument, NULL, 'V' }, NULL, "print the version, exit" },
	{ { "help", no_argument, NULL, '?' }, NULL, "print this, exit" },
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))
#define SHORT_OPTIONS ":f:s:o:V?"

static int usage_error(const char *what, const char *subject)
{
	return pp_usage_error("matrix", what, subject);
}

static int help(void)
{
	size_t i;

	printf("Usage: plugpull matrix [OPTION]... [TARGET]\n"
		"Measures how fast each way to make a write durable is in TARGET: a folder\n"
		"(default: this one), a file that does not exist yet, or, with --destroy, a raw\n"
		"device.\n\n");
	for (i = 0; i < OPTIONS; i++) {
		char left[64], dash[8] = "   ";
		int c = table[i].option.val;

		if (strchr(SHORT_OPTIONS, c))
			snprintf(dash, sizeof(dash), "-%c,", c);
		snprintf(left, sizeof(left), "%s --%s%s%s", dash, table[i].option.name,
			table[i].argument ? " " : "", table[i].argument ? table[i].argument : "");
		printf("  %-28s %s\n", left, table[i].help);
	}
	printf("\nExit status: 0 measured, 2 could not.\n");
	return 0;
}

/* ---- options --------------------------------------------------------------------------------- */

static int take_seconds(const char *text, unsigned *seconds)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || value < 1 || value > 1000000)
		return usage_error("seconds per test must be a number from 1 to 1000000, not", text);
	*seconds = (unsigned)value;
	return 0;
}

static int take_format(const char *text, enum format *format)
{
	static const char *const names[] = {
		[FORMAT_TABLE] = "table", [FORMAT_PG] = "pg", [FORMAT_JSON] = "json",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i], text) == 0) {
			*format = (enum format)i;
			return 0;
		}
	}
	return usage_error("there is no format", text);
}

static int take_only(const char *name, struct options *o)
{
	if (!pp_method_find(name))
		return usage_error("there is no method", name);
	if (o->only_count == METHODS_MAX)
		return usage_error("too many methods at", name);
	o->only[o->only_count++] = name;
	return 0;
}

/* A number with k, M or G behind it; 0 if it is none. */
static uint64_t size_of(const char *text)
{
	static const struct { char letter; int shift; } suffixes[] = {
		{ '\0', 0 }, { 'k', 10 }, { 'K', 10 }, { 'M', 20 }, { 'G', 30 },
	};
	char *end;
	unsigned long long value;
	size_t i;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	value = strtoull(text, &end, 10);
	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (*end == suffixes[i].letter && (!*end || !end[1]) && !errno &&
			value <= UINT64_MAX >> 32)
			return value << suffixes[i].shift;
	return 0;
}

/* A list's items, split at commas; text is changed. */
static int each(char *text, struct options *o, int (*take)(const char *item, struct options *o))
{
	char *item = text, *comma;

	o->axes_given = true;
	for (; item; item = comma) {
		comma = strchr(item, ',');
		if (comma)
			*comma++ = '\0';
		if (take(item, o) != 0)
			return 2;
	}
	return 0;
}

static int take_block(const char *item, struct options *o)
{
	uint64_t bytes = size_of(item);

	if (bytes == 0 || bytes > UINT32_MAX || o->axes.blocks == PP_MATRIX_AXIS_MAX)
		return usage_error("block is no size, or one too many:", item);
	o->axes.block_bytes[o->axes.blocks++] = (uint32_t)bytes;
	return 0;
}

static int take_threads(const char *item, struct options *o)
{
	uint64_t threads = size_of(item);

	if (threads == 0 || threads > PP_MATRIX_THREADS_MAX ||
		o->axes.thread_counts == PP_MATRIX_AXIS_MAX)
		return usage_error("threads must be 1 to 64, and not too many of them:", item);
	o->axes.threads[o->axes.thread_counts++] = (uint32_t)threads;
	return 0;
}

static int take_workload(const char *item, struct options *o)
{
	static const enum pp_workload all[] = { PP_OVERWRITE, PP_FALLOCATED, PP_APPEND, PP_CREATE };
	bool every = strcmp(item, "all") == 0;
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!every && strcmp(item, pp_workload_name(all[i])) != 0)
			continue;
		if (o->axes.workloads == PP_MATRIX_AXIS_MAX)
			return usage_error("one too many:", item);
		o->axes.workload[o->axes.workloads++] = all[i];
		if (!every)
			return 0;
	}
	return every ? 0 : usage_error("the matrix has no workload", item);
}

static int take_duration(const char *text, struct options *o)
{
	o->settle = strcmp(text, "auto") == 0;
	if (!o->settle)
		return take_seconds(text, &o->seconds);
	o->seconds = PP_MATRIX_AUTO_SECONDS_MAX;
	return 0;
}

static int take_size(const char *text, struct options *o)
{
	o->size_bytes = size_of(text);
	return o->size_bytes ? 0 : usage_error("no size such as 256M:", text);
}

static int take_compressible(const char *text, struct options *o)
{
	char *end;
	long percent = strtol(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || percent > 100)
		return usage_error("compressible must be 0 to 100 per cent, not", text);
	o->compressible = (unsigned)percent;
	return 0;
}

static int take_target(const char *text, struct options *o)
{
	if (o->target)
		return usage_error("a second target", text);
	o->target = text;
	return 0;
}

static int take_option(int c, struct options *o, char **argv)
{
	switch (c) {
	case 'f':
		return take_target(optarg, o);
	case 's':
		return take_seconds(optarg, &o->seconds);
	case 'o':
		return take_only(optarg, o);
	case 'D':
		return take_duration(optarg, o);
	case 'w':
		return each(optarg, o, take_workload);
	case 'b':
		return each(optarg, o, take_block);
	case 't':
		return each(optarg, o, take_threads);
	case 'T':
		o->throughput = true;
		return 0;
	case 'N':
		o->no_methods = o->throughput = true;
		return 0;
	case 'S':
		return take_size(optarg, o);
	case 'c':
		return take_compressible(optarg, o);
	case 'W':
		o->wide = true;
		return 0;
	case 'j':
		o->format = FORMAT_JSON;
		return 0;
	case 'F':
		return take_format(optarg, &o->format);
	case 'd':
		o->destroy = optarg;
		return 0;
	case 'X':
		o->force = true;
		return 0;
	case ':':
		return usage_error("no value for", argv[optind - 1]);
	default:
		return usage_error("unknown option", argv[optind - 1]);
	}
}

/* 0: go on; 1: asked for help or version, answered; 2: usage error. */
static int parse(int argc, char **argv, struct options *o)
{
	struct option longs[OPTIONS + 1] = { 0 };
	size_t i;
	int c, rc;

	for (i = 0; i < OPTIONS; i++)
		longs[i] = table[i].option;
	optind = 1;
	opterr = 0;
	while ((c = getopt_long(argc, argv, SHORT_OPTIONS, longs, NULL)) != -1) {
		/* getopt(3) says '?' for an unknown option too; only then optopt is set. */
		if (c == '?' && (optopt == 0 || optopt == '?')) {
			const char *word = argv[optind - 1];

			if (strcmp(word, "-?") != 0 && strncmp(word, "--h", 3) != 0)
				return usage_error("unknown option", word);
			help();
			return 1;
		}
		if (c == 'V') {
			printf("plugpull matrix (plugpull) %s\n", PP_VERSION);
			return 1;
		}
		rc = take_option(c, o, argv);
		if (rc != 0)
			return rc;
	}
	for (; optind < argc; optind++)
		if (take_target(argv[optind], o) != 0)
			return 2;
	if ((o->only_count || o->axes_given || o->throughput || o->settle || o->wide) &&
		o->format == FORMAT_PG)
		return usage_error("pg's tests are all or none: no place for", o->only_count ? "--only"
			: o->axes_given ? "--workload, --block or --threads" : o->throughput ? "--throughput"
			: o->wide ? "--wide" : "--duration auto");
	return 0;
}

/* ---- running --------------------------------------------------------------------------------- */

/* A raw device only where a person named its serial, and nothing of this system is on it. */
static int check_raw(const struct options *o, const char *path, struct pp_error *err)
{
	static struct pp_drive_info info;
	char name[PP_DRIVE_NAME_BYTES], why[256];

	if (!o->destroy)
		return pp_fail(err, PP_ERR_REFUSED, "'%s' is a device: its first 16 MB would be lost; "
			"name a folder on it, or say --destroy SERIAL", path);
	if (pp_matrix_host_disk(path, name, sizeof(name), err) != 0 ||
		pp_drive_read(NULL, name, &info, err) != 0)
		return -1;
	if (!pp_drive_is(&info, o->destroy))
		return pp_fail(err, PP_ERR_REFUSED, "serial of '%s' is '%s', not '%s'", path,
			info.serial, o->destroy);
	switch (pp_drive_carries_system(NULL, name, why, sizeof(why), err)) {
	case 0:
		break;
	case 1:
		return pp_fail(err, PP_ERR_REFUSED, "'%s' carries this system: %s", path, why);
	default:
		return -1;
	}
	if (o->force)
		return 0;
	if (pp_target_signatures(path, why, sizeof(why), err) != 0)
		return -1;
	if (why[0])
		return pp_fail(err, PP_ERR_REFUSED, "'%s' holds data (%s): if it may be lost, add --force",
			path, why);
	return 0;
}

static int choose_path(const struct options *o, char *path, size_t path_bytes, bool *raw,
	struct pp_error *err)
{
	const char *target = o->target;
	int n;

	*raw = false;
	if (!target)
		target = o->format == FORMAT_PG ? DEFAULT_PG_NAME : DEFAULT_NAME;
	if (pp_matrix_host_place(target) == PP_MATRIX_PLACE_FOLDER)
		n = snprintf(path, path_bytes, "%s/%s", target, DEFAULT_NAME);
	else
		n = snprintf(path, path_bytes, "%s", target);
	if (n < 0 || (size_t)n >= path_bytes)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", target);
	if (pp_matrix_host_place(path) == PP_MATRIX_PLACE_DEVICE) {
		*raw = true;
		return check_raw(o, path, err);
	}
	if (o->destroy)
		return pp_fail(err, PP_ERR_USAGE, "--destroy is for devices, and '%s' is none", path);
	if (o->force)
		return pp_fail(err, PP_ERR_USAGE, "--force is for devices, and '%s' is none", path);
	return 0;
}

static int run(const struct options *o, const char *path, const struct pp_target *target, bool raw,
	struct pp_matrix *matrix, struct pp_error *err)
{
	struct pp_matrix_printer printer = { .seconds = o->seconds, .wide = o->wide, .stop = &stop,
		.axes = o->axes_given };
	struct pp_matrix_config config = {
		.path = path,
		.target = target,
		.raw = raw,
		.pg = o->format == FORMAT_PG,
		.only = o->only_count ? o->only : NULL,
		.only_count = o->only_count,
		.axes = o->axes,
		.no_methods = o->no_methods,
		.throughput = o->throughput,
		.throughput_bytes = o->size_bytes,
		.compressible = o->compressible,
		.seconds = o->seconds,
		.settle = o->settle,
		.warm_up_seconds = o->format == FORMAT_PG ? 0 : WARM_UP_SECONDS,
		.stop = &stop,
		.ctx = &printer,
	};
	int rc;

	if (config.pg) {
		config.began = pp_matrix_pg_began;
		config.done = pp_matrix_pg_done;
	} else if (o->format == FORMAT_TABLE) {
		config.began = pp_matrix_table_began;
		config.done = pp_matrix_table_done;
	}
	rc = pp_matrix_run(&config, matrix, err);
	if (rc == 0 && !matrix->stopped && config.pg)
		pp_matrix_pg_end(&printer);
	return rc;
}

/* What is printed once all is measured. */
static int finish(const struct options *o, const char *path, const struct pp_matrix *matrix,
	struct pp_error *err)
{
	struct pp_matrix_facts facts = { .path = path, .seconds = o->seconds, .settle = o->settle,
		.compressible = o->compressible };
	char *json;

	if (o->format == FORMAT_TABLE)
		return pp_matrix_table_end(matrix, err);
	if (o->format != FORMAT_JSON)
		return 0;
	json = pp_matrix_json(&facts, matrix);
	if (!json)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot print the result as JSON");
	puts(json);
	free(json);
	return 0;
}

int pp_cmd_matrix(int argc, char **argv)
{
	static struct pp_matrix matrix;
	struct options o = { .seconds = 5 };
	struct pp_error err = { 0 };
	const struct pp_target *target = NULL;
	char path[4096];
	bool raw;
	int rc = parse(argc, argv, &o);

	if (rc != 0)
		return rc == 1 ? 0 : 2;
	if (choose_path(&o, path, sizeof(path), &raw, &err) != 0)
		goto failed;
	if (raw)
		target = pp_matrix_host_claim(o.destroy, &rc, &err);
	if (rc != 0)
		goto failed;
	pp_matrix_host_catch(&stop);
	if (run(&o, path, target, raw, &matrix, &err) != 0)
		goto failed;
	if (matrix.stopped && ferror(stdout)) {
		pp_fail(&err, PP_ERR_SYSTEM, "cannot write the result; '%s' was %s", path,
			raw ? "overwritten" : "removed");
		goto failed;
	}
	if (matrix.stopped) {
		fprintf(stderr, "\n%s matrix: stopped; '%s' was %s\n", pp_program_name(), path,
			raw ? "overwritten" : "removed");
		return 2;
	}
	if (finish(&o, path, &matrix, &err) != 0)
		goto failed;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		pp_fail_os(&err, errno, "cannot write the result");
		goto failed;
	}
	return 0;
failed:
	fprintf(stderr, "%s matrix: %s\n", pp_program_name(), err.text);
	return 2;
}
