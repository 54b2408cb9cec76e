/* SPDX-License-Identifier: MIT */
#include "counters.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

static bool number(const json_t *object, const char *key, uint64_t *out)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*out = (uint64_t)json_integer_value(value);
	return true;
}

static void read_ata(const json_t *root, struct pp_drive_counters *out)
{
	/* rotation_rate is 0 for an SSD; where it is missing, 192 may be a disk's head retracts. */
	const json_t *rate = json_object_get(root, "rotation_rate");
	bool ssd = json_is_integer(rate) && json_integer_value(rate) == 0;
	const json_t *table = json_object_get(json_object_get(root, "ata_smart_attributes"), "table");
	bool has_174 = false;
	size_t i;

	for (i = 0; i < json_array_size(table); i++) {
		const json_t *row = json_array_get(table, i);
		uint64_t id, raw;

		if (!number(row, "id", &id) || !number(json_object_get(row, "raw"), "value", &raw))
			continue;
		if (id == 12) {
			out->has_power_cycles = true;
			out->power_cycles = raw;
		} else if (ssd && (id == 174 || (id == 192 && !has_174))) {
			has_174 = id == 174;
			out->has_unsafe = true;
			out->unsafe_shutdowns = raw;
		}
	}
}

void pp_drive_counters_parse(const char *json, size_t bytes, struct pp_drive_counters *out)
{
	json_t *root = json_loadb(json ? json : "", bytes, 0, NULL);
	const json_t *nvme = json_object_get(root, "nvme_smart_health_information_log");
	const char *serial = json_string_value(json_object_get(root, "serial_number"));

	memset(out, 0, sizeof(*out));
	if (serial)
		snprintf(out->serial, sizeof(out->serial), "%s", serial);
	if (nvme) {
		out->has_power_cycles = number(nvme, "power_cycles", &out->power_cycles);
		out->has_unsafe = number(nvme, "unsafe_shutdowns", &out->unsafe_shutdowns);
		number(nvme, "media_errors", &out->media_errors);
	} else if (root) {
		read_ata(root, out);
		if (!out->has_power_cycles)
			out->has_power_cycles = number(root, "power_cycle_count", &out->power_cycles);
	}
	/* A drive in use has been switched on at least once: 0 means that it does not count. */
	if (out->has_power_cycles && out->power_cycles == 0)
		out->has_power_cycles = false;
	json_decref(root);
}
