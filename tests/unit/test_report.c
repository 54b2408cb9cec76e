/* SPDX-License-Identifier: MIT
 *
 * Goal: the report says what the verdict says, in 80 columns that never shift, in ASCII, with SAFE's
 * colour and column for SAFE alone (M8.6); JSON and CSV are the same figures, byte for byte the same
 * each time. Method: arms made by hand, one golden text, and properties that must hold for hostile
 * names and huge figures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verifier/report.h"

#define ARMS_MAX 16

struct made {
	struct pp_verdict verdict;
	struct pp_verdict_arm arms[ARMS_MAX];
	struct pp_verdict_reason reasons[ARMS_MAX][8];
};

static void made_init(struct made *made)
{
	memset(made, 0, sizeof(*made));
	assert_int_equal(pp_criterion_parse("95/90", &made->verdict.criterion, NULL), 0);
	made->verdict.clean_cuts_needed = 29;
	made->verdict.arms = made->arms;
}

static struct pp_verdict_arm *add_arm(struct made *made, const char *method,
	enum pp_promise promise, enum pp_arm_verdict verdict)
{
	struct pp_verdict_arm *arm = &made->arms[made->verdict.arm_count];
	struct pp_arm_key *key = &arm->key;

	assert_true(made->verdict.arm_count < ARMS_MAX);
	arm->reasons = made->reasons[made->verdict.arm_count++];
	snprintf(key->serial, sizeof(key->serial), "SER1");
	snprintf(key->model, sizeof(key->model), "Fast SSD");
	snprintf(key->firmware, sizeof(key->firmware), "1.2");
	snprintf(key->method, sizeof(key->method), "%s", method);
	snprintf(key->workload, sizeof(key->workload), "overwrite");
	snprintf(key->target, sizeof(key->target), "raw");
	snprintf(key->policy, sizeof(key->policy), "write back, fua");
	snprintf(key->kernel, sizeof(key->kernel), "6.18");
	snprintf(key->cut_kind, sizeof(key->cut_kind), "mains");
	key->lanes = key->group = 1;
	key->record_bytes = 8192;
	arm->promise = promise;
	arm->verdict = verdict;
	arm->required = promise == PP_PROMISE_MEDIA;
	arm->lost_age_ns_min = arm->lost_age_ns_max = -1;
	arm->loss_bound_95 = 1.0;
	return arm;
}

static void add_reason(struct pp_verdict_arm *arm, bool blocks, const char *text)
{
	struct pp_verdict_reason *reason = &arm->reasons[arm->reason_count++];

	reason->blocks = blocks;
	snprintf(reason->text, sizeof(reason->text), "%s", text);
}

static const struct pp_speed_row speed[] = {
	{ "SER1", "fdatasync", "overwrite", 2160.4, 451000, 1830000, 1.0, "" },
	{ "SER1", "open_datasync (direct)", "overwrite", 33724.25, 30000, 51000, 0.0, "" },
	{ "SER1", "write", "overwrite", 912345.0, 900, 2100, -1.0, "" },
	{ "SER2", "fsync", "overwrite", 8.25, 120000000, 2500000000, 1.0, "" },
};

/* One arm of each verdict. */
static void fill(struct made *made)
{
	struct pp_verdict_arm *arm;

	made_init(made);
	arm = add_arm(made, "write", PP_PROMISE_NONE, PP_ARM_LOSES);
	arm->control = true;
	arm->cuts_loss = 3;
	arm->records_acked = 66204;
	arm->records_lost = arm->lost[PP_LOSS_STALE] = 36;
	arm->lost_age_ns_min = 1200000;
	arm->lost_age_ns_max = 45000000;
	add_reason(arm, false, "3 of 3 cuts (at least 36.8 % a cut, 95 %)");
	arm = add_arm(made, "open_datasync (direct)", PP_PROMISE_MEDIA, PP_ARM_UNSAFE);
	arm->cuts_clean = 28;
	arm->cuts_loss = 1;
	arm->cuts_void = 2;
	arm->records_acked = 640000;
	arm->records_lost = 12;
	arm->lost[PP_LOSS_STALE] = 10;
	arm->lost[PP_LOSS_TORN] = 2;
	arm->loss_bound_95 = pp_stats_bound_upper(1, 29, 0.95);
	add_reason(arm, true, "1 of 29 cuts (at least 0.2 % a cut, 95 %)");
	add_reason(arm, false, "void: died before the cut (2)");
	arm = add_arm(made, "fdatasync", PP_PROMISE_MEDIA, PP_ARM_SAFE);
	arm->cuts_clean = 29;
	arm->records_acked = 640000;
	arm->loss_bound_95 = pp_stats_bound_upper(0, 29, 0.95);
	arm->control_lost = arm->control_cuts = 3;
	arm = add_arm(made, "fsync", PP_PROMISE_MEDIA, PP_ARM_INCONCLUSIVE);
	arm->cuts_clean = 5;
	arm->cuts_open = 1;
	arm->records_acked = 9999;
	arm->loss_bound_95 = pp_stats_bound_upper(1, 6, 0.95);
	add_reason(arm, true, "open, to be scanned or resolved: cut 70 (no-boot), and then a long line "
		"that has to be broken somewhere");
	arm = add_arm(made, "syncfs", PP_PROMISE_NA, PP_ARM_NA);
	add_reason(arm, true, "does nothing on this kind of target");
}

static char *render(const struct made *made, bool colour,
	int (*form)(const struct pp_report_input *, struct pp_buf *, struct pp_error *))
{
	static const struct pp_report_end end = { .where = "ssd.campaign/report.html",
		.outlet = "outlet 3 of rack-7 is on", .clean_up = "rm /mnt/plugpull.target" };
	struct pp_report_input input = { .verdict = &made->verdict, .speed = speed,
		.speed_count = sizeof(speed) / sizeof(speed[0]), .end = &end, .colour = colour };
	struct pp_error err = { 0 };
	struct pp_buf out;

	pp_buf_init(&out, 1 << 20);
	if (form(&input, &out, &err) != 0)
		fail_msg("%s", err.text);
	return out.data;
}

static void test_golden_text(void **state)
{
	static const char golden[] =
#include "report_golden.h"
		;
	struct made *made = calloc(1, sizeof(*made));
	char *text;

	(void)state;
	fill(made);
	text = render(made, false, pp_report_text);
	assert_string_equal(text, golden);
	free(text);
	free(made);
}

/* No line is wider than 80 columns, none has anything but printable ASCII, none ends in blanks. */
static void check_lines(const char *text)
{
	const char *at = text;

	while (*at) {
		size_t length = strcspn(at, "\n"), i;

		if (length > 80)
			fail_msg("%zu columns: %.*s", length, (int)length, at);
		for (i = 0; i < length; i++)
			if (at[i] < ' ' || at[i] > '~')
				fail_msg("byte 0x%02x in: %.*s", (unsigned char)at[i], (int)length, at);
		assert_true(length == 0 || at[length - 1] != ' ');
		assert_int_equal(at[length], '\n');
		at += length + 1;
	}
}

/* The verdict of every row begins in the column in which the heading does. */
static void check_columns(const char *text, const char *word)
{
	const char *heading = strstr(text, " verdict\n"), *hit, *line;
	const char *end = strstr(text, "\nc/l/v/o:");
	long column;
	int hits = 0;

	assert_non_null(heading);
	for (line = heading; line > text && line[-1] != '\n'; line--)
		;
	column = heading - line;
	for (hit = text; (hit = strstr(hit, word)) && hit < end; hit++) {
		if (hit[strlen(word)] != '\n')
			continue;
		for (line = hit; line > text && line[-1] != '\n'; line--)
			;
		if (hit - line != column)
			fail_msg("shifted: %.90s", line);
		hits++;
	}
	assert_true(hits > 0);
}

static void test_hostile_names_and_figures_do_not_shift(void **state)
{
	static const char *const names[] = { "fsync", "open_datasync (direct)",
		"a_method_of_twenty_three", "sync_file_range(7) and then some words that go on and on, far "
		"beyond the line, more", "", "\033[31mred\xff\n\t", };
	struct made *made = calloc(1, sizeof(*made));
	struct pp_verdict_arm *arm;
	char *text;
	size_t i;

	(void)state;
	made_init(made);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		arm = add_arm(made, names[i], PP_PROMISE_MEDIA, PP_ARM_INCONCLUSIVE);
		arm->records_acked = i % 2 ? UINT64_MAX : 10000;
		arm->records_lost = i % 2 ? 99999999 : 9999;
		arm->lost[PP_LOSS_BLANK] = arm->records_lost;
		arm->lost_age_ns_min = 0;
		arm->lost_age_ns_max = INT64_MAX;
		arm->cuts_clean = i % 2 ? UINT32_MAX : 1;
		arm->cuts_loss = arm->cuts_void = arm->cuts_open = i % 3 ? UINT32_MAX : 7;
		arm->loss_bound_95 = i % 2 ? 1e-9 : 0.99951;
		memset(arm->key.mount_options, 'o', 250);
		memset(arm->key.model, i % 2 ? 'M' : '\x80', PP_TEXT_SHORT - 1);
		add_reason(arm, true, "awordthatislongerthananylineofthereportcouldeverbeandstilldoesnot"
			"wanttoend_it_goes_on_and_on_and_on_and_on \x1b[2J end");
	}
	text = render(made, false, pp_report_text);
	check_lines(text);
	check_columns(text, " INCONCLUSIVE");
	assert_non_null(strstr(text, "\na_method_of_twenty_three\n   "));
	assert_non_null(strstr(text, "  * c/l/v/o: 4294967295/4294967295/4294967295/4294967295\n"));
	free(text);
	free(made);
}

static void strip_colour(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\033') {
			text = strchr(text, 'm');
			continue;
		}
		*to++ = *text;
	}
	*to = '\0';
}

/* M8.6: the colours of SAFE and UNSAFE are theirs alone; without a terminal there is none. */
static void test_colour(void **state)
{
	struct made *made = calloc(1, sizeof(*made));
	char *plain, *coloured;

	(void)state;
	fill(made);
	plain = render(made, false, pp_report_text);
	coloured = render(made, true, pp_report_text);
	assert_null(strchr(plain, '\033'));
	assert_non_null(strstr(coloured, " \033[32mSAFE\033[0m\n"));
	assert_non_null(strstr(coloured, " \033[1;31mUNSAFE\033[0m\n"));
	assert_non_null(strstr(coloured, " LOSES\n"));
	assert_non_null(strstr(coloured, " N/A\n"));
	strip_colour(coloured);
	assert_string_equal(coloured, plain);
	check_lines(plain);
	check_columns(plain, " SAFE");
	check_columns(plain, " UNSAFE");
	free(plain);
	free(coloured);
	/* A control that nobody could judge is not painted either: it has no verdict to await. */
	made_init(made);
	add_arm(made, "write", PP_PROMISE_NONE, PP_ARM_INCONCLUSIVE);
	add_arm(made, "direct", PP_PROMISE_NONE, PP_ARM_KEEPS);
	coloured = render(made, true, pp_report_text);
	assert_null(strchr(coloured, '\033'));
	assert_non_null(strstr(coloured, "bound result\n"));
	assert_null(strstr(coloured, "bound verdict\n"));
	free(coloured);
	free(made);
}

/* One table a drive, controls below the arms that promise, whatever the order of the arms. */
static void test_tables(void **state)
{
	struct made *made = calloc(1, sizeof(*made));
	struct pp_verdict_arm *arm;
	char *text;

	(void)state;
	fill(made);
	arm = add_arm(made, "fsync", PP_PROMISE_MEDIA, PP_ARM_SAFE);
	snprintf(arm->key.serial, sizeof(arm->key.serial), "SER2");
	arm = add_arm(made, "fsync", PP_PROMISE_MEDIA, PP_ARM_SAFE);
	snprintf(arm->key.workload, sizeof(arm->key.workload), "append");
	text = render(made, false, pp_report_text);
	assert_non_null(strstr(text, "drive SER1, Fast SSD, firmware 1.2\n"));
	assert_true(strstr(text, "drive SER2") > strstr(text, "controls and others"));
	assert_true(strstr(text, "controls and others") > strstr(text, " UNSAFE\n"));
	assert_true(strstr(text, " LOSES\n") > strstr(text, "controls and others"));
	assert_non_null(strstr(text, "fsync                    8.2   2.5s"));
	assert_non_null(strstr(text, "append, raw, 1 lane, 8192-byte records, write back, fua"));
	check_lines(text);
	free(text);
	free(made);
}

/* ---- the last lines ----------------------------------------------------------------------- */

static void test_sentence(void **state)
{
	static const struct {
		enum pp_arm_verdict first, second;
		const char *says;
	} rows[] = {
		{ PP_ARM_SAFE, PP_ARM_SAFE, "verdict:        held: 2 of 2 required arms SAFE at 95/90\n" },
		{ PP_ARM_SAFE, PP_ARM_UNSAFE, "verdict:        BROKEN: fsync, overwrite on SER1 lost" },
		{ PP_ARM_INCONCLUSIVE, PP_ARM_UNSAFE, "verdict:        BROKEN: fsync, overwrite" },
		{ PP_ARM_SAFE, PP_ARM_INCONCLUSIVE, "not judged: 1 of 2 required arms not SAFE at 95/90;" },
		{ PP_ARM_NA, PP_ARM_SAFE, "not judged: 1 of 2 required arms not SAFE" },
	};
	struct made *made = calloc(1, sizeof(*made));
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		made_init(made);
		add_arm(made, "fdatasync", PP_PROMISE_MEDIA, rows[i].first);
		add_arm(made, "fsync", PP_PROMISE_MEDIA, rows[i].second)->cuts_loss = 1;
		text = render(made, false, pp_report_text);
		if (!strstr(text, rows[i].says))
			fail_msg("row %zu: %s", i, text);
		assert_non_null(strstr(text, "\npower:          outlet 3 of rack-7 is on\n"));
		free(text);
	}
	made_init(made);
	text = render(made, false, pp_report_text);
	assert_non_null(strstr(text, "not judged: no required arm"));
	free(text);
	made_init(made);
	add_arm(made, "fsync", PP_PROMISE_MEDIA, PP_ARM_SAFE)->rests_on_protection = true;
	made->arms[0].via_flush = true;
	made->arms[0].loss_bound_95 = 0.0981;
	text = render(made, false, pp_report_text);
	assert_non_null(strstr(text, "SAFE rests"));
	assert_non_null(strstr(text, "losses in fewer than 9.8 % of cuts; FUA in arms via flush;"));
	free(text);
	free(made);
}

/* ---- JSON and CSV ------------------------------------------------------------------------- */

static void test_json(void **state)
{
	/* The keys that the design promises, in its order. */
	static const char *const keys[] = { "serial", "model", "firmware", "method", "workload",
		"policy", "promise", "ops_per_s", "latency_ns_p50", "latency_ns_p99", "flushes_per_op",
		"cuts_clean", "cuts_loss", "cuts_void", "cuts_open", "records_acked", "records_lost",
		"loss_bound_95", "verdict", "reasons", "records_lost_by_class", "lost_age_ns_min",
		"lost_age_ns_max" };
	struct made *made = calloc(1, sizeof(*made));
	char *text, *again;
	json_t *root, *arm;
	void *iter;
	size_t i;

	(void)state;
	fill(made);
	text = render(made, false, pp_report_json);
	again = render(made, true, pp_report_json);
	assert_string_equal(text, again);
	assert_memory_equal(text, "{\n  \"format\": 1,\n  \"criterion\": \"95/90\",\n  \"arms\": [", 47);
	root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "arms")), 5);
	arm = json_array_get(json_object_get(root, "arms"), 1);
	for (i = 0, iter = json_object_iter(arm); i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_string_equal(json_object_iter_key(iter), keys[i]);
		iter = json_object_iter_next(arm, iter);
	}
	assert_string_equal(json_string_value(json_object_get(arm, "verdict")), "UNSAFE");
	assert_int_equal(json_integer_value(json_object_get(arm, "latency_ns_p99")), 51000);
	assert_int_equal(json_integer_value(json_object_get(arm, "cuts_void")), 2);
	assert_true(json_real_value(json_object_get(arm, "flushes_per_op")) == 0.0);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(arm,
		"records_lost_by_class"), "stale")), 10);
	assert_null(json_object_get(json_object_get(arm, "records_lost_by_class"), "blank"));
	assert_true(json_is_null(json_object_get(arm, "lost_age_ns_min")));
	assert_int_equal(json_array_size(json_object_get(arm, "reasons")), 2);
	assert_non_null(strstr(text, "\"ops_per_s\": 33724.2,"));
	assert_non_null(strstr(text, "\"loss_bound_95\": 0.0981446,"));
	arm = json_array_get(json_object_get(root, "arms"), 0);
	assert_true(json_is_null(json_object_get(arm, "flushes_per_op")));
	arm = json_array_get(json_object_get(root, "arms"), 3);
	assert_true(json_is_null(json_object_get(arm, "ops_per_s")));
	json_decref(root);
	free(text);
	free(again);
	free(made);
}

static size_t csv_cells(const char *line)
{
	size_t cells = 1;
	bool quoted = false;

	for (; *line && (quoted || *line != '\r'); line++) {
		if (*line == '"')
			quoted = !quoted;
		cells += *line == ',' && !quoted;
	}
	assert_int_equal(line[0], '\r');
	assert_int_equal(line[1], '\n');
	return cells;
}

static void test_csv(void **state)
{
	struct made *made = calloc(1, sizeof(*made));
	char *text, *at;
	size_t cells, lines = 0;

	(void)state;
	fill(made);
	add_reason(&made->arms[1], false, "says \"no\", twice");
	text = render(made, false, pp_report_csv);
	cells = csv_cells(text);
	for (at = text; *at; at = strchr(at, '\n') + 1, lines++)
		assert_int_equal(csv_cells(at), cells);
	assert_int_equal(lines, 6);
	assert_memory_equal(text, "serial,model,firmware,method,workload,policy,promise,ops_per_s,", 63);
	assert_non_null(strstr(text, "\"open_datasync (direct)\",\"overwrite\",\"write back, fua\",\"media\","
		"33724.2,30000,51000,0,28,1,2,0,640000,12,0.153"));
	assert_non_null(strstr(text, "; says \"\"no\"\", twice\""));
	assert_non_null(strstr(text, "\"stale=10; torn=2\""));
	free(text);
	free(made);
}

/* A buffer that is too small is an error, never half a report. */
/* M4.8: what was seen of tears stands under its arm, and nowhere where nothing was seen. */
static void test_tears(void **state)
{
	static const struct {
		uint64_t flight, torn, at[3];
		const char *text, *json;
	} rows[] = {
		{ 0, 0, { 0, 0, 0 }, NULL, "\"tears_smallest_bytes\": null" },
		{ 40, 0, { 0, 0, 0 }, "0 of 40 writes torn (at most 7.2 %, 95 %); none of 8 KiB or less (at most",
			"\"tears_untorn_bytes\": 8192" },
		{ 40, 12, { 0, 0, 12 }, "12 of 40 writes torn (at most 44.0 %, 95 %); smallest block seen",
			"\"tears_smallest_bytes\": 2048" },
		{ 40, 12, { 0, 0, 12 }, "none of 1 KiB or less (at most 7.2 %)",
			"\"tears_untorn_bytes\": 1024" },
		{ 40, 12, { 3, 9, 12 }, "smallest block seen torn: 512 bytes", "\"tears_untorn_bytes\": null" },
	};
	struct pp_report_input input = { 0 };
	struct made made;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_verdict_arm *arm;
		struct pp_buf out;
		char *text, *at;

		made_init(&made);
		arm = add_arm(&made, "direct", PP_PROMISE_NONE, PP_ARM_LOSES);
		arm->tears_in_flight = rows[i].flight;
		arm->tears_torn = rows[i].torn;
		memcpy(arm->torn_at, rows[i].at, sizeof(rows[i].at));
		text = render(&made, false, pp_report_text);
		for (at = text; (at = strstr(at, "\n               ")); ) /* unwrap */
			memmove(at, at + 15, strlen(at + 15) + 1);
		assert_int_equal(strstr(text, "in flight:") != NULL, rows[i].text != NULL);
		if (rows[i].text && !strstr(text, rows[i].text))
			fail_msg("no '%s' in\n%s", rows[i].text, text);
		free(text);
		input.verdict = &made.verdict;
		pp_buf_init(&out, 1 << 20);
		assert_int_equal(pp_report_json(&input, &out, NULL), 0);
		assert_non_null(strstr(out.data, rows[i].json));
		pp_buf_release(&out);
	}
}

static void test_overflow_fails(void **state)
{
	int (*const forms[])(const struct pp_report_input *, struct pp_buf *, struct pp_error *) = {
		pp_report_text, pp_report_json, pp_report_csv };
	struct made *made = calloc(1, sizeof(*made));
	struct pp_report_input input = { .verdict = &made->verdict };
	size_t i;

	(void)state;
	fill(made);
	for (i = 0; i < 3; i++) {
		struct pp_error err = { 0 };
		struct pp_buf out;

		pp_buf_init(&out, 300);
		assert_int_equal(forms[i](&input, &out, &err), -1);
		assert_int_equal(err.class, PP_ERR_SYSTEM);
		pp_buf_release(&out);
	}
	free(made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden_text),
		cmocka_unit_test(test_hostile_names_and_figures_do_not_shift),
		cmocka_unit_test(test_colour),
		cmocka_unit_test(test_tables),
		cmocka_unit_test(test_sentence),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_tears),
		cmocka_unit_test(test_overflow_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
