/* SPDX-License-Identifier: MIT */
#include "host_win.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handle_win.h"
#include <bcrypt.h>

#define SYSTEM_TIME_OF_DAY_INFORMATION 3
#define SHA256_BYTES 32

/* Of <winternl.h>'s SYSTEM_TIMEOFDAY_INFORMATION, which hides its fields. */
struct time_of_day {
	LARGE_INTEGER boot_time, current_time, time_zone_bias;
	ULONG time_zone_id, reserved;
	ULONGLONG boot_time_bias, sleep_time_bias;
};
_Static_assert(sizeof(struct time_of_day) == 48, "SYSTEM_TIMEOFDAY_INFORMATION");

typedef LONG NTAPI query_fn(ULONG class, void *out, ULONG bytes, ULONG *returned);

static int boot_time(int64_t *at, struct pp_error *err)
{
	query_fn *query = (query_fn *)(void *)pp_win_proc("ntdll.dll", "NtQuerySystemInformation");
	struct time_of_day info = { 0 };
	LONG status;

	if (!query)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "this system does not tell when it booted");
	status = query(SYSTEM_TIME_OF_DAY_INFORMATION, &info, sizeof(info), NULL);
	if (status < 0)
		return pp_fail_os(err, pp_nt_code(status), "cannot tell when this system booted");
	*at = info.boot_time.QuadPart - (int64_t)info.boot_time_bias;
	return 0;
}

/* "" where there is none: the boot time alone names the boot then. */
static void machine_guid(char out[64])
{
	DWORD bytes = 64;

	memset(out, 0, 64);
	if (RegGetValueA(HKEY_LOCAL_MACHINE, "SOFTWARE\\Microsoft\\Cryptography", "MachineGuid",
		RRF_RT_REG_SZ | RRF_SUBKEY_WOW6464KEY, NULL, out, &bytes) != ERROR_SUCCESS)
		memset(out, 0, 64);
	out[63] = '\0';
}

struct sha256 {
	BCRYPT_ALG_HANDLE algorithm;
	BCRYPT_HASH_HANDLE hash;
};

static int sha256_begin(struct sha256 *sha, struct pp_error *err)
{
	NTSTATUS status = BCryptOpenAlgorithmProvider(&sha->algorithm, BCRYPT_SHA256_ALGORITHM, NULL, 0);

	sha->hash = NULL;
	if (status < 0)
		return pp_fail_os(err, pp_nt_code(status), "this system has no SHA-256");
	status = BCryptCreateHash(sha->algorithm, &sha->hash, NULL, 0, NULL, 0, 0);
	if (status >= 0)
		return 0;
	BCryptCloseAlgorithmProvider(sha->algorithm, 0);
	return pp_fail_os(err, pp_nt_code(status), "cannot begin a SHA-256");
}

static void sha256_end(struct sha256 *sha, uint8_t digest[SHA256_BYTES])
{
	memset(digest, 0, SHA256_BYTES);
	BCryptFinishHash(sha->hash, digest, SHA256_BYTES, 0);
	BCryptDestroyHash(sha->hash);
	BCryptCloseAlgorithmProvider(sha->algorithm, 0);
}

int pp_host_boot_id(char *out, size_t out_bytes, struct pp_error *err)
{
	uint8_t d[SHA256_BYTES];
	struct sha256 sha;
	char guid[64];
	int64_t at;

	if (boot_time(&at, err) != 0 || sha256_begin(&sha, err) != 0)
		return -1;
	machine_guid(guid);
	BCryptHashData(sha.hash, (PUCHAR)guid, sizeof(guid), 0);
	BCryptHashData(sha.hash, (PUCHAR)&at, sizeof(at), 0);
	sha256_end(&sha, d);
	d[6] = (d[6] & 0x0f) | 0x80; /* RFC 9562: version 8, made in a way of one's own */
	d[8] = (d[8] & 0x3f) | 0x80;
	snprintf(out, out_bytes, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8], d[9], d[10], d[11], d[12], d[13],
		d[14], d[15]);
	return 0;
}

void pp_host_version(char *out, size_t out_bytes)
{
	typedef LONG NTAPI version_fn(OSVERSIONINFOW *info);
	version_fn *get = (version_fn *)(void *)pp_win_proc("ntdll.dll", "RtlGetVersion");
	typedef const char *CDECL wine_fn(void);
	wine_fn *wine = (wine_fn *)(void *)pp_win_proc("ntdll.dll", "wine_get_version");
	OSVERSIONINFOW info = { .dwOSVersionInfoSize = sizeof(info) };

	out[0] = '\0';
	if (get && get(&info) >= 0)
		snprintf(out, out_bytes, "Windows %lu.%lu.%lu%s%s", info.dwMajorVersion, info.dwMinorVersion,
			info.dwBuildNumber, wine ? " (Wine " : "", wine ? wine() : "");
	if (out[0] && wine && strlen(out) + 1 < out_bytes)
		strcat(out, ")");
}

int pp_host_sha256_file(const char *path, char hex[65], struct pp_error *err)
{
	uint8_t chunk[65536], digest[SHA256_BYTES];
	struct sha256 sha;
	int fd, n;

	hex[0] = '\0';
	if (pp_open_win(path, O_RDONLY, &fd, err) != 0)
		return -1;
	if (sha256_begin(&sha, err) != 0) {
		close(fd);
		return -1;
	}
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		BCryptHashData(sha.hash, chunk, (ULONG)n, 0);
	close(fd);
	sha256_end(&sha, digest);
	if (n < 0)
		return pp_fail(err, PP_ERR_SYSTEM, "cannot read '%s'", path);
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return 0;
}
