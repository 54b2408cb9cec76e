/* SPDX-License-Identifier: MIT
 *
 * HMAC by BCrypt ("CNG"), with a hash object that keeps its key for the next message
 * (BCRYPT_HASH_REUSABLE_FLAG, Windows 8). A system without it cannot authenticate anybody, and
 * nothing here goes on without.
 */
#include "auth.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "handle_win.h"
#include <aclapi.h>
#include <bcrypt.h>

#ifndef BCRYPT_HASH_REUSABLE_FLAG
#define BCRYPT_HASH_REUSABLE_FLAG 0x20
#endif

/* The handle alone lives in struct pp_mac. */
static BCRYPT_HASH_HANDLE *handle(struct pp_mac *mac)
{
	return (BCRYPT_HASH_HANDLE *)(void *)mac->state;
}

/* Not assert: it must hold in every build, since a MAC that was not made authenticates anybody. */
static void must(NTSTATUS status, const char *what)
{
	if (status >= 0)
		return;
	fprintf(stderr, "plugpull: %s failed with status 0x%08lX: no authentication, no agent\n", what,
		(unsigned long)status);
	abort();
}

void pp_mac_init(struct pp_mac *mac, const void *key, size_t key_bytes)
{
	static BCRYPT_ALG_HANDLE algorithm; /* opened twice in a race: one handle stays open unused */

	if (!algorithm)
		must(BCryptOpenAlgorithmProvider(&algorithm, BCRYPT_SHA256_ALGORITHM, NULL,
			BCRYPT_ALG_HANDLE_HMAC_FLAG), "BCryptOpenAlgorithmProvider");
	memset(mac, 0, sizeof(*mac));
	must(BCryptCreateHash(algorithm, handle(mac), NULL, 0, (PUCHAR)(uintptr_t)key,
		(ULONG)key_bytes, BCRYPT_HASH_REUSABLE_FLAG), "BCryptCreateHash");
}

void pp_mac_update(struct pp_mac *mac, const void *data, size_t bytes)
{
	if (bytes)
		must(BCryptHashData(*handle(mac), (PUCHAR)(uintptr_t)data, (ULONG)bytes, 0),
			"BCryptHashData");
}

void pp_mac_digest(struct pp_mac *mac, void *out, size_t out_bytes)
{
	uint8_t whole[PP_MAC_BYTES];

	must(BCryptFinishHash(*handle(mac), whole, sizeof(whole), 0), "BCryptFinishHash");
	memcpy(out, whole, out_bytes < sizeof(whole) ? out_bytes : sizeof(whole));
	pp_wipe(whole, sizeof(whole));
}

void pp_mac_release(struct pp_mac *mac)
{
	if (*handle(mac))
		BCryptDestroyHash(*handle(mac));
	pp_wipe(mac, sizeof(*mac));
}

void pp_wipe(void *secret, size_t bytes)
{
	SecureZeroMemory(secret, bytes);
}

bool pp_mac_equal(const void *a, const void *b, size_t bytes)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t different = 0;

	while (bytes--)
		different |= (uint8_t)(x[bytes] ^ y[bytes]);
	return different == 0;
}

int pp_random_bytes(void *out, size_t bytes, struct pp_error *err)
{
	NTSTATUS status = BCryptGenRandom(NULL, out, (ULONG)bytes, BCRYPT_USE_SYSTEM_PREFERRED_RNG);

	return status >= 0 ? 0 : pp_fail_os(err, pp_nt_code(status), "cannot draw random bytes");
}

/* ---- the key file ---------------------------------------------------------------------------- */

int pp_key_generate(const char *path, struct pp_error *err)
{
	return pp_fail(err, PP_ERR_UNSUPPORTED, "keys are made on the control host: run 'plugpull key' "
		"there and copy the file to '%s'", path);
}

/* Groups that everybody, or every user of this machine, is in. */
static bool is_open_to_all(PSID sid)
{
	static const WELL_KNOWN_SID_TYPE all[] = { WinWorldSid, WinAnonymousSid, WinNetworkSid,
		WinInteractiveSid, WinAuthenticatedUserSid, WinBuiltinUsersSid, WinBuiltinGuestsSid };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (IsWellKnownSid(sid, all[i]))
			return true;
	return false;
}

static bool opens(const ACL *acl)
{
	const ACCESS_MASK reads = FILE_READ_DATA | FILE_WRITE_DATA | FILE_APPEND_DATA | GENERIC_READ |
		GENERIC_WRITE | GENERIC_ALL | WRITE_DAC | WRITE_OWNER;
	WORD i;

	for (i = 0; i < acl->AceCount; i++) {
		ACCESS_ALLOWED_ACE *ace;

		if (!GetAce((ACL *)acl, i, (void **)&ace))
			return true;
		if (ace->Header.AceType == ACCESS_ALLOWED_ACE_TYPE && (ace->Mask & reads) &&
			!(ace->Header.AceFlags & INHERIT_ONLY_ACE) && is_open_to_all(&ace->SidStart))
			return true;
	}
	return false;
}

static int check_access(const char *path, int fd, struct pp_error *err)
{
	PSECURITY_DESCRIPTOR descriptor = NULL;
	ACL *acl = NULL;
	DWORD code = GetSecurityInfo(pp_handle_of(fd), SE_FILE_OBJECT, DACL_SECURITY_INFORMATION, NULL,
		NULL, &acl, NULL, &descriptor);
	bool open_to_all;

	if (code != ERROR_SUCCESS)
		return pp_fail_win(err, code, "cannot tell who may read key '%s'", path);
	open_to_all = !acl || opens(acl); /* no list at all lets everybody in (FAT has none) */
	LocalFree(descriptor);
	if (open_to_all)
		return pp_fail(err, PP_ERR_REFUSED, "key '%s' is open to other users; run: icacls \"%s\" "
			"/inheritance:r /grant:r \"%%USERNAME%%:F\" \"SYSTEM:F\"", path, path);
	return 0;
}

int pp_key_load(const char *path, struct pp_key *key, struct pp_error *err)
{
	char text[2 * PP_KEY_BYTES + 2];
	int fd, n, rc = -1;

	if (pp_open_win(path, O_RDONLY, &fd, err) != 0)
		return pp_fail_within(err, "no key (plugpull key FILE makes one on the control host)");
	if (check_access(path, fd, err) != 0)
		goto out;
	n = read(fd, text, sizeof(text));
	if (n == 2 * PP_KEY_BYTES + 2 && text[n - 2] == '\r') { /* copied as text */
		text[n - 2] = '\n';
		n--;
	}
	if (n < 0)
		pp_fail(err, PP_ERR_SYSTEM, "cannot read key '%s'", path);
	else if (!pp_key_parse(text, (size_t)n, key))
		pp_fail(err, PP_ERR_USAGE, "'%s' is not a key: expected one line of 64 hex digits", path);
	else
		rc = 0;
out:
	close(fd);
	pp_wipe(text, sizeof(text));
	return rc;
}
