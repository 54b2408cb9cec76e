/* SPDX-License-Identifier: MIT
 *
 * Goal: cut.json and run.json give back what was written, and refuse what no controller can have
 * written (M4.6). Method: everything set to a value of its own, saved, loaded, compared; then each
 * key of the file taken away or spoilt in turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/janitor.h"
#include "verifier/facts.h"

static char folder[] = "/tmp/pp-facts-XXXXXX";
static char path[64];

static int set_up(void **state)
{
	(void)state;
	if (!janitor_mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/f.json", folder);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static void fill_cut(struct pp_cut_facts *c)
{
	memset(c, 0, sizeof(*c));
	c->number = 3;
	strcpy(c->state, "judged");
	strcpy(c->host_boot_id, "host");
	strcpy(c->cut_kind, "mains");
	strcpy(c->kernel, "Linux 6");
	strcpy(c->boot_before, "A");
	c->write_ms = 1;
	c->t_run_ns = 2;
	c->t_off_sent_ns = 3;
	c->t_off_answered_ns = 4;
	c->t_off_read_ns = 5;
	c->t_on_sent_ns = 6;
	c->t_on_read_ns = INT64_MAX;
	c->hold_up_ns = 8;
	c->off_ns = 9;
	c->off_verified = c->watts_known = c->watts_zero = c->battery = true;
	strcpy(c->off_outcome, "verified");
	c->power_cycles = 2;
	strcpy(c->void_reason, "none");
	c->boots = 2;
	c->boot[0].t_ns = 10;
	c->boot[1].uptime_ns = 11;
	strcpy(c->boot[1].boot_id, "B");
}

static void fill_run(struct pp_run_facts *r, struct pp_error *err)
{
	memset(r, 0, sizeof(*r));
	memset(r->run_id.bytes, 0x5A, sizeof(r->run_id.bytes));
	r->index = 1;
	strcpy(r->serial, "S1");
	strcpy(r->model, "M");
	strcpy(r->firmware, "F");
	strcpy(r->method, "fdatasync");
	r->kind = PP_TARGET_FILE;
	assert_int_equal(pp_layout_init(&r->layout, PP_OVERWRITE, 2, 1, 4096, 4096, false, 0, 8 << 20,
		err), 0);
	strcpy(r->fs, "ext4");
	strcpy(r->policy, "write back, fua");
	r->fua = true;
	r->drive_bytes = 1ULL << 40;
	strcpy(r->base, "setups/0001/S1/scan-0.bin");
	r->aftermath = PP_AFTER_SCANNED;
	strcpy(r->aftermath_reason, "tab\there, \"quotes\", \xc3\xa9");
	r->rereads = 3;
	r->reread_other_boot = true;
}

static void test_round_trip(void **state)
{
	struct pp_error err = { 0 };
	struct pp_cut_facts cut, cut_back;
	struct pp_run_facts run, run_back;

	(void)state;
	fill_cut(&cut);
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	assert_int_equal(pp_cut_facts_load(&cut_back, path, &err), 0);
	assert_memory_equal(&cut, &cut_back, sizeof(cut));
	fill_run(&run, &err);
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	assert_int_equal(pp_run_facts_load(&run_back, path, &err), 0);
	assert_memory_equal(&run, &run_back, sizeof(run));
}

static void test_no_utf8(void **state)
{
	struct pp_error err = { 0 };
	struct pp_cut_facts cut;

	(void)state;
	fill_cut(&cut);
	strcpy(cut.kernel, "caf\xe9");
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	assert_int_equal(pp_cut_facts_load(&cut, path, &err), 0);
	assert_string_equal(cut.kernel, "caf?");
}

static int load_again(json_t *whole, bool cut, struct pp_error *err)
{
	struct pp_cut_facts c;
	struct pp_run_facts r;

	assert_int_equal(json_dump_file(whole, path, 0), 0);
	return cut ? pp_cut_facts_load(&c, path, err) : pp_run_facts_load(&r, path, err);
}

/* Every key is needed, and is of one type. */
static void spoil_each(bool cut)
{
	json_t *whole = json_load_file(path, 0, NULL), *value, *copy;
	struct pp_error err;
	const char *key;

	copy = json_deep_copy(whole);
	json_object_foreach(copy, key, value) {
		json_t *kept = json_deep_copy(value);

		json_object_del(whole, key);
		/* Evidence from before policies were a factor has no setting. */
		if (strcmp(key, "setting") == 0)
			assert_int_equal(load_again(whole, cut, &err), 0);
		else if (load_again(whole, cut, &err) != -1 || err.class != PP_ERR_EVIDENCE)
			fail_msg("without %s", key);
		json_object_set_new(whole, key, json_real(1.5));
		if (load_again(whole, cut, &err) != -1 || err.class != PP_ERR_EVIDENCE)
			fail_msg("%s is 1.5", key);
		json_object_set_new(whole, key, json_integer(-1));
		if (load_again(whole, cut, &err) != -1)
			fail_msg("%s is -1", key);
		json_object_set_new(whole, key, kept);
		if (load_again(whole, cut, &err) != 0)
			fail_msg("%s is back: %s", key, err.text);
	}
	json_decref(copy);
	json_decref(whole);
}

static void test_spoilt(void **state)
{
	struct pp_error err = { 0 };
	struct pp_cut_facts cut;
	struct pp_run_facts run;

	(void)state;
	fill_cut(&cut);
	assert_int_equal(pp_cut_facts_save(&cut, path, &err), 0);
	spoil_each(true);
	fill_run(&run, &err);
	assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
	spoil_each(false);
}

/* What has the right type and is still impossible. */
static const struct {
	const char *layout_key, *key;
	json_int_t number;
	const char *text;
} impossible[] = {
	{ "lanes", NULL, 0, NULL }, { "lanes", NULL, 65, NULL }, { "group", NULL, 0, NULL },
	{ "record_bytes", NULL, 100, NULL }, { "record_bytes", NULL, 0, NULL },
	{ "unit_bytes", NULL, 0, NULL }, { "slots", NULL, 1, NULL },
	{ "slots", NULL, (json_int_t)1 << 62, NULL }, { "region_offset", NULL, 1, NULL },
	{ "workload", NULL, 0, "scribble" },
	{ NULL, "method", 0, "fdatasink" }, { NULL, "setting", 0, "cache-of" }, { NULL, "aftermath", 0, "fine" },
	{ NULL, "target", 0, "tape" }, { NULL, "run_id", 0, "5a" }, { NULL, "run_id", 0, "" },
	{ NULL, "format", 2, NULL },
};

static void test_impossible(void **state)
{
	struct pp_error err = { 0 };
	struct pp_run_facts run;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(impossible) / sizeof(impossible[0]); i++) {
		json_t *whole, *value = impossible[i].text ? json_string(impossible[i].text)
			: json_integer(impossible[i].number);

		fill_run(&run, &err);
		assert_int_equal(pp_run_facts_save(&run, path, &err), 0);
		whole = json_load_file(path, 0, NULL);
		if (impossible[i].key)
			json_object_set_new(whole, impossible[i].key, value);
		else
			json_object_set_new(json_object_get(whole, "layout"), impossible[i].layout_key, value);
		if (load_again(whole, false, &err) != -1 || err.class != PP_ERR_EVIDENCE)
			fail_msg("row %zu is taken", i);
		json_decref(whole);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_no_utf8),
		cmocka_unit_test(test_spoilt),
		cmocka_unit_test(test_impossible),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
