/* SPDX-License-Identifier: MIT
 *
 * The fields of a drive. Text and JSON come from this one table; a new field is a new row.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "identify_parts.h"
#include "src/core/link.h"

#define FIELD(name) static void get_##name(const struct identify_subject *s, struct identify_value *v)
#define TEXT_FIELD(name, expression) FIELD(name) { set_text(v, expression); }
#define NUMBER_FIELD(name, expression) FIELD(name) { set_number(v, IDENTIFY_NUMBER, expression); }
#define TRUTH_FIELD(name, expression) FIELD(name) { set_number(v, IDENTIFY_TRUTH, expression); }

static void set_text(struct identify_value *v, const char *text)
{
	v->kind = IDENTIFY_TEXT;
	snprintf(v->text, sizeof(v->text), "%s", text);
}

static void set_number(struct identify_value *v, int kind, int64_t number)
{
	v->kind = kind;
	v->number = number;
}

TEXT_FIELD(node, s->drive.node)
TEXT_FIELD(vendor, s->detail.vendor)
TEXT_FIELD(model, s->drive.model)
TEXT_FIELD(serial, s->drive.serial)
TEXT_FIELD(wwn, s->drive.wwn)
TEXT_FIELD(firmware, s->drive.firmware)
TEXT_FIELD(transport, pp_transport_name(s->drive.transport))
TEXT_FIELD(fabric, s->detail.fabric)
TEXT_FIELD(controller, s->detail.controller_driver)
TEXT_FIELD(raid, s->drive.raid_controller)
TEXT_FIELD(usb_bridge, s->detail.usb_bridge)
TEXT_FIELD(usb_driver, s->detail.usb_driver)
TEXT_FIELD(backing_file, s->drive.backing_file)
NUMBER_FIELD(paths, s->detail.paths)
NUMBER_FIELD(logical, s->drive.logical_block_bytes)
NUMBER_FIELD(physical, s->drive.physical_block_bytes)
NUMBER_FIELD(stripe, s->drive.stripe_bytes ? (int64_t)s->drive.stripe_bytes : -1)
TEXT_FIELD(write_cache, s->drive.write_cache)
TRUTH_FIELD(fua, s->drive.fua)
TRUTH_FIELD(rotational, s->drive.rotational)
TRUTH_FIELD(removable, s->drive.removable)
TRUTH_FIELD(read_only, s->drive.read_only)
TRUTH_FIELD(partitions, s->drive.has_partitions)
NUMBER_FIELD(atomic_unit_min, s->detail.atomic_unit_min_bytes)
NUMBER_FIELD(atomic_unit_max, s->detail.atomic_unit_max_bytes)
NUMBER_FIELD(atomic_max, s->detail.atomic_max_bytes)
NUMBER_FIELD(atomic_boundary, s->detail.atomic_boundary_bytes)
TRUTH_FIELD(nvme_vwc, s->detail.nvme_vwc)
NUMBER_FIELD(nvme_awupf, s->detail.nvme_awupf_bytes)
NUMBER_FIELD(nvme_nawupf, s->detail.nvme_nawupf_bytes)
TRUTH_FIELD(ata_cache_supported, s->detail.ata_cache_supported)
TRUTH_FIELD(ata_cache_enabled, s->detail.ata_cache_enabled)
TRUTH_FIELD(ata_fua, s->detail.ata_fua)
TRUTH_FIELD(ata_flush_ext, s->detail.ata_flush_ext)
TEXT_FIELD(scsi_cache_type, s->detail.scsi_cache_type)
TRUTH_FIELD(scsi_dpofua, s->detail.scsi_fua)
TRUTH_FIELD(assumed, s->detail.assumed_write_through)
NUMBER_FIELD(power_cycles, s->counters.power_cycles)
NUMBER_FIELD(unsafe_shutdowns, s->counters.unsafe_shutdowns)
NUMBER_FIELD(media_errors, s->counters.media_errors)
NUMBER_FIELD(power_on_hours, s->counters.power_on_hours)
NUMBER_FIELD(used_percent, s->counters.used_percent)
NUMBER_FIELD(critical_warning, s->counters.critical_warning)

FIELD(size)
{
	set_number(v, IDENTIFY_BYTES, (int64_t)s->drive.size_bytes);
}

FIELD(medium)
{
	/* Where the system was asked itself, its answer or refusal is among what it said. */
	bool silent = pp_transport_layer(s->drive.transport) || s->detail.said_count;

	set_text(v, silent ? "" : s->drive.rotational ? "rotates, says the kernel" : "does not rotate");
}

FIELD(link)
{
	struct pp_link link;

	set_text(v, pp_link_of_disk(s->sys, s->drive.name, &link) ? link.text : "");
}

FIELD(drive_cache)
{
	static const char *const names[] = {
		[PP_CACHE_UNKNOWN] = "", [PP_CACHE_NONE] = "none", [PP_CACHE_OFF] = "off",
		[PP_CACHE_ON] = "on",
	};

	/* What sd assumed is not the drive's word. */
	set_text(v, s->detail.assumed_write_through == 1 ? "" : names[s->drive.drive_cache]);
}

FIELD(policy)
{
	v->kind = IDENTIFY_TEXT;
	pp_drive_policy(&s->drive, v->text, sizeof(v->text));
}

/* One line for people: what the drive itself promises not to tear. */
FIELD(untorn)
{
	const struct pp_drive_detail *d = &s->detail;

	v->kind = IDENTIFY_TEXT;
	v->text[0] = '\0';
	if (d->nvme_awupf_bytes > 0)
		snprintf(v->text, sizeof(v->text), "%" PRId64 " bytes, the drive says (AWUPF)",
			d->nvme_nawupf_bytes > 0 ? d->nvme_nawupf_bytes : d->nvme_awupf_bytes);
	else if (d->atomic_unit_max_bytes > 0)
		snprintf(v->text, sizeof(v->text), "%" PRId64 " to %" PRId64 " bytes, the kernel says",
			d->atomic_unit_min_bytes, d->atomic_unit_max_bytes);
}

const struct identify_field identify_fields[] = {
	{"device", "device", get_node},
	{"vendor", NULL, get_vendor},
	{"model", "model", get_model},
	{"serial", "serial", get_serial},
	{"wwn", "WWN", get_wwn},
	{"firmware", "firmware", get_firmware},
	{"transport", "transport", get_transport},
	{"fabric", "network", get_fabric},
	{"link", "link", get_link},
	{"controller_driver", "controller", get_controller},
	{"raid_controller", NULL, get_raid},
	{"usb_bridge", "USB bridge", get_usb_bridge},
	{"usb_driver", NULL, get_usb_driver},
	{"backing_file", "backing file", get_backing_file},
	{"paths", NULL, get_paths},
	{"size_bytes", "size", get_size},
	{"logical_block_bytes", "logical block", get_logical},
	{"physical_block_bytes", "physical block", get_physical},
	{"stripe_bytes", "parity stripe", get_stripe},
	{"medium", "medium", get_medium},
	{"rotational", NULL, get_rotational},
	{"removable", NULL, get_removable},
	{"read_only", NULL, get_read_only},
	{"partitions", NULL, get_partitions},
	{"policy", "cache policy", get_policy},
	{"kernel_write_cache", NULL, get_write_cache},
	{"fua", NULL, get_fua},
	{"drive_cache", "drive's own cache", get_drive_cache},
	{"nvme_vwc", "NVMe VWC", get_nvme_vwc},
	{"ata_write_cache_supported", NULL, get_ata_cache_supported},
	{"ata_write_cache_enabled", "ATA write cache", get_ata_cache_enabled},
	{"ata_fua", "ATA FUA", get_ata_fua},
	{"ata_flush_ext", NULL, get_ata_flush_ext},
	{"scsi_cache_type", "SCSI cache type", get_scsi_cache_type},
	{"scsi_dpofua", "SCSI DPOFUA", get_scsi_dpofua},
	{"write_through_assumed", NULL, get_assumed},
	{"atomic", "untorn by a cut", get_untorn},
	{"atomic_write_unit_min_bytes", NULL, get_atomic_unit_min},
	{"atomic_write_unit_max_bytes", NULL, get_atomic_unit_max},
	{"atomic_write_max_bytes", NULL, get_atomic_max},
	{"atomic_write_boundary_bytes", NULL, get_atomic_boundary},
	{"nvme_awupf_bytes", NULL, get_nvme_awupf},
	{"nvme_nawupf_bytes", NULL, get_nvme_nawupf},
	{"power_cycles", "power cycles", get_power_cycles},
	{"unsafe_shutdowns", "unsafe shutdowns", get_unsafe_shutdowns},
	{"media_errors", "media errors", get_media_errors},
	{"power_on_hours", "hours powered on", get_power_on_hours},
	{"used_percent", "endurance used, %", get_used_percent},
	{"nvme_critical_warning", NULL, get_critical_warning},
};
const size_t identify_field_count = sizeof(identify_fields) / sizeof(identify_fields[0]);

bool identify_is_known(const struct identify_value *v)
{
	return v->kind == IDENTIFY_TEXT ? v->text[0] != '\0' : v->number >= 0;
}

void identify_value_text(const struct identify_value *v, char *out, size_t out_bytes)
{
	if (v->kind == IDENTIFY_TEXT)
		snprintf(out, out_bytes, "%s", v->text);
	else if (v->kind == IDENTIFY_BYTES)
		snprintf(out, out_bytes, "%.1f GB (%" PRId64 " bytes)", (double)v->number / 1e9, v->number);
	else if (v->kind == IDENTIFY_NUMBER)
		snprintf(out, out_bytes, "%" PRId64, v->number);
	else
		snprintf(out, out_bytes, "%s", v->number ? "yes" : "no");
}
