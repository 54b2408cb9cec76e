/* SPDX-License-Identifier: MIT
 *
 * The calls themselves. What not every Windows has is looked up at run time in the system's own
 * libraries (handle_win.h), and is written down here as Microsoft documents it, since the headers at
 * hand may be older: NtFlushBuffersFileEx (driver documentation), BuildIoRingWriteFile and
 * BuildIoRingFlushFile (ioringapi.h, Windows 11 22H2).
 *
 * A store into a mapped view goes by WriteProcessMemory to this process: the kernel copies, and a
 * page that cannot be had (no room, a read error of the disk) is an error code, not an exception in
 * the middle of a lane. The dirty page and all that follows are those of a plain store.
 */
#include "win_calls.h"

#include <errno.h>
#include <io.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

#include "handle_win.h"
#include <winioctl.h>

#define VOLUME_NAME_CHARS 49 /* \\?\Volume{8-4-4-4-12} with the stroke behind it */
#define RING_ENTRIES      8
#define S_FALSE_RESULT    1u

_Static_assert(FILE_FLAG_WRITE_THROUGH == PP_WIN_WRITE_THROUGH &&
	FILE_FLAG_NO_BUFFERING == PP_WIN_NO_BUFFERING, "CreateFile");
_Static_assert(ERROR_INVALID_FUNCTION == PP_WIN_INVALID_FUNCTION &&
	ERROR_FILE_NOT_FOUND == PP_WIN_FILE_NOT_FOUND &&
	ERROR_PATH_NOT_FOUND == PP_WIN_PATH_NOT_FOUND &&
	ERROR_ACCESS_DENIED == PP_WIN_ACCESS_DENIED && ERROR_NOT_SUPPORTED == PP_WIN_NOT_SUPPORTED &&
	ERROR_INVALID_PARAMETER == PP_WIN_INVALID_PARAMETER &&
	ERROR_CALL_NOT_IMPLEMENTED == PP_WIN_NOT_IMPLEMENTED, "winerror.h");

/* A failed call never reads as success, whatever the thread's last error says. */
static uint32_t last_error(void)
{
	DWORD code = GetLastError();

	return code ? code : ERROR_GEN_FAILURE;
}

static uint32_t call_write(void *file, const void *buf, uint32_t bytes, uint64_t offset,
	uint32_t *written)
{
	OVERLAPPED at = { .Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32) };
	DWORD n = 0;

	if (!WriteFile(file, buf, bytes, &n, &at))
		return last_error();
	*written = n;
	return 0;
}

static uint32_t call_flush(void *handle)
{
	return FlushFileBuffers(handle) ? 0 : last_error();
}

static uint32_t call_commit(int fd)
{
	if (_commit(fd) == 0)
		return 0;
	return _doserrno ? (uint32_t)_doserrno : ERROR_GEN_FAILURE;
}

/* ---- NtFlushBuffersFileEx -------------------------------------------------------------------- */

struct nt_status_block { /* IO_STATUS_BLOCK */
	union { LONG status; void *pointer; } u;
	ULONG_PTR information;
};
_Static_assert(sizeof(struct nt_status_block) == 16, "IO_STATUS_BLOCK, 64 bits");

typedef LONG (NTAPI *nt_flush_function)(HANDLE, ULONG, void *, ULONG, struct nt_status_block *);

/* Looked up once; to look twice at the same time does no harm. */
static nt_flush_function nt_flush_here(void)
{
	static nt_flush_function found;

	if (!found)
		found = (nt_flush_function)(void (*)(void))pp_win_proc("ntdll.dll",
			"NtFlushBuffersFileEx");
	return found;
}

static bool call_has_nt_flush(void)
{
	return nt_flush_here() != NULL;
}

static uint32_t call_nt_flush(void *file, uint32_t flags)
{
	struct nt_status_block block = { .information = 0 };
	LONG status = nt_flush_here()(file, flags, NULL, 0, &block);

	return (uint32_t)(status ? status : block.u.status);
}

/* ---- volume, device, sizes ------------------------------------------------------------------- */

static uint32_t call_open_volume(void *file, void **volume)
{
	DWORD chars = GetFinalPathNameByHandleW(file, NULL, 0, VOLUME_NAME_GUID);
	wchar_t *name = chars ? malloc(((size_t)chars + 1) * sizeof(*name)) : NULL;
	uint32_t code = chars ? ERROR_NOT_ENOUGH_MEMORY : last_error();

	if (!name)
		return code;
	chars = GetFinalPathNameByHandleW(file, name, chars + 1, VOLUME_NAME_GUID);
	if (chars < VOLUME_NAME_CHARS || wcsncmp(name, L"\\\\?\\Volume{", 11) != 0) {
		free(name);
		return ERROR_NOT_SUPPORTED;
	}
	name[VOLUME_NAME_CHARS - 1] = L'\0'; /* with a stroke at its end it would be the root folder */
	*volume = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
		NULL, OPEN_EXISTING, 0, NULL);
	code = *volume == INVALID_HANDLE_VALUE ? last_error() : 0;
	free(name);
	if (code)
		*volume = NULL;
	return code;
}

static void call_close(void *handle)
{
	CloseHandle(handle);
}

/* A disk has a number and no information of a file. */
static bool call_is_device(void *file)
{
	BY_HANDLE_FILE_INFORMATION info;
	STORAGE_DEVICE_NUMBER number;
	DWORD n;

	return !GetFileInformationByHandle(file, &info) && DeviceIoControl(file,
		IOCTL_STORAGE_GET_DEVICE_NUMBER, NULL, 0, &number, sizeof(number), &n, NULL);
}

static void call_fs_name(void *file, char *name, size_t bytes)
{
	wchar_t wide[64] = L"";

	if (!GetVolumeInformationByHandleW(file, NULL, 0, NULL, NULL, NULL, wide, 64))
		wide[0] = L'\0';
	pp_utf8_copy(name, bytes, wide);
}

static uint32_t call_size(void *file, uint64_t *bytes)
{
	LARGE_INTEGER size;

	if (!GetFileSizeEx(file, &size))
		return last_error();
	*bytes = (uint64_t)size.QuadPart;
	return 0;
}

static uint32_t call_set_size(void *file, uint64_t bytes)
{
	FILE_END_OF_FILE_INFO end = { .EndOfFile.QuadPart = (LONGLONG)bytes };

	return SetFileInformationByHandle(file, FileEndOfFileInfo, &end, sizeof(end)) ? 0
		: last_error();
}

/* ---- mapped views ---------------------------------------------------------------------------- */

static uint32_t call_map(void *file, uint64_t bytes, uint8_t **view)
{
	HANDLE mapping = CreateFileMappingW(file, NULL, PAGE_READWRITE, (DWORD)(bytes >> 32),
		(DWORD)bytes, NULL);
	uint32_t code;

	if (!mapping)
		return last_error();
	*view = MapViewOfFile(mapping, FILE_MAP_READ | FILE_MAP_WRITE, 0, 0, (SIZE_T)bytes);
	code = *view ? 0 : last_error();
	CloseHandle(mapping); /* the view keeps it */
	return code;
}

static void call_unmap(uint8_t *view)
{
	UnmapViewOfFile(view);
}

static uint32_t call_store(uint8_t *at, const void *buf, uint32_t bytes)
{
	SIZE_T n = 0;

	if (!WriteProcessMemory(GetCurrentProcess(), at, buf, bytes, &n))
		return last_error();
	return n == bytes ? 0 : ERROR_PARTIAL_COPY;
}

static uint32_t call_flush_view(uint8_t *at, uint64_t bytes)
{
	return FlushViewOfFile(at, (SIZE_T)bytes) ? 0 : last_error();
}

/* ---- IoRing ---------------------------------------------------------------------------------- */

struct ring_capabilities { /* IORING_CAPABILITIES */
	uint32_t max_version, max_submissions, max_completions, features;
};
struct ring_create_flags { uint32_t required, advisory; }; /* IORING_CREATE_FLAGS */
struct ring_ref {          /* IORING_HANDLE_REF, IORING_BUFFER_REF: kind 0 is raw */
	uint32_t kind;
	union { void *pointer; uint32_t index[2]; } u;
};
struct ring_cqe {          /* IORING_CQE */
	uintptr_t user;
	int32_t result;
	uintptr_t information;
};
_Static_assert(sizeof(struct ring_ref) == 16 && sizeof(struct ring_cqe) == 24 &&
	sizeof(struct ring_capabilities) == 16 && sizeof(struct ring_create_flags) == 8,
	"ioringapi.h, 64 bits");

static struct {
	HRESULT (WINAPI *query)(struct ring_capabilities *);
	HRESULT (WINAPI *create)(uint32_t, struct ring_create_flags, uint32_t, uint32_t, void **);
	HRESULT (WINAPI *close)(void *);
	HRESULT (WINAPI *write)(void *, struct ring_ref, struct ring_ref, uint32_t, uint64_t, uint32_t,
		uintptr_t, uint32_t);
	HRESULT (WINAPI *flush)(void *, struct ring_ref, uint32_t, uintptr_t, uint32_t);
	HRESULT (WINAPI *submit)(void *, uint32_t, uint32_t, uint32_t *);
	HRESULT (WINAPI *pop)(void *, struct ring_cqe *);
} ring_calls;

/* query is filled last, so that whoever sees it sees all; 0 if one of them is missing. */
static uint32_t call_ring_version(void)
{
	static const char *const names[] = { "CreateIoRing", "CloseIoRing", "BuildIoRingWriteFile",
		"BuildIoRingFlushFile", "SubmitIoRing", "PopIoRingCompletion",
		"QueryIoRingCapabilities" };
	struct ring_capabilities has = { 0 };
	FARPROC found[7];
	size_t i;

	for (i = 0; i < 7; i++) {
		found[i] = pp_win_proc("KernelBase.dll", names[i]);
		if (!found[i] && i != 2 && i != 3) /* those two are of version 3 */
			return 0;
	}
	ring_calls.create = (void *)found[0];
	ring_calls.close = (void *)found[1];
	ring_calls.write = (void *)found[2];
	ring_calls.flush = (void *)found[3];
	ring_calls.submit = (void *)found[4];
	ring_calls.pop = (void *)found[5];
	ring_calls.query = (void *)found[6];
	if (ring_calls.query(&has) != S_OK)
		return 0;
	if (has.max_version >= PP_WIN_IORING_VERSION_3 && (!found[2] || !found[3]))
		return 2;
	return has.max_version;
}

static uint32_t call_ring_open(uint32_t version, void **ring)
{
	struct ring_create_flags none = { 0, 0 };

	return (uint32_t)ring_calls.create(version, none, RING_ENTRIES, RING_ENTRIES, ring);
}

static void call_ring_close(void *ring)
{
	ring_calls.close(ring);
}

static struct ring_ref raw_ref(const void *pointer)
{
	return (struct ring_ref){ .kind = 0, .u.pointer = (void *)(uintptr_t)pointer };
}

static uint32_t call_ring_write(void *ring, void *file, const void *buf, uint32_t bytes,
	uint64_t offset, uint32_t write_flags, uint64_t user, uint32_t sqe_flags)
{
	return (uint32_t)ring_calls.write(ring, raw_ref(file), raw_ref(buf), bytes, offset,
		write_flags, (uintptr_t)user, sqe_flags);
}

static uint32_t call_ring_flush(void *ring, void *file, uint32_t mode, uint64_t user,
	uint32_t sqe_flags)
{
	return (uint32_t)ring_calls.flush(ring, raw_ref(file), mode, (uintptr_t)user, sqe_flags);
}

static uint32_t call_ring_submit(void *ring, uint32_t wait_for, uint32_t *submitted)
{
	return (uint32_t)ring_calls.submit(ring, wait_for, INFINITE, submitted);
}

static uint32_t call_ring_pop(void *ring, struct pp_win_completion *completion)
{
	struct ring_cqe one = { 0 };
	uint32_t result = (uint32_t)ring_calls.pop(ring, &one);

	if (result == 0)
		*completion = (struct pp_win_completion){ .user = one.user,
			.result = (uint32_t)one.result, .bytes = one.information };
	return result;
}
_Static_assert(S_FALSE_RESULT == S_FALSE, "PopIoRingCompletion of an empty queue");

const struct pp_win_calls pp_win_calls_live = {
	.write = call_write, .flush = call_flush, .commit = call_commit,
	.has_nt_flush = call_has_nt_flush, .nt_flush = call_nt_flush,
	.open_volume = call_open_volume, .close = call_close, .is_device = call_is_device,
	.fs_name = call_fs_name, .size = call_size, .set_size = call_set_size, .map = call_map,
	.unmap = call_unmap, .store = call_store, .flush_view = call_flush_view,
	.ring_version = call_ring_version, .ring_open = call_ring_open,
	.ring_close = call_ring_close, .ring_write = call_ring_write,
	.ring_flush = call_ring_flush, .ring_submit = call_ring_submit, .ring_pop = call_ring_pop,
};
