/* SPDX-License-Identifier: MIT
 *
 * The answers of a physical drive on Windows, for people and as smartctl's JSON.
 */
#include "win_identify.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void pp_win_smart_json(const struct pp_win_facts *f, struct pp_buf *json)
{
	if (!f->nvme_log_error) {
		pp_buf_addf(json, "{\"power_cycle_count\":%" PRIu64 ",\"power_on_time\":{\"hours\":%" PRIu64
			"},\"nvme_smart_health_information_log\":{\"critical_warning\":%u,\"percentage_used\":%u,"
			"\"power_cycles\":%" PRIu64 ",\"unsafe_shutdowns\":%" PRIu64 ",\"media_errors\":%" PRIu64
			"}}\n", f->power_cycles, f->power_on_hours, f->critical_warning, f->used_percent,
			f->power_cycles, f->unsafe_shutdowns, f->media_errors);
		return;
	}
	if (f->ata_smart_error)
		return;
	pp_buf_addf(json, "{");
	for (size_t i = 0; i < f->attribute_count; i++)
		if (f->attributes[i].id == 12)
			pp_buf_addf(json, "\"power_cycle_count\":%" PRIu64 ",", f->attributes[i].raw);
	pp_buf_addf(json, "\"ata_smart_attributes\":{\"table\":[");
	for (size_t i = 0; i < f->attribute_count; i++)
		pp_buf_addf(json, "%s{\"id\":%u,\"raw\":{\"value\":%" PRIu64 "}}", i ? "," : "",
			f->attributes[i].id, f->attributes[i].raw);
	pp_buf_addf(json, "]}}\n");
}

struct teller {
	pp_win_row_fn *row;
	void *ctx;
};

static void __attribute__((format(PP_FORMAT, 4, 5)))
tell(const struct teller *t, const char *label, uint32_t error, const char *fmt, ...)
{
	char text[200], why[64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (error)
		snprintf(text, sizeof(text), "not reported (%s)", pp_win_error_text(error, why));
	t->row(t->ctx, label, text);
}

static const char *pick(const char *const *words, size_t count, uint32_t value)
{
	return value < count ? words[value] : "unknown";
}

static void tell_property(const struct teller *t, const struct pp_win_facts *f)
{
	static const char *const types[] = {"unknown", "none", "write back", "write through"};
	static const char *const enabled[] = {"unknown", "off", "on"};
	static const char *const yes[] = {"unknown", "no", "yes"};
	const struct pp_win_write_cache *p = &f->property;
	uint32_t error = f->property_error;

	tell(t, "cache property", error, "%s", pick(types, 4, p->type));
	if (error)
		return;
	tell(t, "  enabled", 0, "%s", pick(enabled, 3, p->enabled));
	tell(t, "  changeable", 0, "%s", pick(yes, 3, p->changeable));
	tell(t, "  write-through", 0, "%s", pick(yes, 3, p->write_through));
	tell(t, "  flush", 0, "%s", p->flush_supported ? "supported" : "not supported");
	tell(t, "  user protection", 0, "%s", p->user_protection ? "yes" : "no");
}

/* A value that is absent is an answer. */
static void tell_registry(const struct teller *t, const char *name, uint32_t error, uint32_t value,
	const char *absent)
{
	char why[64];

	if (error == PP_WIN_NOT_FOUND)
		tell(t, "registry", 0, "%s absent: %s", name, absent);
	else if (error)
		tell(t, "registry", 0, "%s: not reported (%s)", name, pp_win_error_text(error, why));
	else
		tell(t, "registry", 0, "%s = %d", name, (int)value);
}

static void tell_nvme(const struct teller *t, const struct pp_win_facts *f)
{
	tell(t, "NVMe VWC", f->nvme_error, "%s", f->nvme_vwc ? "present" : "none");
	tell(t, "NVMe feature 06h", f->nvme_feature_error, "%s", f->nvme_cache ? "on" : "off");
	tell(t, "NVMe SMART log", f->nvme_log_error, "power cycles %" PRIu64 ", unsafe shutdowns %" PRIu64
		", media errors %" PRIu64 ", critical warning 0x%02x", f->power_cycles, f->unsafe_shutdowns,
		f->media_errors, f->critical_warning);
}

static void tell_ata(const struct teller *t, const struct pp_win_facts *f)
{
	const uint8_t *page = f->ata_identify;
	bool valid = !f->ata_error && (pp_win_ata_word(page, 87) & 0xc000) == 0x4000;

	tell(t, "ATA write cache", f->ata_error, "%s", !valid ? "not told" :
		!(pp_win_ata_word(page, 82) & 1 << 5) ? "none" : pp_win_ata_word(page, 85) & 1 << 5 ? "on" : "off");
	tell(t, "ATA FUA", f->ata_error, "%s", (pp_win_ata_word(page, 84) & 0xc000) != 0x4000 ? "not told" :
		pp_win_ata_word(page, 84) & 1 << 6 ? "yes" : "no");
	tell(t, "ATA counters", f->ata_smart_error, "%u attributes",
		(unsigned)f->attribute_count);
	for (size_t i = 0; i < f->attribute_count; i++) {
		uint8_t id = f->attributes[i].id;

		if (id == 12 || id == 174 || id == 192)
			tell(t, id == 12 ? "  power cycles" : "  power losses", 0, "%" PRIu64 " (attribute %u)",
				f->attributes[i].raw, id);
	}
}

void pp_win_tell(const struct pp_win_facts *f, pp_win_row_fn *row, void *ctx)
{
	static const char *const states[] = {
		"normal", "the drive refuses write-through", "the cache cannot be changed",
	};
	const struct teller t = {row, ctx};
	char number[32];

	tell(&t, "bus type", f->descriptor_error, "%s", pp_win_bus_name(f->bus, number));
	tell(&t, "sectors", f->alignment_error, "%u bytes logical, %u physical",
		(unsigned)f->logical_bytes, (unsigned)f->physical_bytes);
	tell(&t, "medium", f->seek_error, "%s", f->seek_penalty ? "rotates, says Windows" :
		"does not rotate");
	tell(&t, "hot-plug", f->hotplug_error, "%s", f->hotplug ? "yes: cache off by default" : "no");
	tell(&t, "write cache", f->info_error, "%s", f->info.write_enabled ? "on" : "off");
	tell(&t, "cache setting", f->setting_error, "%s, power protected: %s",
		pick(states, 3, f->setting.state), f->setting.power_protected ? "yes" : "no");
	tell_property(&t, f);
	if (f->instance_error) {
		tell(&t, "registry", f->instance_error, "-");
	} else {
		tell_registry(&t, PP_WIN_USER_WRITE_CACHE, f->user_cache_error, f->user_cache,
			"Windows' default");
		tell_registry(&t, PP_WIN_CACHE_IS_PROTECTED, f->protected_error, f->protected_value,
			"not ticked");
	}
	if (!f->descriptor_error && f->bus == PP_WIN_BUS_NVME)
		tell_nvme(&t, f);
	if (!f->descriptor_error && pp_win_bus_is_ata(f->bus))
		tell_ata(&t, f);
}
