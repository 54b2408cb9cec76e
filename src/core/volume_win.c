/* SPDX-License-Identifier: MIT */
#include "volume_win.h"

#include <stdio.h>
#include <string.h>

#include "handle_win.h"
#include "text.h"

#define LETTERS 26

bool pp_volume_is_id(const char *id)
{
	size_t n = strlen(PP_VOLUME_PREFIX);

	return strncmp(id, PP_VOLUME_PREFIX, n) == 0 &&
		strspn(id + n, "0123456789ABCDEF") == 8 && strlen(id) == n + 8;
}

/* By the root folder: the volume's own device may refuse what the file system on it tells. */
static DWORD read_serial(const wchar_t *root, DWORD *serial)
{
	HANDLE handle = CreateFileW(root, FILE_READ_ATTRIBUTES, FILE_SHARE_READ | FILE_SHARE_WRITE |
		FILE_SHARE_DELETE, NULL, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, NULL);
	BY_HANDLE_FILE_INFORMATION facts = { 0 };
	DWORD code = 0;

	if (handle == INVALID_HANDLE_VALUE)
		return GetLastError();
	if (!GetFileInformationByHandle(handle, &facts))
		code = GetLastError();
	CloseHandle(handle);
	*serial = facts.dwVolumeSerialNumber;
	return code;
}

/* 0, or a Win32 code. */
static DWORD read_volume(wchar_t letter, struct pp_drive_info *info)
{
	wchar_t root[] = L"D:\\";
	ULARGE_INTEGER total = { 0 }, ignored;
	DWORD serial = 0, per_cluster, sector = 0, free_clusters, clusters, code;

	memset(info, 0, sizeof(*info));
	root[0] = letter;
	code = read_serial(root, &serial);
	if (code != 0)
		return code;
	GetDiskFreeSpaceExW(root, &ignored, &total, NULL);
	GetDiskFreeSpaceW(root, &per_cluster, &sector, &free_clusters, &clusters);
	snprintf(info->name, sizeof(info->name), "%c:", (char)letter);
	snprintf(info->node, sizeof(info->node), "\\\\.\\%c:", (char)letter);
	snprintf(info->serial, sizeof(info->serial), PP_VOLUME_PREFIX "%08lX", serial);
	info->transport = PP_TRANSPORT_OTHER;
	info->size_bytes = total.QuadPart;
	info->logical_block_bytes = info->physical_block_bytes = sector;
	info->removable = GetDriveTypeW(root) == DRIVE_REMOVABLE;
	return 0;
}

size_t pp_volume_list(struct pp_drive_info *infos, size_t room)
{
	DWORD there = GetLogicalDrives();
	wchar_t root[] = L"A:\\";
	size_t count = 0;
	int i;

	for (i = 0; i < LETTERS && count < room; i++) {
		UINT type;

		root[0] = (wchar_t)(L'A' + i);
		type = there >> i & 1 ? GetDriveTypeW(root) : DRIVE_NO_ROOT_DIR;
		if ((type == DRIVE_FIXED || type == DRIVE_REMOVABLE) &&
			read_volume(root[0], &infos[count]) == 0)
			count++;
	}
	return count;
}

int pp_volume_find(const char *id, struct pp_drive_info *info, struct pp_error *err)
{
	static __thread struct pp_drive_info all[LETTERS]; /* large */
	size_t count = pp_volume_list(all, LETTERS), i, found = 0;

	for (i = 0; i < count; i++)
		if (strcmp(all[i].serial, id) == 0 && found++ == 0)
			*info = all[i];
	if (found == 0)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "no volume has the serial number of '%s'", id);
	if (found > 1)
		return pp_fail(err, PP_ERR_EVIDENCE, "%zu volumes have the serial number of '%s': one is a "
			"copy of another; take one away", found, id);
	return 0;
}

int pp_volume_of_fd(int fd, struct pp_drive_info *info, struct pp_error *err)
{
	BY_HANDLE_FILE_INFORMATION facts;
	wchar_t path[1024];
	DWORD n = GetFinalPathNameByHandleW(pp_handle_of(fd), path, 1024, VOLUME_NAME_DOS), code;

	if (n == 0 || n >= 1024)
		return pp_fail_win(err, n ? ERROR_FILENAME_EXCED_RANGE : GetLastError(),
			"cannot tell the path of an open file");
	/* \\?\D:\...: the volume itself is asked by the open file, the letter only for its size. */
	if (wcsncmp(path, L"\\\\?\\", 4) != 0 || path[5] != L':')
		return pp_fail(err, PP_ERR_UNSUPPORTED, "the file is on no volume with a drive letter (a "
			"share, perhaps)");
	code = read_volume(path[4], info);
	if (code != 0)
		return pp_fail_win(err, code, "cannot examine volume %c:", (char)path[4]);
	if (!GetFileInformationByHandle(pp_handle_of(fd), &facts))
		return pp_fail_win(err, GetLastError(), "cannot examine an open file");
	snprintf(info->serial, sizeof(info->serial), PP_VOLUME_PREFIX "%08lX",
		facts.dwVolumeSerialNumber);
	return 0;
}

int pp_volume_stack(int fd, const char *path, struct pp_stack *stack, struct pp_error *err)
{
	struct pp_drive_info info;
	wchar_t fs[64] = L"";
	struct pp_stack_layer *layer = &stack->layers[0];

	memset(stack, 0, sizeof(*stack));
	if (pp_volume_of_fd(fd, &info, err) != 0)
		return pp_fail_within(err, "'%s'", path);
	GetVolumeInformationByHandleW(pp_handle_of(fd), NULL, 0, NULL, NULL, NULL, fs, 64);
	pp_utf8_copy(stack->fs_type, sizeof(stack->fs_type), fs);
	pp_text_copy(stack->fs_source, sizeof(stack->fs_source), info.node);
	pp_text_format(stack->mount_point, sizeof(stack->mount_point), "%s/", info.name);
	pp_text_copy(layer->name, sizeof(layer->name), info.name);
	layer->kind = "disk";
	layer->whole = true;
	stack->layer_count = 1;
	pp_text_copy(stack->disks[0], sizeof(stack->disks[0]), info.name);
	stack->disk_count = 1;
	return 0;
}
