/* SPDX-License-Identifier: MIT
 *
 * The living storage stack. Drives open with others' access shared, so that a mounted one can be asked.
 */
#include "win_storage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "handle_win.h" /* windows.h, which these rest on */
#include <initguid.h>
#include <setupapi.h>
#include <winioctl.h>

#define DOS_NAMES 65536 /* characters of QueryDosDeviceW's list */
#define DISK_KEY  "SYSTEM\\CurrentControlSet\\Enum\\%s\\Device Parameters\\Disk"

static uint32_t open_device(void *ctx, const char *path, enum pp_win_access access, void **device)
{
	static const DWORD rights[] = {
		[PP_WIN_QUERY] = 0, [PP_WIN_READ] = GENERIC_READ,
		[PP_WIN_WRITE] = GENERIC_READ | GENERIC_WRITE,
	};
	wchar_t *wide = pp_wide(path);
	HANDLE handle;
	DWORD error;

	(void)ctx;
	if (!wide)
		return ERROR_NOT_ENOUGH_MEMORY;
	handle = CreateFileW(wide, rights[access], FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING,
		0, NULL);
	error = GetLastError();
	free(wide);
	if (handle == INVALID_HANDLE_VALUE)
		return error == ERROR_PATH_NOT_FOUND ? PP_WIN_NOT_FOUND : error;
	*device = handle;
	return 0;
}

static uint32_t control(void *ctx, void *device, uint32_t code, const void *in, uint32_t in_bytes,
	void *out, uint32_t out_bytes, uint32_t *got_bytes)
{
	DWORD got = 0;
	BOOL ok = DeviceIoControl(device, code, (void *)(uintptr_t)in, in_bytes, out, out_bytes, &got,
		NULL);
	DWORD error = ok ? 0 : GetLastError();

	(void)ctx;
	*got_bytes = got;
	/* A refusal without a reason is a refusal. */
	return ok ? 0 : error ? error : PP_WIN_NOT_SUPPORTED;
}

static void close_device(void *ctx, void *device)
{
	(void)ctx;
	CloseHandle(device);
}

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

/* Names below \DosDevices, each ended by NUL, the list by another. */
static void take_names(const wchar_t *names, unsigned *numbers, size_t room, size_t *count)
{
	for (; *names && *count < room; names += wcslen(names) + 1) {
		wchar_t *end;
		unsigned long number;

		if (wcsncmp(names, L"PhysicalDrive", 13) != 0 || names[13] < L'0' || names[13] > L'9')
			continue;
		number = wcstoul(names + 13, &end, 10);
		if (!*end)
			numbers[(*count)++] = number;
	}
}

/* Where the list names none (Wine's does not), the first numbers are tried. */
static void try_numbers(unsigned *numbers, size_t room, size_t *count)
{
	for (unsigned i = 0; i < 16 && *count < room; i++) {
		char path[32];
		void *device;

		snprintf(path, sizeof(path), "\\\\.\\PhysicalDrive%u", i);
		if (open_device(NULL, path, PP_WIN_QUERY, &device) != 0)
			continue;
		CloseHandle(device);
		numbers[(*count)++] = i;
	}
}

static uint32_t disks(void *ctx, unsigned *numbers, size_t room, size_t *count)
{
	wchar_t *names = calloc(DOS_NAMES, sizeof(*names));

	(void)ctx;
	*count = 0;
	if (!names)
		return ERROR_NOT_ENOUGH_MEMORY;
	if (QueryDosDeviceW(NULL, names, DOS_NAMES - 1))
		take_names(names, numbers, room, count);
	free(names);
	if (!*count)
		try_numbers(numbers, room, count);
	qsort(numbers, *count, sizeof(*numbers), by_number);
	return 0;
}

/* ---- the device instance ------------------------------------------------------------------ */

static bool is_disk(const wchar_t *path, unsigned disk)
{
	struct pp_win_device_number number;
	DWORD got = 0;
	HANDLE handle = CreateFileW(path, 0, FILE_SHARE_READ | FILE_SHARE_WRITE, NULL, OPEN_EXISTING, 0,
		NULL);
	BOOL ok;

	if (handle == INVALID_HANDLE_VALUE)
		return false;
	ok = DeviceIoControl(handle, PP_WIN_GET_DEVICE_NUMBER, NULL, 0, &number, sizeof(number), &got,
		NULL);
	CloseHandle(handle);
	return ok && got >= sizeof(number) && number.number == disk;
}

static bool instance_of_interface(HDEVINFO set, SP_DEVICE_INTERFACE_DATA *found, unsigned disk,
	char *out, size_t out_bytes)
{
	union {
		SP_DEVICE_INTERFACE_DETAIL_DATA_W detail;
		uint8_t bytes[4096];
	} reply;
	SP_DEVINFO_DATA device = {.cbSize = sizeof(device)};
	wchar_t id[256];

	memset(&reply, 0, sizeof(reply));
	reply.detail.cbSize = sizeof(reply.detail);
	if (!SetupDiGetDeviceInterfaceDetailW(set, found, &reply.detail, sizeof(reply), NULL, &device) ||
		!is_disk(reply.detail.DevicePath, disk) ||
		!SetupDiGetDeviceInstanceIdW(set, &device, id, 256, NULL))
		return false;
	pp_utf8_copy(out, out_bytes, id);
	return true;
}

static uint32_t instance(void *ctx, unsigned disk, char *out, size_t out_bytes)
{
	SP_DEVICE_INTERFACE_DATA row = {.cbSize = sizeof(row)};
	HDEVINFO set = SetupDiGetClassDevsW(&GUID_DEVINTERFACE_DISK, NULL, NULL,
		DIGCF_PRESENT | DIGCF_DEVICEINTERFACE);
	bool found = false;

	(void)ctx;
	out[0] = '\0';
	if (set == INVALID_HANDLE_VALUE)
		return GetLastError();
	for (DWORD i = 0; !found && SetupDiEnumDeviceInterfaces(set, NULL, &GUID_DEVINTERFACE_DISK, i,
		&row); i++)
		found = instance_of_interface(set, &row, disk, out, out_bytes);
	SetupDiDestroyDeviceInfoList(set);
	return found ? 0 : PP_WIN_NOT_FOUND;
}

/* ---- the registry ------------------------------------------------------------------------- */

static uint32_t open_key(const char *instance_id, bool write, HKEY *key)
{
	char path[512];
	wchar_t *wide;
	LONG error;

	snprintf(path, sizeof(path), DISK_KEY, instance_id);
	wide = pp_wide(path);
	if (!wide)
		return ERROR_NOT_ENOUGH_MEMORY;
	if (write)
		error = RegCreateKeyExW(HKEY_LOCAL_MACHINE, wide, 0, NULL, 0, KEY_SET_VALUE, NULL, key, NULL);
	else
		error = RegOpenKeyExW(HKEY_LOCAL_MACHINE, wide, 0, KEY_QUERY_VALUE, key);
	free(wide);
	return (uint32_t)error;
}

static uint32_t registry_get(void *ctx, const char *instance_id, const char *name, uint32_t *value)
{
	DWORD type = 0, bytes = sizeof(*value);
	wchar_t *wide;
	HKEY key;
	LONG error = (LONG)open_key(instance_id, false, &key);

	(void)ctx;
	if (error)
		return (uint32_t)error;
	wide = pp_wide(name);
	error = wide ? RegQueryValueExW(key, wide, NULL, &type, (BYTE *)value, &bytes) :
		ERROR_NOT_ENOUGH_MEMORY;
	free(wide);
	RegCloseKey(key);
	if (!error && (type != REG_DWORD || bytes != sizeof(*value)))
		return ERROR_INVALID_DATA;
	return (uint32_t)error;
}

static uint32_t registry_set(void *ctx, const char *instance_id, const char *name,
	const uint32_t *value)
{
	wchar_t *wide;
	HKEY key;
	LONG error = (LONG)open_key(instance_id, true, &key);

	(void)ctx;
	if (error)
		return (uint32_t)error;
	wide = pp_wide(name);
	if (!wide)
		error = ERROR_NOT_ENOUGH_MEMORY;
	else if (value)
		error = RegSetValueExW(key, wide, 0, REG_DWORD, (const BYTE *)value, sizeof(*value));
	else
		error = RegDeleteValueW(key, wide);
	if (!value && error == ERROR_FILE_NOT_FOUND)
		error = 0;
	/* The power may go at any time: what was changed must be on the disk. */
	if (!error)
		error = RegFlushKey(key);
	free(wide);
	RegCloseKey(key);
	return (uint32_t)error;
}

/* ---- volumes ------------------------------------------------------------------------------ */

static void find_device(const wchar_t *mount, struct pp_win_volume *volume)
{
	wchar_t guid[64];
	size_t n;

	if (wcslen(mount) == 3 && mount[1] == L':') {
		snprintf(volume->device, sizeof(volume->device), "\\\\.\\%c:", (char)mount[0]);
		return;
	}
	if (!GetVolumeNameForVolumeMountPointW(mount, guid, 64))
		return;
	n = wcslen(guid);
	if (n && guid[n - 1] == L'\\')
		guid[n - 1] = L'\0';
	pp_utf8_copy(volume->device, sizeof(volume->device), guid);
}

static uint32_t volume_of(const wchar_t *path, struct pp_win_volume *volume)
{
	wchar_t mount[512], fs[32] = L"";
	DWORD serial = 0;

	memset(volume, 0, sizeof(*volume));
	if (!GetVolumePathNameW(path, mount, 512))
		return GetLastError();
	pp_utf8_copy(volume->mount_point, sizeof(volume->mount_point), mount);
	volume->remote = GetDriveTypeW(mount) == DRIVE_REMOTE;
	if (GetDriveTypeW(mount) == DRIVE_NO_ROOT_DIR)
		return PP_WIN_NOT_FOUND;
	if (GetVolumeInformationW(mount, NULL, 0, &serial, NULL, NULL, fs, 32)) {
		pp_utf8_copy(volume->fs_type, sizeof(volume->fs_type), fs);
		volume->serial = serial;
	}
	if (!volume->remote)
		find_device(mount, volume);
	return 0;
}

static uint32_t volume(void *ctx, const char *path, struct pp_win_volume *out)
{
	struct pp_error err;
	wchar_t *wide = pp_wide_path(path, &err);
	uint32_t error;

	(void)ctx;
	if (!wide)
		return ERROR_INVALID_NAME;
	/* Without the prefix for long paths, which would stay in the mount point. */
	error = volume_of(wcsncmp(wide, L"\\\\?\\", 4) == 0 && wide[5] == L':' ? wide + 4 : wide, out);
	free(wide);
	return error;
}

static uint32_t system_volume(void *ctx, struct pp_win_volume *out)
{
	wchar_t path[MAX_PATH];

	(void)ctx;
	if (!GetWindowsDirectoryW(path, MAX_PATH))
		return GetLastError();
	return volume_of(path, out);
}

const struct pp_win_storage pp_win_storage_live = {
	.open = open_device, .control = control, .close = close_device, .disks = disks,
	.instance = instance, .registry_get = registry_get, .registry_set = registry_set,
	.volume = volume, .system_volume = system_volume,
};
