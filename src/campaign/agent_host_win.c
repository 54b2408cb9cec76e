/* SPDX-License-Identifier: MIT
 *
 * What the agent says of its machine, and how it switches it off.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <version.h>

#include "agent_parts.h"
#include "src/core/clock.h"
#include "src/core/handle_win.h"
#include "src/core/host_win.h"
#include "src/core/os.h"
#include "src/core/subprocess.h"

#include <winreg.h>

static const char *machine(void)
{
	SYSTEM_INFO info;

	GetNativeSystemInfo(&info);
	return info.wProcessorArchitecture == PROCESSOR_ARCHITECTURE_AMD64 ? "x86_64"
		: info.wProcessorArchitecture == 12 ? "arm64" : "unknown";
}

/* A running program's file cannot be replaced on Windows, so this is the binary that runs. */
static void own_sha256(char out[65])
{
	wchar_t wide[4096];
	DWORD n = GetModuleFileNameW(NULL, wide, 4096);
	char *path = n > 0 && n < 4096 ? pp_utf8(wide) : NULL;

	out[0] = '\0';
	if (path)
		pp_host_sha256_file(path, out, NULL);
	free(path);
}

static int own_name(char *out, size_t bytes, struct pp_error *err)
{
	wchar_t wide[256];
	DWORD n = 256;

	if (!GetComputerNameExW(ComputerNameDnsHostname, wide, &n))
		return pp_fail_win(err, GetLastError(), "cannot tell this machine's name");
	pp_utf8_copy(out, bytes, wide);
	return 0;
}

void agent_host_kernel(char *out, size_t bytes)
{
	pp_host_version(out, bytes);
}

int agent_host_hello(struct pp_hello *hello, struct pp_error *err)
{
	hello->protocol = PP_WIRE_VERSION;
	snprintf(hello->version, sizeof(hello->version), "%s", PP_VERSION);
	snprintf(hello->commit, sizeof(hello->commit), "%s", PP_COMMIT);
	if (!hello->name[0] && own_name(hello->name, sizeof(hello->name), err) != 0)
		return -1;
	agent_host_kernel(hello->kernel, sizeof(hello->kernel));
	snprintf(hello->machine, sizeof(hello->machine), "%s", machine());
	snprintf(hello->os, sizeof(hello->os), "%s", PP_OS_NAME);
	own_sha256(hello->sha256);
	if (pp_host_boot_id(hello->boot_id, sizeof(hello->boot_id), err) != 0)
		return -1;
	hello->uptime_ns = (uint64_t)pp_clock_boot_ns();
	hello->agent_ns = (uint64_t)pp_clock_mono_ns();
	return 0;
}

/* ---- power --------------------------------------------------------------------------------- */

static int take_privilege(struct pp_error *err)
{
	TOKEN_PRIVILEGES wanted = { .PrivilegeCount = 1 };
	HANDLE token;
	DWORD code;

	if (!OpenProcessToken(GetCurrentProcess(), TOKEN_ADJUST_PRIVILEGES | TOKEN_QUERY, &token))
		return pp_fail_win(err, GetLastError(), "cannot ask for the right to switch off");
	wanted.Privileges[0].Attributes = SE_PRIVILEGE_ENABLED;
	LookupPrivilegeValueW(NULL, L"SeShutdownPrivilege", &wanted.Privileges[0].Luid);
	AdjustTokenPrivileges(token, FALSE, &wanted, 0, NULL, NULL);
	code = GetLastError();
	CloseHandle(token);
	return code == ERROR_SUCCESS ? 0
		: pp_fail_win(err, code, "this user may not switch the machine off");
}

/* shutdown.exe without /hybrid: a whole shutdown, never the one that keeps the kernel's session for the
 * next start. Where it is not there, or does not say that it goes: by the call itself. */
int pp_agent_power(void *ctx, bool restart, struct pp_error *err)
{
	const char *const argv[] = { "shutdown", restart ? "/r" : "/s", "/f", "/t", "0", NULL };
	struct pp_subprocess what = { .argv = argv, .timeout_ms = 30000 };
	struct pp_subprocess_result result;
	DWORD flags = SHUTDOWN_FORCE_OTHERS | SHUTDOWN_FORCE_SELF | SHUTDOWN_GRACE_OVERRIDE |
		(restart ? SHUTDOWN_RESTART : SHUTDOWN_POWEROFF);
	DWORD code;

	(void)ctx;
	/* -1: started, and nobody can tell how it ended; it is under way. */
	if (pp_subprocess_run(&what, &result, NULL) == 0 && !result.timed_out && result.exit_status <= 0)
		return 0;
	if (take_privilege(err) != 0)
		return -1;
	code = InitiateShutdownW(NULL, NULL, 0, flags, SHTDN_REASON_MAJOR_APPLICATION |
		SHTDN_REASON_MINOR_MAINTENANCE | SHTDN_REASON_FLAG_PLANNED);
	return code == ERROR_SUCCESS ? 0 : pp_fail_win(err, code, "cannot %s this machine",
		restart ? "restart" : "power off");
}
