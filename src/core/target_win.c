/* SPDX-License-Identifier: MIT
 *
 * The proof on Windows (docs/method.md, M2.7). Windows mounts by itself, so a file target is always a
 * folder that the plan names; its volume is asked by the open handle, and what the storage layer
 * (drive.h) finds beneath must be the planned drive and no other. A raw target is a physical drive
 * of that number and serial that is offline, or has no volume on it: Windows refuses writes into a
 * mounted volume, and would write into an unmounted one by itself.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "descriptor.h"
#include "handle_win.h"
#include "target_parts.h"
#include "text.h"
#include "volume_win.h"
#include "win_raw.h"

#include <winioctl.h>

#define READ_BYTES     4096U
#define SIGNATURE_BYTES 65536U
#define PAGE_BYTES     4096U /* of x86-64; a view begins at more, but what is written is pages */

/* IOCTL_DISK_GET_DISK_ATTRIBUTES and its answer (winioctl.h, Windows 7): headers may lack them. */
#define GET_DISK_ATTRIBUTES 0x000700f0u
struct disk_attributes {
	DWORD version, reserved;
	DWORDLONG attributes;
};
_Static_assert(GET_DISK_ATTRIBUTES == CTL_CODE(IOCTL_DISK_BASE, 0x003c, METHOD_BUFFERED,
	FILE_ANY_ACCESS) && sizeof(struct disk_attributes) == 16, "GET_DISK_ATTRIBUTES");
_Static_assert(ERROR_NO_MORE_FILES == PP_WIN_NO_MORE, "winerror.h");

static bool control(int fd, DWORD code, void *out, DWORD out_bytes)
{
	DWORD n;

	return DeviceIoControl(pp_handle_of(fd), code, NULL, 0, out, out_bytes, &n, NULL);
}

/* ---- does it read? ------------------------------------------------------------------------ */

int pp_target_readable(const char *node, uint64_t size_bytes, struct pp_error *err)
{
	uint64_t last = size_bytes / READ_BYTES ? size_bytes / READ_BYTES - 1 : 0;
	uint64_t blocks[3] = { 0, last / 2, last };
	void *buf = VirtualAlloc(NULL, READ_BYTES, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	int fd, rc = 0;

	if (!buf)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	if (pp_open_win(node, O_RDONLY | O_DIRECT, &fd, err) != 0) {
		VirtualFree(buf, 0, MEM_RELEASE);
		return -1;
	}
	for (int i = 0; i < 3 && rc == 0; i++) {
		OVERLAPPED at = { .Offset = (DWORD)(blocks[i] * READ_BYTES),
			.OffsetHigh = (DWORD)(blocks[i] * READ_BYTES >> 32) };
		DWORD n = 0;

		if (!ReadFile(pp_handle_of(fd), buf, READ_BYTES, &n, &at))
			rc = pp_fail_win(err, GetLastError(), "drive '%s' does not read", node);
		else if (n != READ_BYTES)
			rc = pp_fail(err, PP_ERR_SYSTEM, "drive '%s' does not read: short", node);
	}
	close(fd);
	VirtualFree(buf, 0, MEM_RELEASE);
	return rc;
}

/* A volume in a drive's place, or a drive that only an administrator may read: not asked. */
static int check_readable(const struct pp_target_spec *spec, struct pp_target *t,
	struct pp_error *err)
{
	struct pp_error why = { 0 };
	bool denied;

	if (pp_win_raw_number(t->drive.node) < 0 ||
		pp_target_readable(t->drive.node, t->drive.size_bytes, &why) == 0)
		return 0;
	denied = why.os_code == pp_win_code(ERROR_ACCESS_DENIED);
	if (denied && spec->kind == PP_TARGET_FILE)
		return 0;
	return pp_target_fail(&t->state, denied ? PP_TARGET_FAILED : PP_TARGET_DRIVE_UNREADABLE, err,
		"%s%s", why.text, denied ? ": run it as an administrator" : "");
}

/* ---- raw ---------------------------------------------------------------------------------- */

/* ctx of struct pp_win_raw_calls: the drive's descriptor, and where the list of volumes stands. */
struct looking {
	int fd;
	HANDLE find;
};

static uint32_t ask_attributes(void *ctx, uint64_t *attributes)
{
	const struct looking *l = ctx;
	struct disk_attributes has = { 0 };

	if (!control(l->fd, GET_DISK_ATTRIBUTES, &has, sizeof(has)))
		return GetLastError();
	*attributes = has.attributes;
	return 0;
}

static void ask_disks(const wchar_t *volume, struct pp_win_volume_place *place)
{
	union {
		VOLUME_DISK_EXTENTS extents;
		uint8_t room[sizeof(VOLUME_DISK_EXTENTS) + PP_WIN_EXTENTS_MAX * sizeof(DISK_EXTENT)];
	} u = { 0 };
	HANDLE handle = CreateFileW(volume, 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING,
		0, NULL);
	DWORD got, i;

	if (handle == INVALID_HANDLE_VALUE) {
		place->code = GetLastError();
		return;
	}
	if (!DeviceIoControl(handle, IOCTL_VOLUME_GET_VOLUME_DISK_EXTENTS, NULL, 0, &u, sizeof(u), &got,
		NULL))
		place->code = GetLastError();
	CloseHandle(handle);
	for (i = 0; (!place->code || place->code == ERROR_MORE_DATA) &&
		i < u.extents.NumberOfDiskExtents && i < PP_WIN_EXTENTS_MAX; i++)
		place->disk[place->disks++] = u.extents.Extents[i].DiskNumber;
}

static uint32_t next_volume(void *ctx, size_t i, struct pp_win_volume_place *place)
{
	struct looking *l = ctx;
	wchar_t volume[64];
	size_t n;

	if (i == 0) {
		l->find = FindFirstVolumeW(volume, 64);
		if (l->find == INVALID_HANDLE_VALUE)
			return GetLastError();
	} else if (!FindNextVolumeW(l->find, volume, 64)) {
		return GetLastError();
	}
	pp_utf8_copy(place->name, sizeof(place->name), volume);
	place->no_disk = GetDriveTypeW(volume) == DRIVE_CDROM;
	n = wcslen(volume);
	if (n && volume[n - 1] == L'\\')
		volume[n - 1] = L'\0'; /* with it, it would be the root folder */
	ask_disks(volume, place);
	return 0;
}

static int check_unused(struct pp_target *t, int number, struct pp_error *err)
{
	struct looking l = { .fd = t->fd, .find = INVALID_HANDLE_VALUE };
	struct pp_win_raw_calls calls = { &l, ask_attributes, next_volume };
	int rc = pp_win_raw_unused(&calls, t->drive.node, (unsigned)number, &t->state, err);

	if (l.find != INVALID_HANDLE_VALUE)
		FindVolumeClose(l.find);
	return rc;
}

static int check_signatures(const struct pp_target_spec *spec, struct pp_target *t,
	struct pp_error *err)
{
	struct pp_error why;
	char found[256];

	if (pp_target_signatures(t->drive.node, found, sizeof(found), &why) != 0)
		return pp_target_fail(&t->state, PP_TARGET_DRIVE_UNREADABLE, err, "%s", why.text);
	if (found[0] && !spec->force)
		return pp_target_fail(&t->state, PP_TARGET_REFUSED, err,
			"'%s' holds data (%s): if it may be destroyed, use --force", t->drive.node, found);
	return 0;
}

static int prove_raw(const struct pp_target_spec *spec, struct pp_target *t, struct pp_error *err)
{
	int number = pp_win_raw_number(t->drive.node);
	GET_LENGTH_INFORMATION length;
	STORAGE_DEVICE_NUMBER is;
	struct pp_error why;

	if (number < 0)
		return pp_target_fail(&t->state, PP_TARGET_REFUSED, err, "'%s' is no physical drive: a raw "
			"target needs one with a serial", t->drive.node);
	if (pp_open_win(t->drive.node, O_RDWR | O_DIRECT, &t->fd, &why) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "%s%s", why.text,
			why.os_code == pp_win_code(ERROR_ACCESS_DENIED) ? ": run it as an administrator" : "");
	if (!control(t->fd, IOCTL_STORAGE_GET_DEVICE_NUMBER, &is, sizeof(is)) ||
		(int)is.DeviceNumber != number)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err,
			"'%s' is not the drive that Windows calls by that name", t->drive.node);
	if (!control(t->fd, IOCTL_DISK_GET_LENGTH_INFO, &length, sizeof(length)))
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "cannot ask the size of '%s': "
			"error %lu", t->drive.node, GetLastError());
	t->size_bytes = (uint64_t)length.Length.QuadPart;
	if (t->size_bytes < spec->size_bytes || t->size_bytes < spec->drive_size_bytes)
		return pp_target_fail(&t->state, PP_TARGET_DRIVE_CHANGED, err,
			"'%s' has %llu bytes, less than planned", t->drive.node,
			(unsigned long long)t->size_bytes);
	if (check_unused(t, number, err) != 0 || check_signatures(spec, t, err) != 0)
		return -1;
	t->dev = (dev_t)number;
	pp_text_copy(t->path, sizeof(t->path), t->drive.node);
	return 0;
}

/* ---- file --------------------------------------------------------------------------------- */

static uint32_t volume_serial(int fd)
{
	BY_HANDLE_FILE_INFORMATION info;

	return GetFileInformationByHandle(pp_handle_of(fd), &info) ? info.dwVolumeSerialNumber : 0;
}

/* As libblkid prints it: NTFS in 16 digits, others as `vol` shows it. */
static void read_uuid(int fd, char *out, size_t out_bytes)
{
	NTFS_VOLUME_DATA_BUFFER ntfs;
	uint32_t serial = volume_serial(fd);

	if (control(fd, FSCTL_GET_NTFS_VOLUME_DATA, &ntfs, sizeof(ntfs)))
		snprintf(out, out_bytes, "%016llX",
			(unsigned long long)ntfs.VolumeSerialNumber.QuadPart);
	else
		snprintf(out, out_bytes, "%04X-%04X", serial >> 16, serial & 0xffff);
}

static void read_options(int fd, char *out, size_t out_bytes)
{
	DWORD flags = 0;

	out[0] = '\0';
	if (GetVolumeInformationByHandleW(pp_handle_of(fd), NULL, 0, NULL, NULL, &flags, NULL, 0))
		snprintf(out, out_bytes, "%s", flags & FILE_READ_ONLY_VOLUME ? "ro" : "rw");
}

/* All that is beneath must be the named drive: a record on another disk proves nothing about it. */
static int check_stack(const struct pp_target_spec *spec, struct pp_target *t, const char *path,
	struct pp_error *err)
{
	static __thread struct pp_stack stack; /* large */
	struct pp_error why;
	bool by_volume = pp_volume_is_id(spec->serial);

	if ((by_volume ? pp_volume_stack(t->fd, path, &stack, &why)
		: pp_drive_of_fd(t->fd, path, &stack, &why)) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "%s", why.text);
	if (!pp_stack_has(&stack, t->drive.name))
		return pp_target_fail(&t->state, PP_TARGET_FS_UNAVAILABLE, err,
			"'%s' is on %s, not on drive '%s' (%s)%s%s", path, stack.disk_count ? stack.disks[0]
			: stack.fs_source, t->drive.serial, t->drive.node, stack.incomplete ? ": " : "",
			stack.incomplete_text);
	if (stack.disk_count > 1 || stack.incomplete)
		return pp_target_fail(&t->state, PP_TARGET_REFUSED, err,
			"'%s' is on %zu drives%s, not on '%s' alone: test a simple volume", path,
			stack.disk_count, stack.incomplete ? " or more" : "", t->drive.serial);
	pp_text_copy(t->fs_type, sizeof(t->fs_type), stack.fs_type);
	pp_text_copy(t->fs_node, sizeof(t->fs_node), stack.fs_source);
	return 0;
}

static int prove_path(const struct pp_target_spec *spec, struct pp_target *t, struct pp_error *err)
{
	bool any = strcmp(spec->fs_uuid, "auto") == 0 || !spec->fs_uuid[0];
	ULARGE_INTEGER free_bytes = { .QuadPart = 0 };
	struct pp_error why;
	wchar_t *wide;

	if (pp_open_win(spec->path, O_RDONLY | O_DIRECTORY, &t->fd, &why) != 0)
		return pp_target_fail(&t->state, why.os_code == ENOENT ? PP_TARGET_FS_UNAVAILABLE :
			PP_TARGET_FAILED, err, "%s", why.text);
	if (check_stack(spec, t, spec->path, err) != 0)
		return -1;
	read_uuid(t->fd, t->fs_uuid, sizeof(t->fs_uuid));
	if (!any && strcasecmp(t->fs_uuid, spec->fs_uuid) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FS_UNAVAILABLE, err,
			"'%s' is on the file system %s, not on %s", spec->path, t->fs_uuid, spec->fs_uuid);
	read_options(t->fd, t->mount_options, sizeof(t->mount_options));
	wide = pp_wide_path(spec->path, &why);
	if (!wide || !GetDiskFreeSpaceExW(wide, &free_bytes, NULL, NULL)) {
		free(wide);
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err,
			"cannot find the free space of '%s'", spec->path);
	}
	free(wide);
	t->size_bytes = free_bytes.QuadPart;
	t->dev = volume_serial(t->fd);
	pp_text_copy(t->path, sizeof(t->path), spec->path);
	return 0;
}

/* ---- both --------------------------------------------------------------------------------- */

static int prove(const struct pp_target_spec *spec, struct pp_target *t, struct pp_error *err)
{
	struct pp_error why;
	int rc;

	if (pp_target_find_drive(spec, &t->drive, &t->state, err) != 0 ||
		check_readable(spec, t, err) != 0)
		return -1;
	if (spec->kind == PP_TARGET_RAW)
		rc = prove_raw(spec, t, err);
	else if (spec->path[0])
		rc = prove_path(spec, t, err);
	else
		rc = pp_target_fail(&t->state, PP_TARGET_FAILED, err, "Windows mounts by itself: name a "
			"folder on the drive in the plan, 'path = D:/plugpull'");
	if (rc != 0)
		return -1;
	if (pp_target_unit_bytes(&t->drive, t->fd, &t->unit_bytes, &why) != 0)
		return pp_target_fail(&t->state, PP_TARGET_FAILED, err, "%s", why.text);
	return 0;
}

int pp_target_prove(const struct pp_target_spec *spec, struct pp_target *target,
	struct pp_error *err)
{
	enum pp_target_state state;

	pp_target_init(target);
	target->kind = spec->kind;
	if (prove(spec, target, err) == 0)
		return 0;
	state = target->state;
	pp_target_release(target);
	target->state = state;
	return -1;
}

int pp_target_prove_fd(const struct pp_target *target, int fd, struct pp_error *err)
{
	BY_HANDLE_FILE_INFORMATION info;
	STORAGE_DEVICE_NUMBER is;
	bool file = GetFileInformationByHandle(pp_handle_of(fd), &info);

	if (target->kind == PP_TARGET_RAW && !file && control(fd, IOCTL_STORAGE_GET_DEVICE_NUMBER, &is,
		sizeof(is)) && is.DeviceType == FILE_DEVICE_DISK && is.DeviceNumber == target->dev)
		return 0;
	if (target->kind == PP_TARGET_FILE && file && !(info.dwFileAttributes &
		(FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE)) &&
		info.dwVolumeSerialNumber == target->dev)
		return 0;
	return pp_fail(err, PP_ERR_REFUSED, "what was opened is not on the proven target '%s'",
		target->path);
}

/* What exists is opened by the proven folder's handle; what is made, by its path, and then proven. */
static int open_below(const struct pp_target *target, const char *name, int flags, int *fd,
	struct pp_error *err)
{
	char path[2 * PP_TARGET_PATH_BYTES];
	struct pp_error why = { 0 };

	if (flags & O_CREAT) {
		if (snprintf(path, sizeof(path), "%s/%s", target->path, name) >= (int)sizeof(path))
			return pp_fail(err, PP_ERR_USAGE, "path is too long: '%s'", target->path);
		return pp_open_win(path, flags | O_NOFOLLOW, fd, err);
	}
	if (pp_fd_open_in(target->fd, name, flags | O_NOFOLLOW, fd, err) == 0)
		return 0;
	/* A folder, though nobody said so. */
	if (!(flags & O_DIRECTORY) && (flags & O_ACCMODE) == O_RDONLY &&
		pp_fd_open_in(target->fd, name, flags | O_NOFOLLOW | O_DIRECTORY, fd, &why) == 0)
		return 0;
	return -1;
}

int pp_target_open(const struct pp_target *target, const char *name, int flags, mode_t mode,
	int *fd, struct pp_error *err)
{
	(void)mode;
	if ((name ? open_below(target, name, flags, fd, err)
		: pp_open_win(target->path, flags, fd, err)) != 0)
		return pp_fail_within(err, "target '%s'", target->path);
	if (pp_target_prove_fd(target, *fd, err) == 0)
		return 0;
	close(*fd);
	*fd = -1;
	return -1;
}

int pp_target_probe(struct pp_target *target, struct pp_error *err)
{
	struct pp_target_spec file = { .kind = target->kind };
	struct pp_drive_info now;
	struct pp_error why;

	if (pp_drive_read(NULL, target->drive.name, &now, &why) != 0 || !now.size_bytes)
		return pp_target_fail(&target->state, PP_TARGET_DRIVE_GONE, err,
			"drive '%s' (%s) is gone", target->drive.serial, target->drive.node);
	if (strcmp(now.serial, target->drive.serial) != 0 || strcmp(now.wwn, target->drive.wwn) != 0 ||
		now.size_bytes < target->drive.size_bytes)
		return pp_target_fail(&target->state, PP_TARGET_DRIVE_CHANGED, err,
			"'%s' is no longer the drive '%s' of %llu bytes", now.node, target->drive.serial,
			(unsigned long long)target->drive.size_bytes);
	if (check_readable(&file, target, err) != 0)
		return -1;
	target->state = PP_TARGET_OK;
	return 0;
}

/* Windows keeps the volume mounted: there is nothing to take away but our own handle. */
int pp_target_unmount(struct pp_target *target, int64_t timeout_ms, bool *lazy,
	struct pp_error *err)
{
	(void)timeout_ms;
	(void)err;
	*lazy = false;
	if (target->fd >= 0)
		close(target->fd);
	target->fd = -1;
	return 0;
}

void pp_target_release(struct pp_target *target)
{
	bool lazy;

	pp_target_unmount(target, 0, &lazy, NULL);
}

int pp_target_format(struct pp_target_spec *spec, enum pp_target_state *state,
	struct pp_error *err)
{
	(void)spec;
	*state = PP_TARGET_REFUSED;
	return pp_fail(err, PP_ERR_UNSUPPORTED, "plugpull formats nothing on Windows: format it by hand "
		"and name the folder in the plan (path = FOLDER)");
}

/* chkdsk without /f on a mounted volume reports errors that are none: no word is better than that. */
int pp_target_check(const struct pp_target_spec *spec, struct pp_target_check *check,
	struct pp_error *err)
{
	(void)spec;
	(void)err;
	memset(check, 0, sizeof(*check));
	check->result = PP_CHECK_UNAVAILABLE;
	pp_text_copy(check->text, sizeof(check->text), "Windows checks a volume read-only only while "
		"it is mounted and changing, which says nothing: the scan alone judges");
	return 0;
}

/* ---- unit --------------------------------------------------------------------------------- */

int pp_target_unit_bytes(const struct pp_drive_info *drive, int fd, uint32_t *unit_bytes,
	struct pp_error *err)
{
	uint64_t unit = PAGE_BYTES;
	FILE_STORAGE_INFO storage;
	struct {
		LARGE_INTEGER total, available;
		ULONG sectors_per_unit, sector_bytes;
	} size; /* FILE_FS_SIZE_INFORMATION */
	typedef LONG NTAPI query_fn(HANDLE, void *, void *, ULONG, int);
	query_fn *query = (query_fn *)(void *)pp_win_proc("ntdll.dll",
		"NtQueryVolumeInformationFile");
	ULONG_PTR block[2];

	if (drive)
		unit = pp_common_multiple(pp_common_multiple(unit, drive->physical_block_bytes),
			drive->stripe_bytes);
	if (GetFileInformationByHandleEx(pp_handle_of(fd), FileStorageInfo, &storage, sizeof(storage)))
		unit = pp_common_multiple(unit, storage.PhysicalBytesPerSectorForPerformance);
	/* 3: FileFsSizeInformation. A cluster is what NTFS allocates. */
	if (query && volume_serial(fd) && query(pp_handle_of(fd), block, &size, sizeof(size), 3) == 0)
		unit = pp_common_multiple(unit, (uint64_t)size.sectors_per_unit * size.sector_bytes);
	if (unit > UINT32_MAX)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the target's blocks have no common multiple");
	*unit_bytes = (uint32_t)unit;
	return 0;
}

/* ---- signatures --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint32_t at, bytes;
	const char *text;
} signatures[] = {
	{ "gpt", 512, 8, "EFI PART" }, { "gpt", 4096, 8, "EFI PART" }, { "ntfs", 3, 8, "NTFS    " },
	{ "exfat", 3, 8, "EXFAT   " }, { "refs", 3, 4, "ReFS" }, { "fat", 54, 3, "FAT" },
	{ "fat32", 82, 5, "FAT32" }, { "bitlocker", 3, 8, "-FVE-FS-" }, { "mbr", 510, 2, "\x55\xaa" },
	{ "ext", 1080, 2, "\x53\xef" }, { "lvm", 512, 8, "LABELONE" }, { "luks", 0, 4, "LUKS" },
	{ "xfs", 0, 4, "XFSB" },
};

int pp_target_signatures(const char *node, char *out, size_t out_bytes, struct pp_error *err)
{
	uint8_t *buf = VirtualAlloc(NULL, SIGNATURE_BYTES, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
	OVERLAPPED at = { 0 };
	DWORD n = 0;
	int fd, rc = 0;

	out[0] = '\0';
	if (!buf)
		return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
	if (pp_open_win(node, O_RDONLY | O_DIRECT, &fd, err) != 0) {
		VirtualFree(buf, 0, MEM_RELEASE);
		return -1;
	}
	if (!ReadFile(pp_handle_of(fd), buf, SIGNATURE_BYTES, &n, &at) || n != SIGNATURE_BYTES)
		rc = pp_fail_win(err, GetLastError(), "cannot read the signatures on '%s'", node);
	for (size_t i = 0; rc == 0 && i < sizeof(signatures) / sizeof(signatures[0]); i++) {
		size_t used = strlen(out);

		if (memcmp(buf + signatures[i].at, signatures[i].text, signatures[i].bytes) == 0)
			snprintf(out + used, out_bytes - used, "%s%s", used ? ", " : "",
				signatures[i].name);
	}
	close(fd);
	VirtualFree(buf, 0, MEM_RELEASE);
	return rc;
}
