/* SPDX-License-Identifier: MIT
 *
 * Goal: a drive's own counters are read from smartctl's JSON, and from nothing else (M5.3). Rows of
 * what smartctl prints, and what may be believed of it: a hard disk's 192 counts head retracts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "verifier/counters.h"

#define ATA(rate, rows) "{" rate "\"ata_smart_attributes\": {\"table\": [" rows "]}}"
#define ATTR(id, value) "{\"id\": " #id ", \"raw\": {\"value\": " #value "}}"
#define NVME(fields)    "{\"nvme_smart_health_information_log\": {" fields "}}"
#define SSD             "\"rotation_rate\": 0, "
#define HDD             "\"rotation_rate\": 7200, "

static const struct {
	const char *rule, *json;
	int cycles, unsafe; /* -1: none */
} rows[] = {
	{ "NVMe", NVME("\"power_cycles\": 7, \"unsafe_shutdowns\": 3"), 7, 3 },
	{ "NVMe, cycles alone", NVME("\"power_cycles\": 7"), 7, -1 },
	{ "NVMe that counts nothing", NVME("\"power_cycles\": 0, \"unsafe_shutdowns\": 0"), -1, 0 },
	{ "NVMe, negative", NVME("\"power_cycles\": -7, \"unsafe_shutdowns\": -1"), -1, -1 },
	{ "NVMe, text", NVME("\"power_cycles\": \"7\""), -1, -1 },
	{ "SSD, 12 and 174", ATA(SSD, ATTR(12, 40) "," ATTR(174, 9)), 40, 9 },
	{ "SSD, 12 and 192", ATA(SSD, ATTR(12, 40) "," ATTR(192, 8)), 40, 8 },
	{ "SSD, 174 before 192", ATA(SSD, ATTR(174, 9) "," ATTR(192, 8)), -1, 9 },
	{ "SSD, 174 after 192", ATA(SSD, ATTR(192, 8) "," ATTR(174, 9)), -1, 9 },
	{ "disk, 192 is head retracts", ATA(HDD, ATTR(12, 40) "," ATTR(192, 8)), 40, -1 },
	{ "rate unknown, 192 may be that", ATA("", ATTR(12, 40) "," ATTR(192, 8)), 40, -1 },
	{ "power_cycle_count", "{\"power_cycle_count\": 5}", 5, -1 },
	{ "nothing kept", "{}", -1, -1 },
	{ "empty", "", -1, -1 },
	{ "garbage", "smartctl: command not found\n", -1, -1 },
	{ "a list", "[1, 2]", -1, -1 },
	{ "cut short", "{\"nvme_smart_health_information_log\": {\"power_cycles\": 7", -1, -1 },
};

static void test_rows(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pp_drive_counters c;
		int cycles, unsafe;

		memset(&c, 0xA5, sizeof(c));
		pp_drive_counters_parse(rows[i].json, strlen(rows[i].json), &c);
		cycles = c.has_power_cycles ? (int)c.power_cycles : -1;
		unsafe = c.has_unsafe ? (int)c.unsafe_shutdowns : -1;
		if (cycles != rows[i].cycles || unsafe != rows[i].unsafe)
			fail_msg("%s: %d, %d", rows[i].rule, cycles, unsafe);
	}
}

static void test_serial(void **state)
{
	static const char json[] = "{\"serial_number\": \"S1\"}";
	struct pp_drive_counters c;

	(void)state;
	pp_drive_counters_parse(json, sizeof(json) - 1, &c);
	assert_string_equal(c.serial, "S1");
	pp_drive_counters_parse(NULL, 0, &c);
	assert_string_equal(c.serial, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_serial),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
