/* SPDX-License-Identifier: MIT
 *
 * Details on Windows: what a drive was asked, with its answers (win_identify.h), and the machine as its
 * firmware names itself (HKLM\HARDWARE\DESCRIPTION\System\BIOS). Asking includes the query that
 * flushes the drive; it is left out while the drive is in a run.
 */
#include "drive_detail.h"

#include <stdlib.h>
#include <string.h>

#include "handle_win.h"
#include "text.h"
#include "win_identify.h"

static void take_row(void *ctx, const char *label, const char *text)
{
	struct pp_drive_detail *d = ctx;

	if (d->said_count == PP_DRIVE_SAID_MAX)
		return;
	pp_text_copy(d->said[d->said_count].label, sizeof(d->said[0].label), label);
	pp_text_copy(d->said[d->said_count++].text, sizeof(d->said[0].text), text);
}

static int64_t attribute(const struct pp_win_facts *f, uint8_t id)
{
	for (size_t i = 0; i < f->attribute_count; i++)
		if (f->attributes[i].id == id)
			return (int64_t)f->attributes[i].raw;
	return -1;
}

/* 192 of a hard disk counts head retracts (M5.3). */
static void take_counters(const struct pp_win_facts *f, struct pp_drive_detail *d)
{
	if (!f->nvme_log_error) {
		d->power_cycles = (int64_t)f->power_cycles;
		d->unsafe_shutdowns = (int64_t)f->unsafe_shutdowns;
		d->media_errors = (int64_t)f->media_errors;
		d->power_on_hours = (int64_t)f->power_on_hours;
		d->used_percent = f->used_percent;
		d->critical_warning = f->critical_warning;
	}
	if (!f->ata_smart_error) {
		d->power_cycles = attribute(f, 12);
		d->unsafe_shutdowns = attribute(f, 174);
		if (d->unsafe_shutdowns < 0 && !f->seek_error && !f->seek_penalty)
			d->unsafe_shutdowns = attribute(f, 192);
	}
}

static void take_ata(const struct pp_win_facts *f, struct pp_drive_detail *d)
{
	const uint8_t *page = f->ata_identify;

	if (f->ata_error)
		return;
	if ((pp_win_ata_word(page, 83) & 0xc000) == 0x4000) {
		d->ata_cache_supported = (pp_win_ata_word(page, 82) & 1 << 5) != 0;
		d->ata_flush_ext = (pp_win_ata_word(page, 83) & 1 << 13) != 0;
	}
	if ((pp_win_ata_word(page, 84) & 0xc000) == 0x4000)
		d->ata_fua = (pp_win_ata_word(page, 84) & 1 << 6) != 0;
	if ((pp_win_ata_word(page, 87) & 0xc000) == 0x4000)
		d->ata_cache_enabled = (pp_win_ata_word(page, 85) & 1 << 5) != 0;
}

void pp_drive_detail_read(const struct pp_sysroot *sys, const struct pp_drive_info *info,
	struct pp_drive_detail *d)
{
	struct pp_win_facts *facts = malloc(sizeof(*facts));
	unsigned disk;

	(void)sys;
	memset(d, 0, sizeof(*d));
	d->atomic_unit_min_bytes = d->atomic_unit_max_bytes = -1;
	d->atomic_max_bytes = d->atomic_boundary_bytes = -1;
	d->nvme_vwc = d->scsi_fua = d->assumed_write_through = -1;
	d->nvme_awupf_bytes = d->nvme_nawupf_bytes = -1;
	d->ata_cache_supported = d->ata_cache_enabled = d->ata_fua = d->ata_flush_ext = -1;
	d->paths = -1;
	d->power_cycles = d->unsafe_shutdowns = d->media_errors = -1;
	d->power_on_hours = d->used_percent = d->critical_warning = -1;
	if (facts && pp_win_disk_number(info->name, &disk) &&
		pp_win_ask(&pp_win_storage_live, disk, PP_WIN_ASK_ALL, facts, NULL) == 0) {
		pp_text_copy(d->vendor, sizeof(d->vendor), facts->vendor);
		if (!facts->nvme_error)
			d->nvme_vwc = facts->nvme_vwc;
		take_ata(facts, d);
		take_counters(facts, d);
		pp_win_tell(facts, take_row, d);
	}
	free(facts);
}

/* What stands on a volume is in the target's own rows. */
void pp_layer_detail_read(const struct pp_sysroot *sys, const char *name, struct pp_layer_detail *d)
{
	(void)sys;
	(void)name;
	memset(d, 0, sizeof(*d));
}

/* ---- the machine -------------------------------------------------------------------------- */

static void read_bios(const wchar_t *name, char *out, size_t out_bytes)
{
	wchar_t text[96] = L"";
	DWORD bytes = sizeof(text) - sizeof(text[0]);

	out[0] = '\0';
	if (RegGetValueW(HKEY_LOCAL_MACHINE, L"HARDWARE\\DESCRIPTION\\System\\BIOS", name, RRF_RT_REG_SZ, NULL,
		text, &bytes) == ERROR_SUCCESS)
		pp_utf8_copy(out, out_bytes, text);
}

/* Words that only virtual machines have in their firmware's names. The processor's own flag says little
 * here: it is set on a real machine that runs Hyper-V or its security. */
static void find_hypervisor(struct pp_machine *m)
{
	static const char *const words[] = {
		"QEMU", "KVM", "VMware", "innotek", "VirtualBox", "Virtual Machine", "Xen", "Parallels",
		"Bochs", "OpenStack", "Google Compute Engine", "Amazon EC2", "Nutanix", "oVirt", "RHEV",
	};

	if (pp_win_is_wine())
		pp_text_copy(m->hypervisor, sizeof(m->hypervisor), "Wine: this is not Windows");
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]) && !m->hypervisor[0]; i++)
		if (strstr(m->vendor, words[i]) || strstr(m->product, words[i]))
			pp_text_copy(m->hypervisor, sizeof(m->hypervisor), words[i]);
}

void pp_machine_read(const struct pp_sysroot *sys, struct pp_machine *m)
{
	SYSTEM_POWER_STATUS power;

	(void)sys;
	memset(m, 0, sizeof(*m));
	read_bios(L"SystemManufacturer", m->vendor, sizeof(m->vendor));
	read_bios(L"SystemProductName", m->product, sizeof(m->product));
	find_hypervisor(m);
	/* 128: there is no battery; 255: not known. */
	if (GetSystemPowerStatus(&power) && !(power.BatteryFlag & 128))
		pp_text_copy(m->battery, sizeof(m->battery), "system battery");
}
