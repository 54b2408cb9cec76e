/* SPDX-License-Identifier: MIT
 *
 * plugpull matrix: the speed of every way to make a write durable, as our own table, as one JSON
 * object, or in pg_test_fsync's layout, for people and scripts that know that.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd_matrix.h"
#include "src/core/drive.h"
#include "version.h"
#include "writer/matrix.h"

#define DEFAULT_NAME    "plugpull-matrix.tmp"
#define WARM_UP_SECONDS 0.2
#define DEFAULT_PG_NAME "./pg_test_fsync.out"

enum format { FORMAT_TABLE, FORMAT_PG, FORMAT_JSON };

struct options {
	const char *target;
	const char *destroy;
	const char *only[PP_MATRIX_ROWS_MAX];
	size_t only_count;
	unsigned seconds;
	enum format format;
};

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

/* Nobody reads any more: measuring on would only wear the drive. */
static void flush_or_stop(void)
{
	if (fflush(stdout) != 0)
		stop = 1;
}

static const struct {
	struct option option;
	const char *argument, *help;
} table[] = {
	{ { "filename", required_argument, NULL, 'f' }, "FILE",
		"test file, which must not exist; the same as TARGET" },
	{ { "secs-per-test", required_argument, NULL, 's' }, "N", "seconds per test (default 5)" },
	{ { "only", required_argument, NULL, 'o' }, "METHOD", "this method alone; may be repeated" },
	{ { "json", no_argument, NULL, 'j' }, NULL, "one JSON object" },
	{ { "format", required_argument, NULL, 'F' }, "table|pg|json",
		"pg: the tests and the layout of pg_test_fsync" },
	{ { "destroy", required_argument, NULL, 'd' }, "SERIAL",
		"TARGET is the raw device with this serial: its first 16 MB are lost" },
	{ { "version", no_argument, NULL, 'V' }, NULL, "print the version, exit" },
	{ { "help", no_argument, NULL, '?' }, NULL, "print this, exit" },
};
#define OPTIONS (sizeof(table) / sizeof(table[0]))
#define SHORT_OPTIONS ":f:s:o:V?"

static int usage_error(const char *what, const char *subject)
{
	fprintf(stderr, "plugpull matrix: %s '%s'\nTry 'plugpull matrix --help'.\n", what, subject);
	return 2;
}

static int help(void)
{
	size_t i;

	printf("Usage: plugpull matrix [OPTION]... [TARGET]\n"
		"Measures how fast each way to make a write durable is in TARGET: a folder (default: this\n"
		"one), a file that does not exist yet, or, with --destroy, a raw device.\n\n");
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
	if (o->only_count == PP_MATRIX_ROWS_MAX)
		return usage_error("too many methods at", name);
	o->only[o->only_count++] = name;
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
	case 'j':
		o->format = FORMAT_JSON;
		return 0;
	case 'F':
		return take_format(optarg, &o->format);
	case 'd':
		o->destroy = optarg;
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
	if (o->only_count && o->format == FORMAT_PG)
		return usage_error("pg's tests are all or none: no place for", "--only");
	return 0;
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

struct printer {
	unsigned seconds;
	bool header_done;
	char section[16];
	bool direct_refused; /* in the section that is being printed */
};

static void pg_section_end(struct printer *p)
{
	if (p->direct_refused)
		printf("* This file system and its mount options do not support direct\n"
			"  I/O, e.g. ext4 in journaled mode.\n");
	p->direct_refused = false;
}

static void pg_began(void *ctx, const struct pp_matrix_row *row)
{
	struct printer *p = ctx;
	size_t i;

	if (!p->header_done)
		printf("%u second%s per test\n"
			"O_DIRECT supported on this platform for open_datasync and open_sync.\n",
			p->seconds, p->seconds == 1 ? "" : "s");
	p->header_done = true;
	if (strcmp(p->section, row->section) != 0) {
		pg_section_end(p);
		snprintf(p->section, sizeof(p->section), "%s", row->section);
		for (i = 0; i < sizeof(pg_headings) / sizeof(pg_headings[0]); i++)
			if (strcmp(pg_headings[i].section, row->section) == 0)
				fputs(pg_headings[i].heading, stdout);
	}
	printf("        %-30s", row->label);
	flush_or_stop();
}

static void pg_done(void *ctx, const struct pp_matrix_row *row)
{
	struct printer *p = ctx;
	bool direct = row->method[0] != '\0';

	if (row->status == PP_MATRIX_NA) {
		printf("%21s\n", direct ? "n/a*" : "n/a");
		/* As there: the footnote belongs to the tables of methods. */
		p->direct_refused |= direct && strcmp(row->section, "sizes") != 0;
	} else {
		printf("%13.3f ops/sec  %6.0f usecs/op\n", row->ops_per_s,
			(double)row->elapsed_ns / 1e3 / (double)row->ops);
	}
	flush_or_stop();
}

/* ---- our own table --------------------------------------------------------------------------- */

static void duration(double ns, char text[16])
{
	if (ns < 1e4)
		snprintf(text, 16, "%.2f us", ns / 1e3);
	else if (ns < 1e6)
		snprintf(text, 16, "%.1f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(text, 16, "%.2f ms", ns / 1e6);
	else
		snprintf(text, 16, "%.2f s", ns / 1e9);
}

/* Not before the first row: an error is not preceded by half a table. */
static void table_began(void *ctx, const struct pp_matrix_row *row)
{
	struct printer *p = ctx;

	(void)row;
	if (p->header_done)
		return;
	p->header_done = true;
	printf("%-22s  %-7s  %11s  %9s  %9s  %10s\n", "method", "promise", "ops/s", "p50", "p99",
		"flushes/op");
	flush_or_stop();
}

static void table_done(void *ctx, const struct pp_matrix_row *row)
{
	char p50[16], p99[16], flushes[16] = "-";

	(void)ctx;
	if (row->status == PP_MATRIX_NA) {
		printf("%-22s  %-7s  %11s  %s\n", row->label, "n/a", "n/a", row->reason);
	} else {
		duration((double)row->latency_ns_p50, p50);
		duration((double)row->latency_ns_p99, p99);
		if (row->counted && row->flushes_per_op >= 0)
			snprintf(flushes, sizeof(flushes), "%.2f", row->flushes_per_op);
		printf("%-22s  %-7s  %11.1f  %9s  %9s  %10s\n", row->label,
			pp_promise_name(row->promise), row->ops_per_s, p50, p99, flushes);
	}
	flush_or_stop();
}

static void table_footer(const struct pp_matrix *matrix)
{
	const char *warning;
	size_t i;

	printf("\n");
	if (matrix->disk[0])
		printf("flushes as counted by disk %s\n", matrix->disk);
	else
		printf("flushes not counted: %s\n", matrix->no_disk_reason);
	for (i = 0; i < matrix->row_count; i++) {
		warning = pp_matrix_row_warning(&matrix->rows[i]);
		if (warning)
			printf("warning: %s: %s\n", matrix->rows[i].label, warning);
	}
	printf("Speed is no verdict: only a power cut shows whether a promise was kept.\n");
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_value(const struct pp_matrix_field *field, const void *p)
{
	switch (field->kind) {
	case PP_MATRIX_TEXT:
		return json_string(p);
	case PP_MATRIX_U32:
		return json_integer(*(const uint32_t *)p);
	case PP_MATRIX_U64:
		return json_integer(*(const int64_t *)p);
	case PP_MATRIX_DOUBLE:
		return json_real(*(const double *)p);
	case PP_MATRIX_BOOL:
		return json_boolean(*(const bool *)p);
	case PP_MATRIX_PROMISE:
		return json_string(pp_promise_name(*(const enum pp_promise *)p));
	case PP_MATRIX_STATUS:
		return json_string(pp_matrix_status_name(*(const enum pp_matrix_status *)p));
	}
	return NULL;
}

static json_t *json_row(const struct pp_matrix_row *row)
{
	json_t *object = json_object();
	const char *warning = pp_matrix_row_warning(row);
	size_t i;

	for (i = 0; i < pp_matrix_field_count; i++)
		json_object_set_new(object, pp_matrix_fields[i].key, json_value(&pp_matrix_fields[i],
			(const char *)row + pp_matrix_fields[i].at));
	json_object_set_new(object, "warning", warning ? json_string(warning) : json_null());
	return object;
}

static int print_json(const struct options *o, const char *path, const struct pp_matrix *matrix)
{
	json_t *rows = json_array();
	json_t *whole;
	size_t i;
	int rc;

	for (i = 0; i < matrix->row_count; i++)
		json_array_append_new(rows, json_row(&matrix->rows[i]));
	whole = json_pack("{s:i, s:s, s:s, s:i, s:s, s:s, s:b, s:i, s:o}", "format", 1, "version",
		PP_VERSION, "target", path, "seconds_per_test", (int)o->seconds, "disk", matrix->disk,
		"no_disk_reason", matrix->no_disk_reason, "direct_works", (int)matrix->direct_works,
		"logical_block_bytes", (int)matrix->logical_block_bytes, "rows", rows);
	if (!whole) {
		json_decref(rows);
		return -1;
	}
	rc = json_dumpf(whole, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(10));
	json_decref(whole);
	putchar('\n');
	return rc;
}

/* ---- running --------------------------------------------------------------------------------- */

/* A raw device only where a person named its serial, and nothing of this system is on it. */
static int check_raw(const struct options *o, const char *path, struct pp_error *err)
{
	static struct pp_drive_info info;
	char real[4096], why[256];
	const char *name;

	if (!o->destroy)
		return pp_fail(err, PP_ERR_REFUSED, "'%s' is a device: its first 16 MB would be lost; "
			"name a folder on it, or say --destroy SERIAL", path);
	if (!realpath(path, real))
		return pp_fail_os(err, errno, "cannot resolve '%s'", path);
	name = strrchr(real, '/') + 1;
	if (pp_drive_read(NULL, name, &info, err) != 0)
		return -1;
	if (!pp_drive_is(&info, o->destroy))
		return pp_fail(err, PP_ERR_REFUSED, "serial of '%s' is '%s', not '%s'", path,
			info.serial, o->destroy);
	switch (pp_drive_carries_system(NULL, name, why, sizeof(why), err)) {
	case 0:
		return 0;
	case 1:
		return pp_fail(err, PP_ERR_REFUSED, "'%s' carries this system: %s", path, why);
	default:
		return -1;
	}
}

static int choose_path(const struct options *o, char *path, size_t path_bytes, bool *raw,
	struct pp_error *err)
{
	const char *target = o->target;
	struct stat st;
	int n;

	*raw = false;
	if (!target)
		target = o->format == FORMAT_PG ? DEFAULT_PG_NAME : DEFAULT_NAME;
	if (stat(target, &st) == 0 && S_ISDIR(st.st_mode))
		n = snprintf(path, path_bytes, "%s/%s", target, DEFAULT_NAME);
	else
		n = snprintf(path, path_bytes, "%s", target);
	if (n < 0 || (size_t)n >= path_bytes)
		return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", target);
	if (stat(path, &st) == 0 && S_ISBLK(st.st_mode)) {
		*raw = true;
		return check_raw(o, path, err);
	}
	if (o->destroy)
		return pp_fail(err, PP_ERR_USAGE, "--destroy is for devices, and '%s' is none", path);
	return 0;
}

/* The test file is removed whatever ends us: a closed pipe and a file size limit are errors here. */
static void catch_signals(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

static int run(const struct options *o, const char *path, bool raw, struct pp_matrix *matrix,
	struct pp_error *err)
{
	struct printer printer = { .seconds = o->seconds };
	struct pp_matrix_config config = {
		.path = path,
		.raw = raw,
		.pg = o->format == FORMAT_PG,
		.only = o->only_count ? o->only : NULL,
		.only_count = o->only_count,
		.seconds = o->seconds,
		.warm_up_seconds = o->format == FORMAT_PG ? 0 : WARM_UP_SECONDS,
		.stop = &stop,
		.ctx = &printer,
	};
	int rc;

	if (config.pg) {
		config.began = pg_began;
		config.done = pg_done;
	} else if (o->format == FORMAT_TABLE) {
		config.began = table_began;
		config.done = table_done;
	}
	rc = pp_matrix_run(&config, matrix, err);
	if (rc == 0 && !matrix->stopped && config.pg)
		pg_section_end(&printer);
	return rc;
}

int pp_cmd_matrix(int argc, char **argv)
{
	static struct pp_matrix matrix;
	struct options o = { .seconds = 5 };
	struct pp_error err = { 0 };
	char path[4096];
	bool raw;
	int rc = parse(argc, argv, &o);

	if (rc != 0)
		return rc == 1 ? 0 : 2;
	if (choose_path(&o, path, sizeof(path), &raw, &err) != 0)
		goto failed;
	catch_signals();
	if (run(&o, path, raw, &matrix, &err) != 0)
		goto failed;
	if (matrix.stopped && ferror(stdout)) {
		pp_fail(&err, PP_ERR_SYSTEM, "cannot write the result; '%s' was %s", path,
			raw ? "overwritten" : "removed");
		goto failed;
	}
	if (matrix.stopped) {
		fprintf(stderr, "\nplugpull matrix: stopped; '%s' was %s\n", path,
			raw ? "overwritten" : "removed");
		return 2;
	}
	if (o.format == FORMAT_TABLE)
		table_footer(&matrix);
	if (o.format == FORMAT_JSON && print_json(&o, path, &matrix) != 0) {
		pp_fail(&err, PP_ERR_SYSTEM, "cannot print the result as JSON");
		goto failed;
	}
	if (fflush(stdout) != 0 || ferror(stdout)) {
		pp_fail_os(&err, errno, "cannot write the result");
		goto failed;
	}
	return 0;
failed:
	fprintf(stderr, "plugpull matrix: %s\n", err.text);
	return 2;
}
