/* SPDX-License-Identifier: MIT
 *
 * The traps: what would make a measurement on this target mean something else than it seems. One
 * table; a new trap is a new row with its rule above.
 */
#include <stdio.h>
#include <string.h>

#include "identify_parts.h"

#define TRAP(name) \
	static bool name(const struct identify_subject *s, struct identify_why *why)
#define UNUSED (void)why

/* ---- what the kernel sends to this drive -------------------------------------------------- */

static bool kernel_drops_flushes(const struct identify_subject *s)
{
	return strcmp(s->drive.write_cache, "write through") == 0;
}

/* The mode page says write back, in libata's and the bridge's words too. */
static bool cache_is_on(const struct identify_subject *s)
{
	return s->drive.drive_cache == PP_CACHE_ON ||
		(s->drive.drive_cache == PP_CACHE_UNKNOWN &&
			strncmp(s->detail.scsi_cache_type, "write back", 10) == 0);
}

TRAP(write_through_over_write_back)
{
	snprintf(why->text, sizeof(why->text), "echo 'write back' > /sys/block/%s/queue/write_cache",
		s->drive.name);
	return kernel_drops_flushes(s) && cache_is_on(s);
}

/* The class driver's DEV_POWER_PROTECTED, over a cache that is on or not known. */
TRAP(flushing_off)
{
	UNUSED;
	return strstr(s->drive.write_cache, "flushing off") && s->drive.drive_cache != PP_CACHE_OFF &&
		s->drive.drive_cache != PP_CACHE_NONE;
}

/* sd.c, "Assuming drive cache: write through": what it says of a drive that does not answer. */
TRAP(write_through_guessed)
{
	bool told = s->detail.assumed_write_through == 1;

	if (told)
		snprintf(why->text, sizeof(why->text),
			"kernel log: [%s] Assuming drive cache: write through", s->drive.name);
	return kernel_drops_flushes(s) && !cache_is_on(s) && (told ||
		(s->drive.transport == PP_TRANSPORT_USB && s->drive.drive_cache == PP_CACHE_UNKNOWN));
}

TRAP(write_through_unasked)
{
	struct identify_why unused;

	UNUSED;
	return kernel_drops_flushes(s) && !cache_is_on(s) &&
		s->drive.drive_cache == PP_CACHE_UNKNOWN && !write_through_guessed(s, &unused) &&
		s->drive.transport != PP_TRANSPORT_RAM && !pp_transport_layer(s->drive.transport);
}

TRAP(no_volatile_cache)
{
	UNUSED;
	return s->drive.no_volatile_cache;
}

/* Critical Warning bit 4: the backup of the volatile memory failed. */
TRAP(protection_failed)
{
	UNUSED;
	return s->counters.critical_warning >= 0 && (s->counters.critical_warning & 0x10);
}

TRAP(raid_card)
{
	snprintf(why->text, sizeof(why->text), "driver %s", s->drive.raid_controller);
	return s->drive.raid_controller[0] != '\0';
}

/* ---- where the drive is ------------------------------------------------------------------- */

TRAP(remote_drive)
{
	if (s->detail.fabric[0])
		snprintf(why->text, sizeof(why->text), "by %s", s->detail.fabric);
	return s->drive.transport == PP_TRANSPORT_NBD || s->drive.transport == PP_TRANSPORT_ISCSI ||
		s->detail.fabric[0];
}

TRAP(loop_device)
{
	if (s->drive.backing_file[0])
		snprintf(why->text, sizeof(why->text), "%.250s", s->drive.backing_file);
	return s->drive.transport == PP_TRANSPORT_LOOP;
}

/* Names that hypervisors give to the disks that they make up; anywhere in vendor or model. */
TRAP(virtual_disk)
{
	static const char *const names[] = {
		"QEMU", "VMware", "VBOX", "Virtual Disk", "PersistentDisk", "Elastic Block Store",
		"Parallels",
	};
	bool found = s->drive.transport == PP_TRANSPORT_VIRTIO || strncmp(s->drive.name, "xvd", 3) == 0;

	UNUSED;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		found |= strstr(s->drive.model, names[i]) || strstr(s->detail.vendor, names[i]);
	return found;
}

TRAP(memory_disk)
{
	UNUSED;
	return s->drive.transport == PP_TRANSPORT_RAM;
}

TRAP(removable)
{
	UNUSED;
	return s->drive.removable;
}

TRAP(multipath)
{
	snprintf(why->text, sizeof(why->text), "%lld paths", (long long)s->detail.paths);
	return s->detail.paths > 1;
}

/* ---- who the drive is --------------------------------------------------------------------- */

TRAP(no_serial)
{
	UNUSED;
	return !s->drive.serial[0] && !s->drive.wwn[0];
}

TRAP(bridge_serial)
{
	UNUSED;
	return s->drive.serial_of_bridge;
}

/* Said of the disks beneath, once. */
TRAP(system_drive)
{
	return !pp_transport_layer(s->drive.transport) &&
		pp_drive_carries_system(s->sys, s->drive.name, why->text, sizeof(why->text), NULL) == 1;
}

/* 512e and 4Kn (M2.5). */
TRAP(record_size)
{
	snprintf(why->text, sizeof(why->text), "record_bytes = %u, or a multiple",
		s->drive.physical_block_bytes);
	return s->drive.physical_block_bytes > 512 && !pp_transport_layer(s->drive.transport);
}

bool identify_as_expected(const struct identify_subject *s)
{
	struct pp_drive_info info;

	for (size_t i = 0; i < s->stack->layer_count; i++) {
		if (!s->stack->layers[i].whole ||
			pp_drive_read(s->sys, s->stack->layers[i].name, &info, NULL) != 0)
			continue;
		for (size_t k = 0; k < s->expected_count; k++)
			if (pp_drive_is(&info, s->expected[k]))
				return true;
	}
	return !s->expected_count;
}

static void name_expected(const struct identify_subject *s, struct identify_why *why)
{
	snprintf(why->text, sizeof(why->text), "expected %.100s%s", s->expected[0],
		s->expected_count > 1 ? " or another of the plan" : "");
}

TRAP(other_drive)
{
	if (identify_as_expected(s))
		return false;
	name_expected(s, why);
	return true;
}

TRAP(missing_drive)
{
	struct pp_drive_info info;

	for (size_t i = 0; !s->stack && i < s->expected_count; i++)
		if (pp_drive_find(s->sys, s->expected[i], &info, NULL) != 0) {
			snprintf(why->text, sizeof(why->text), "%.250s", s->expected[i]);
			return true;
		}
	return false;
}

/* ---- the file system ---------------------------------------------------------------------- */

static bool fs_is(const struct identify_subject *s, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(s->stack->fs_type, *names) == 0)
			return true;
	return false;
}

TRAP(overlay_volatile)
{
	UNUSED;
	return strcmp(s->stack->fs_type, "overlay") == 0 && pp_stack_option(s->stack, "volatile");
}

TRAP(no_barrier)
{
	return pp_stack_no_barrier(s->stack) && !overlay_volatile(s, why);
}

TRAP(memory_fs)
{
	static const char *const names[] = {"tmpfs", "ramfs", "rootfs", "devtmpfs", NULL};

	UNUSED;
	return fs_is(s, names);
}

TRAP(network_fs)
{
	static const char *const names[] = {
		"nfs", "nfs4", "cifs", "smb3", "ceph", "9p", "virtiofs", "afs", "lustre", "gfs2", "glusterfs",
		"fuse.glusterfs", "fuse.sshfs", "fuse.ceph", NULL,
	};

	snprintf(why->text, sizeof(why->text), "%s %.200s", s->stack->fs_type, s->stack->fs_source);
	return fs_is(s, names);
}

TRAP(data_journal)
{
	UNUSED;
	return pp_stack_option(s->stack, "data=journal");
}

/* M7.2: overwrite never overwrites; nodatacow is btrfs's way out. */
TRAP(copy_on_write)
{
	static const char *const names[] = {"btrfs", "zfs", "bcachefs", "f2fs", "nilfs2", NULL};

	snprintf(why->text, sizeof(why->text), "%s", s->stack->fs_type);
	return fs_is(s, names) && !pp_stack_option(s->stack, "nodatacow");
}

TRAP(no_drive)
{
	struct identify_why unused;

	UNUSED;
	return s->stack->disk_count == 0 && !memory_fs(s, &unused) && !network_fs(s, &unused);
}

/* Paths of one drive have one name. */
TRAP(several_drives)
{
	struct pp_drive_info first, other;

	UNUSED;
	for (size_t i = 1; i < s->stack->disk_count; i++)
		if (pp_drive_read(s->sys, s->stack->disks[0], &first, NULL) != 0 ||
			pp_drive_read(s->sys, s->stack->disks[i], &other, NULL) != 0 ||
			!pp_drive_is(&other, first.serial[0] ? first.serial : first.wwn))
			return true;
	return false;
}

TRAP(overlay)
{
	UNUSED;
	return strcmp(s->stack->fs_type, "overlay") == 0;
}

/* ---- the machine -------------------------------------------------------------------------- */

TRAP(hypervisor)
{
	snprintf(why->text, sizeof(why->text), "%s", s->machine->hypervisor);
	return s->machine->hypervisor[0] != '\0';
}

TRAP(battery)
{
	snprintf(why->text, sizeof(why->text), "%s", s->machine->battery);
	return s->machine->battery[0] != '\0';
}

TRAP(container)
{
	UNUSED;
	return s->machine->container;
}

/* ---- the table ---------------------------------------------------------------------------- */

const struct identify_trap identify_traps[] = {
	{"write-through-over-write-back", IDENTIFY_OF_DRIVE, false, write_through_over_write_back,
		"the kernel believes write through and drops every flush, but the drive's own cache is on: "
		"nothing here is safe from a power cut until that is set back"},
	{"flushing-off", IDENTIFY_OF_DRIVE, false, flushing_off,
		"Windows completes every flush without sending it (the box \"Turn off Windows write-cache buffer "
		"flushing\" is ticked): nothing here is safe from a power cut, unless the drive's cache is"},
	{"write-through-guessed", IDENTIFY_OF_DRIVE, false, write_through_guessed,
		"the kernel assumes write through, because the drive or the USB bridge before it does not "
		"tell: no flush is ever sent, whatever cache the disk has"},
	{"write-through-unasked", IDENTIFY_OF_DRIVE, false, write_through_unasked,
		"the kernel sends no flush to this device (write through), and the drive could not be asked "
		"whether its own cache is on (root may ask)"},
	{"no-volatile-cache", IDENTIFY_OF_DRIVE, false, no_volatile_cache,
		"the drive declares no volatile cache (NVMe: VWC 0): flushes are not sent, safety rests on its "
		"own power-loss protection alone, and no command tells whether it has any: see its data "
		"sheet, then cut"},
	{"protection-failed", IDENTIFY_OF_DRIVE, false, protection_failed,
		"the drive reports that its power-loss protection has failed (critical warning, bit 4)"},
	{"raid-card", IDENTIFY_OF_DRIVE, false, raid_card,
		"a RAID card is above this disk, perhaps with a cache of its own: a verdict is about the two "
		"together, and holds only for the card's battery and settings of that day"},
	{"remote-drive", IDENTIFY_OF_DRIVE, false, remote_drive,
		"this drive is on a network: cutting this machine's power does not reach the cache that "
		"matters; cut the server's too"},
	{"loop-device", IDENTIFY_OF_DRIVE, false, loop_device,
		"a loop device is a file: what a cut tells is about the file system beneath it too"},
	{"virtual-disk", IDENTIFY_OF_DRIVE, false, virtual_disk,
		"a hypervisor makes this disk up: killing the guest leaves the host's cache and the real "
		"drive's alone; only a cut of the host's mains reaches them"},
	{"memory-disk", IDENTIFY_OF_DRIVE, false, memory_disk,
		"this disk is memory: everything on it is gone after a cut"},
	{"removable", IDENTIFY_OF_DRIVE, true, removable,
		"the medium is removable: be sure that it is the same one after each cut"},
	{"multipath", IDENTIFY_OF_DRIVE, true, multipath,
		"this drive has several ways to it: use the multipath device as the target, and cut the power "
		"of the drive's own shelf"},
	{"no-serial", IDENTIFY_OF_DRIVE, false, no_serial,
		"the drive tells no serial or WWN: no campaign can prove that it is the same drive after a "
		"cut"},
	{"bridge-serial", IDENTIFY_OF_DRIVE, false, bridge_serial,
		"the serial may be the USB enclosure's: another disk in it would look the same"},
	{"system-drive", IDENTIFY_OF_DRIVE, false, system_drive,
		"the drive carries the running system: it is a target only where the plan says boot_drive = "
		"yes"},
	{"record-size", IDENTIFY_OF_DRIVE, true, record_size,
		"the drive writes blocks larger than 512 bytes: a smaller record makes it rewrite its "
		"neighbours"},
	{"other-drive", IDENTIFY_OF_TARGET, false, other_drive,
		"this is not the drive that was to be tested"},
	{"no-barrier", IDENTIFY_OF_TARGET, false, no_barrier,
		"a mount option switches barriers off, so that no sync reaches the drive: losses here say "
		"nothing about the drive"},
	{"overlay-volatile", IDENTIFY_OF_TARGET, false, overlay_volatile,
		"this overlay is mounted volatile: every sync on it is left out"},
	{"memory-fs", IDENTIFY_OF_TARGET, false, memory_fs,
		"this file system is memory: a sync does nothing, and everything is gone after a cut"},
	{"network-fs", IDENTIFY_OF_TARGET, false, network_fs,
		"this file system is another machine's: cutting this machine's power tells nothing about the "
		"drives there"},
	{"data-journal", IDENTIFY_OF_TARGET, false, data_journal,
		"data=journal: every write goes through the journal, O_DIRECT is ignored, and the control "
		"that shows the drive's own cache does not work here"},
	{"copy-on-write", IDENTIFY_OF_TARGET, true, copy_on_write,
		"this file system never overwrites in place: the workload overwrite measures new blocks and "
		"metadata, and the control that shows the drive's own cache needs a raw area"},
	{"no-drive", IDENTIFY_OF_TARGET, false, no_drive,
		"no drive of this machine can be seen beneath: what a sync means here cannot be judged by a "
		"power cut"},
	{"several-drives", IDENTIFY_OF_TARGET, false, several_drives,
		"more than one drive is beneath: a verdict is about the set, and no two of these drives can "
		"be tested in one cut"},
	{"overlay", IDENTIFY_OF_TARGET, false, overlay,
		"an overlay (a container's file system) is on top: use a folder that is mounted from the "
		"drive itself"},
	{"hypervisor", IDENTIFY_OF_MACHINE, false, hypervisor,
		"this machine is a virtual one: a verdict is about the hypervisor's promise, not about a "
		"drive, unless the host's mains are cut"},
	{"container", IDENTIFY_OF_MACHINE, true, container,
		"this is a container: identify sees the host's drives, but not every path of the host"},
	{"battery", IDENTIFY_OF_MACHINE, false, battery,
		"a battery feeds this machine: switching the mains off cuts nothing until it is taken out"},
	{"missing-drive", IDENTIFY_OF_MACHINE, false, missing_drive,
		"a drive that was to be tested is not on this machine"},
};
const size_t identify_trap_count = sizeof(identify_traps) / sizeof(identify_traps[0]);
