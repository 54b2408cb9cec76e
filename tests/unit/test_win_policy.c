/* SPDX-License-Identifier: MIT
 *
 * Goal: what is said of Windows' two boxes is what the class driver then does to a write and to a flush;
 * a refusal is "not reported", never "off"; a set is in force or told to wait; what was saved comes back.
 * Method: a made-up storage stack (fake_win_storage.h) with the published behaviour. Each row of policy
 * is read, explained, and tried: a write-through write and a flushed write, then a cut. M1.5.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_win_storage.h"
#include "src/core/win_identify.h"
#include "src/core/win_policy.h"

static struct fake_win win;
static struct pp_win_storage stack;

static void begin(void)
{
	fake_win_init(&win);
	stack = fake_win_storage(&win);
}

static const struct pp_policy_setting *named(const char *name)
{
	const struct pp_policy_setting *setting = pp_policy_setting_find(name);

	assert_non_null(setting);
	return setting;
}

static struct pp_policy read_now(const char *disk)
{
	struct pp_policy p;
	struct pp_error err;

	assert_int_equal(pp_win_policy_read(&stack, disk, &p, &err), 0);
	assert_int_equal(win.open, 0);
	return p;
}

static void deny(int at, uint32_t code, int property, uint32_t error)
{
	win.errors[at] = (struct fake_error){code, property, -1, error};
}

/* ---- every row of policy ------------------------------------------------------------------ */

static const struct {
	const char *what;
	int disk;
	int user_setting, protected_setting;
	bool hotplug, has_cache, no_fua;
	/* what must be said */
	enum pp_drive_cache cache;
	enum pp_truth flushing, fua;
	const char *setting;
	const char *box1, *box2; /* words of pp_policy_explain */
} rows[] = {
	{"as installed", 0, FAKE_ABSENT, FAKE_ABSENT, false, true, false, PP_CACHE_ON, PP_TRUTH_YES,
		PP_TRUTH_YES, "cache-on", "device\" is ticked", "on the device\" is not ticked"},
	{"as installed, SATA", 1, FAKE_ABSENT, FAKE_ABSENT, false, true, false, PP_CACHE_ON, PP_TRUTH_YES,
		PP_TRUTH_YES, "cache-on", "device\" is ticked", "on the device\" is not ticked"},
	{"box 1 ticked by hand", 1, 1, 0, false, true, false, PP_CACHE_ON, PP_TRUTH_YES, PP_TRUTH_YES,
		"cache-on", "device\" is ticked", "on the device\" is not ticked"},
	{"the default, stored", 1, -1, 0, false, true, false, PP_CACHE_ON, PP_TRUTH_YES, PP_TRUTH_YES,
		"cache-on", "device\" is ticked", "on the device\" is not ticked"},
	{"box 1 not ticked", 0, 0, 0, false, true, false, PP_CACHE_OFF, PP_TRUTH_YES, PP_TRUTH_NO,
		"cache-off", "caching on the device\" is not ticked", "flushing on the device\" is not ticked"},
	{"box 1 not ticked, SATA", 1, 0, FAKE_ABSENT, false, true, false, PP_CACHE_OFF, PP_TRUTH_YES,
		PP_TRUTH_NO, "cache-off", "caching on the device\" is not ticked",
		"flushing on the device\" is not ticked"},
	{"both ticked", 0, 1, 1, false, true, false, PP_CACHE_ON, PP_TRUTH_NO, PP_TRUTH_NO,
		"flushing-off", "caching on the device\" is ticked", "flushing on the device\" is ticked"},
	{"both ticked, SATA", 1, 1, 1, false, true, false, PP_CACHE_ON, PP_TRUTH_NO, PP_TRUTH_NO,
		"flushing-off", "caching on the device\" is ticked", "flushing on the device\" is ticked"},
	{"box 2 alone", 1, 0, 1, false, true, false, PP_CACHE_OFF, PP_TRUTH_NO, PP_TRUTH_NO, NULL,
		"caching on the device\" is not ticked", "flushing on the device\" is ticked"},
	{"hot-plug default", 2, FAKE_ABSENT, FAKE_ABSENT, true, true, false, PP_CACHE_OFF, PP_TRUTH_YES,
		PP_TRUTH_NO, "cache-off", "caching on the device\" is not ticked",
		"flushing on the device\" is not ticked"},
	{"hot-plug, better performance", 2, 1, 0, true, true, false, PP_CACHE_ON, PP_TRUTH_YES,
		PP_TRUTH_YES, "cache-on", "caching on the device\" is ticked",
		"flushing on the device\" is not ticked"},
	{"the drive refused FUA", 1, 1, 0, false, true, true, PP_CACHE_ON, PP_TRUTH_YES, PP_TRUTH_NO,
		"cache-on", "caching on the device\" is ticked", "flushing on the device\" is not ticked"},
	{"no volatile cache, NVMe", 0, FAKE_ABSENT, 0, false, false, false, PP_CACHE_NONE, PP_TRUTH_YES,
		PP_TRUTH_NO, "cache-off", "caching on the device\" is not ticked",
		"flushing on the device\" is not ticked"},
	{"no cache, SATA", 1, FAKE_ABSENT, 0, false, false, false, PP_CACHE_NONE, PP_TRUTH_YES,
		PP_TRUTH_NO, "cache-off", "caching on the device\" is not ticked",
		"flushing on the device\" is not ticked"},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct fake_drive *prepare(size_t i)
{
	struct fake_drive *d;

	begin();
	d = &win.drives[rows[i].disk];
	d->user_setting = rows[i].user_setting;
	d->protected_setting = rows[i].protected_setting;
	d->hotplug = rows[i].hotplug;
	d->has_cache = rows[i].has_cache;
	d->cache = rows[i].has_cache;
	fake_start(d);
	d->write_cache = d->cache;
	d->no_fua = rows[i].no_fua;
	d->takes_fua = !rows[i].no_fua;
	return d;
}

static void test_rows(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		const struct pp_policy_setting *is;
		struct pp_buf words;
		struct pp_policy p;
		char disk[32];

		prepare(i);
		snprintf(disk, sizeof(disk), "PhysicalDrive%d", rows[i].disk);
		p = read_now(disk);
		if (p.drive_cache != rows[i].cache || p.flushing != rows[i].flushing ||
			p.fua_sent != rows[i].fua || p.when != PP_POLICY_NOW || p.oddity[0])
			fail_msg("%s: %d %d %d %d '%s'", rows[i].what, p.drive_cache, p.flushing, p.fua_sent,
				p.when, p.oddity);
		is = pp_policy_setting_of(&p);
		assert_string_equal(is ? is->name : "none", rows[i].setting ? rows[i].setting : "none");
		pp_buf_init(&words, 8192);
		pp_policy_explain(&p, &words);
		if (!strstr(words.data, rows[i].box1) || !strstr(words.data, rows[i].box2))
			fail_msg("%s: %s", rows[i].what, words.data);
		pp_buf_release(&words);
	}
}

/* What was said, done: a write-through write and a flushed one, then the power goes. */
static void test_what_is_said_is_done(void **state)
{
	(void)state;
	for (size_t i = 0; i < 4 * ROWS; i++) {
		struct fake_drive *d = prepare(i % ROWS);
		bool fua_liar = i / ROWS & 1, flush_liar = i / ROWS & 2, off;
		struct pp_policy p;
		char disk[32];
		unsigned flushes;

		d->honours_fua = !fua_liar;
		snprintf(disk, sizeof(disk), "PhysicalDrive%d", rows[i % ROWS].disk);
		p = read_now(disk);
		d->honours_flush = !flush_liar;
		off = p.drive_cache == PP_CACHE_OFF || p.drive_cache == PP_CACHE_NONE;
		d->fua_writes = 0;
		flushes = d->flushes;
		fake_write(d, 0, 7, true);
		assert_int_equal(d->fua_writes, p.fua_sent == PP_TRUTH_YES);
		fake_cut(d);
		assert_int_equal(d->medium[0] == 7, off || (p.fua_sent == PP_TRUTH_YES && !fua_liar));
		fake_write(d, 1, 8, false);
		fake_flush(d);
		assert_int_equal(d->flushes - flushes, p.flush_sent == PP_TRUTH_YES);
		fake_cut(d);
		assert_int_equal(d->medium[1] == 8, off || (p.flush_sent == PP_TRUTH_YES && !flush_liar));
	}
}

/* The first refused FUA: the class driver gives FUA up, and what is said then follows. */
static void test_fua_refused_on_the_way(void **state)
{
	struct fake_drive *d;
	struct pp_policy p;

	(void)state;
	begin();
	d = &win.drives[1];
	d->takes_fua = false;
	p = read_now("PhysicalDrive1");
	assert_int_equal(p.fua_sent, PP_TRUTH_YES);
	fake_write(d, 0, 1, true); /* nobody forced the cache on: it is switched off */
	p = read_now("PhysicalDrive1");
	assert_int_equal(p.drive_cache, PP_CACHE_OFF);
	assert_int_equal(p.fua_sent, PP_TRUTH_NO);
	begin();
	d = &win.drives[1];
	d->takes_fua = false;
	d->user_setting = 1;
	fake_write(d, 0, 1, true);
	assert_true(d->events);
	p = read_now("PhysicalDrive1");
	assert_int_equal(p.drive_cache, PP_CACHE_ON);
	assert_int_equal(p.fua_sent, PP_TRUTH_NO);
}

/* ---- refusals ----------------------------------------------------------------------------- */

/* Errors 1, 5 and 50 in place of each answer, and of all: unknown, never off, no setting. */
static void test_refused_is_unknown(void **state)
{
	static const uint32_t errors[] = {PP_WIN_INVALID_FUNCTION, PP_WIN_ACCESS_DENIED,
		PP_WIN_NOT_SUPPORTED};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct pp_policy p;
		char number[16];

		snprintf(number, sizeof(number), "error %u", (unsigned)errors[i]);
		begin();
		deny(0, 0, -1, errors[i]);
		for (int k = 0; k < FAKE_DRIVES; k++)
			win.drives[k].no_key = true;
		p = read_now("PhysicalDrive0");
		assert_int_equal(p.drive_cache, PP_CACHE_UNKNOWN);
		assert_int_equal(p.system_cache, PP_TRUTH_UNKNOWN);
		assert_int_equal(p.flushing, PP_TRUTH_UNKNOWN);
		assert_int_equal(p.flush_sent, PP_TRUTH_UNKNOWN);
		assert_int_equal(p.fua_sent, PP_TRUTH_UNKNOWN);
		assert_non_null(strstr(p.drive_words, number));
		assert_null(strstr(p.system_words, "off"));
		assert_null(pp_policy_setting_of(&p));
		/* Only the drive's cache refused: the box in the registry is still read. */
		begin();
		deny(0, PP_WIN_GET_CACHE_INFO, -1, errors[i]);
		deny(1, PP_WIN_QUERY_PROPERTY, -1, errors[i]);
		deny(2, PP_WIN_GET_CACHE_SETTING, -1, errors[i]);
		win.drives[2].protected_setting = 1;
		p = read_now("PhysicalDrive2");
		assert_int_equal(p.drive_cache, PP_CACHE_UNKNOWN);
		assert_int_equal(p.flushing, PP_TRUTH_NO);
		assert_null(pp_policy_setting_of(&p));
		/* The flushing query alone: nothing is missed by it. */
		begin();
		deny(0, PP_WIN_QUERY_PROPERTY, PP_WIN_PROPERTY_WRITE_CACHE, errors[i]);
		p = read_now("PhysicalDrive2");
		assert_int_equal(p.drive_cache, PP_CACHE_ON);
		assert_int_equal(p.fua_sent, PP_TRUTH_YES);
	}
}

/* Without rights only what needs none is known. */
static void test_not_administrator(void **state)
{
	struct pp_policy p;

	(void)state;
	begin();
	win.most = PP_WIN_QUERY;
	win.drives[1].honours_flush = false;
	p = read_now("PhysicalDrive1");
	/* The property needs no access: its word stands alone. */
	assert_int_equal(p.drive_cache, PP_CACHE_ON);
	assert_int_equal(p.flushing, PP_TRUTH_YES);
	assert_int_equal(p.system_cache, PP_TRUTH_UNKNOWN);
}

/* ---- lies --------------------------------------------------------------------------------- */

static const struct {
	const char *what;
	int disk;
	bool direct;                 /* NVMe or ATA can be asked itself */
	bool cache;
	int property, info, protection;
	enum pp_drive_cache said;
	const char *oddity;
} lies[] = {
	{"the property says off, the drive on", 0, true, true, 1, -1, -1, PP_CACHE_ON, "property says off"},
	{"the property says on, the drive off", 1, true, false, 2, -1, -1, PP_CACHE_OFF, "property says on"},
	{"the driver says off, the drive on", 1, true, true, 1, 0, -1, PP_CACHE_ON, "Windows says"},
	{"the two of the driver contradict", 2, true, true, 1, -1, -1, PP_CACHE_UNKNOWN, "property says off"},
	{"the same, NVMe not asked", 0, false, true, 1, -1, -1, PP_CACHE_UNKNOWN, "property says off"},
	{"the property unknown", 2, true, true, 0, -1, -1, PP_CACHE_ON, ""},
	{"the property invents protection", 1, true, true, -1, -1, 1, PP_CACHE_ON, "power protection"},
};

static void test_lies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct fake_drive *d;
		struct pp_policy p;
		char disk[32];

		begin();
		d = &win.drives[lies[i].disk];
		d->asked_directly = lies[i].direct;
		d->cache = d->write_cache = lies[i].cache;
		d->property_enabled = lies[i].property;
		d->info_enabled = lies[i].info;
		d->property_protection = lies[i].protection;
		snprintf(disk, sizeof(disk), "PhysicalDrive%d", lies[i].disk);
		p = read_now(disk);
		if (p.drive_cache != lies[i].said || !strstr(p.oddity, lies[i].oddity) ||
			(!lies[i].oddity[0] && p.oddity[0]))
			fail_msg("%s: %d '%s'", lies[i].what, p.drive_cache, p.oddity);
		assert_int_equal(p.flushing, PP_TRUTH_YES); /* the class driver's own word */
		if (p.drive_cache == PP_CACHE_UNKNOWN)
			assert_null(pp_policy_setting_of(&p));
	}
}

/* ---- setting ------------------------------------------------------------------------------ */

static void test_set_and_restore(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		for (size_t k = 0; k < pp_policy_setting_count; k++) {
			struct fake_drive *d = prepare(i), before;
			struct pp_policy_saved saved;
			struct pp_error err = {.class = PP_ERR_NONE};
			struct pp_policy p;
			char disk[32];
			int rc;

			snprintf(disk, sizeof(disk), "PhysicalDrive%d", rows[i].disk);
			before = *d;
			rc = pp_win_policy_set(&stack, disk, &pp_policy_settings[k], &saved, &err);
			assert_int_equal(win.open, 0);
			if (!d->has_cache && pp_policy_settings[k].write_cache == PP_TRUTH_YES) {
				assert_int_equal(rc, -1);
				assert_int_equal(err.class, PP_ERR_UNSUPPORTED);
				assert_int_equal(d->changes, before.changes);
				continue;
			}
			if (rc != 0)
				fail_msg("%s to %s: %s", rows[i].what, pp_policy_settings[k].name, err.text);
			p = read_now(disk);
			assert_true(pp_policy_matches(&p, &pp_policy_settings[k]));
			/* It is so after a restart too. */
			fake_start(d);
			d->no_fua = rows[i].no_fua;
			p = read_now(disk);
			assert_true(pp_policy_matches(&p, &pp_policy_settings[k]));
			assert_int_equal(pp_win_policy_restore(&stack, disk, &saved, &err), 0);
			assert_int_equal(d->cache, before.cache);
			assert_int_equal(d->power_protected, before.power_protected);
			assert_int_equal(d->user_setting, before.user_setting);
			assert_int_equal(d->protected_setting, before.protected_setting);
			before.changes = d->changes;
			assert_int_equal(pp_win_policy_restore(&stack, disk, &saved, &err), 0);
			assert_int_equal(d->changes, before.changes); /* nothing left to do */
		}
	}
}

/* Where the class driver does not know the code, the registry is written, and that waits. */
static void test_stored_for_the_next_start(void **state)
{
	struct fake_drive *d;
	struct pp_error err;
	struct pp_policy p;

	(void)state;
	begin();
	d = &win.drives[1];
	deny(0, PP_WIN_SET_CACHE_SETTING, -1, PP_WIN_INVALID_FUNCTION);
	deny(1, PP_WIN_SET_CACHE_INFO, -1, PP_WIN_NOT_SUPPORTED);
	assert_int_equal(pp_win_policy_set(&stack, "PhysicalDrive1", named("flushing-off"), NULL, &err),
		0);
	p = read_now("PhysicalDrive1");
	assert_int_equal(p.when, PP_POLICY_REBOOT);
	assert_null(pp_policy_setting_of(&p)); /* M1.5: not in force is not the arm's policy */
	fake_start(d);
	p = read_now("PhysicalDrive1");
	assert_true(pp_policy_matches(&p, named("flushing-off")));
	assert_int_equal(pp_win_policy_set(&stack, "PhysicalDrive1", named("cache-off"), NULL, &err), 0);
	p = read_now("PhysicalDrive1");
	assert_int_equal(p.when, PP_POLICY_REBOOT);
	fake_start(d);
	p = read_now("PhysicalDrive1");
	assert_true(pp_policy_matches(&p, named("cache-off")));
}

/* A drive that agrees and goes on as before is found out. */
static void test_stubborn(void **state)
{
	struct pp_error err;

	(void)state;
	begin();
	win.drives[1].obeys = false;
	assert_int_equal(pp_win_policy_set(&stack, "PhysicalDrive1", named("cache-off"), NULL, &err), 0);
	{
		/* The registry now says off, the drive on: that waits for a restart and matches nothing. */
		struct pp_policy p = read_now("PhysicalDrive1");

		assert_int_equal(p.when, PP_POLICY_REBOOT);
		assert_non_null(strstr(p.oddity, "registry"));
		assert_null(pp_policy_setting_of(&p));
	}
	begin();
	win.drives[1].refuses_change = true;
	win.registry_read_only = true;
	assert_int_equal(pp_win_policy_set(&stack, "PhysicalDrive1", named("cache-off"), NULL, &err), -1);
	assert_int_equal(err.class, PP_ERR_SYSTEM);
	assert_true(win.drives[1].cache);
}

static void test_fault_walk(void **state)
{
	(void)state;
	for (size_t k = 0; k < pp_policy_setting_count; k++) {
		int rc = -1;

		for (int at = 1; rc != 0; at++) {
			struct pp_error err = {.class = PP_ERR_NONE};
			struct fake_drive *d;

			assert_true(at < 10);
			begin();
			d = &win.drives[0];
			/* Each setting has both boxes to change. */
			d->user_setting = pp_policy_settings[k].write_cache != PP_TRUTH_YES;
			d->protected_setting = pp_policy_settings[k].flushing == PP_TRUTH_YES;
			fake_start(d);
			win.registry_read_only = true;
			win.fail_at = at;
			rc = pp_win_policy_set(&stack, "PhysicalDrive0", &pp_policy_settings[k], NULL, &err);
			assert_int_equal(win.open, 0);
			if (rc == 0)
				continue;
			assert_int_equal(err.class, PP_ERR_SYSTEM);
			assert_int_equal(d->cache, pp_policy_settings[k].write_cache != PP_TRUTH_YES);
			assert_int_equal(d->power_protected, pp_policy_settings[k].flushing == PP_TRUTH_YES);
		}
	}
}

static void test_restore_refuses_others(void **state)
{
	struct pp_policy_saved saved;
	struct pp_error err;

	(void)state;
	begin();
	assert_int_equal(pp_win_policy_save(&stack, "PhysicalDrive0", &saved, &err), 0);
	assert_string_equal(saved.serial, "S5GXNF0R111111");
	assert_int_equal(saved.user_write_cache_setting, PP_POLICY_ABSENT);
	assert_int_equal(pp_win_policy_restore(&stack, "PhysicalDrive1", &saved, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	snprintf(saved.system, sizeof(saved.system), "linux");
	assert_int_equal(pp_win_policy_restore(&stack, "PhysicalDrive0", &saved, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_int_equal(win.drives[0].changes + win.drives[1].changes, 0);
}

/* ---- never during a run ------------------------------------------------------------------- */

/* The query is a flush: during a run it would make a lying method's writes durable. */
static void test_not_during_a_run(void **state)
{
	struct fake_drive *d;
	struct pp_win_facts facts;
	struct pp_policy_saved saved;
	struct pp_policy p;
	struct pp_error err;

	(void)state;
	begin();
	d = &win.drives[0];
	p = read_now("PhysicalDrive0");
	assert_int_equal(d->flushes, 1);
	assert_int_equal(pp_win_policy_save(&stack, "PhysicalDrive0", &saved, &err), 0);
	pp_policy_run_begin("PhysicalDrive0");
	d->flushes = 0;
	assert_int_equal(pp_win_policy_read(&stack, "PhysicalDrive0", &p, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	assert_int_equal(pp_win_policy_save(&stack, "PhysicalDrive0", &saved, &err), -1);
	assert_int_equal(pp_win_policy_set(&stack, "PhysicalDrive0", named("cache-off"), NULL, &err), -1);
	assert_int_equal(pp_win_policy_restore(&stack, "PhysicalDrive0", &saved, &err), -1);
	assert_int_equal(pp_win_ask(&stack, 0, PP_WIN_ASK_ALL, &facts, &err), 0);
	assert_int_equal(facts.property_error, PP_WIN_NOT_ASKED);
	assert_int_equal(d->flushes, 0);
	assert_int_equal(d->changes, 0);
	pp_policy_run_end("PhysicalDrive0");
	p = read_now("PhysicalDrive0");
	assert_int_equal(d->flushes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_what_is_said_is_done),
		cmocka_unit_test(test_fua_refused_on_the_way),
		cmocka_unit_test(test_refused_is_unknown),
		cmocka_unit_test(test_not_administrator),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_set_and_restore),
		cmocka_unit_test(test_stored_for_the_next_start),
		cmocka_unit_test(test_stubborn),
		cmocka_unit_test(test_fault_walk),
		cmocka_unit_test(test_restore_refuses_others),
		cmocka_unit_test(test_not_during_a_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
