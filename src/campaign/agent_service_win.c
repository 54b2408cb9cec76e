/* SPDX-License-Identifier: MIT
 *
 * The agent as a Windows service ("Service Programs", Microsoft Learn): it must come back by itself
 * after every cut, before anybody logs on. Delayed automatic start: Windows starts it after the
 * drivers and the network, about two minutes after the boot by default (AutoStartDelay), and
 * restarts it a second after it ended by itself.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"
#include "src/core/buf.h"
#include "src/core/clock.h"
#include "src/core/handle_win.h"

#include <winsvc.h>

#define SERVICE_NAME    L"plugpull-agent"
#define SERVICE_TITLE   L"plugpull agent"
#define SERVICE_TEXT    L"Writes and scans for power-cut tests"
#define STOP_WAIT_MS    20000

static volatile sig_atomic_t stop;

static BOOL WINAPI on_console(DWORD event)
{
	(void)event;
	stop = 1;
	/* At a shutdown the process ends when this returns: leave the agent the time to let go. */
	if (event == CTRL_CLOSE_EVENT || event == CTRL_SHUTDOWN_EVENT)
		Sleep(STOP_WAIT_MS);
	return TRUE;
}

/* ---- run by the service manager -------------------------------------------------------------- */

static struct {
	struct pp_agent_config *config;
	struct pp_error err;
	int rc;
	SERVICE_STATUS_HANDLE handle;
	SERVICE_STATUS status;
} service_run;

static void tell(DWORD state)
{
	service_run.status.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
	service_run.status.dwCurrentState = state;
	service_run.status.dwControlsAccepted = state == SERVICE_RUNNING
		? SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_PRESHUTDOWN : 0;
	service_run.status.dwWaitHint = STOP_WAIT_MS;
	/* An end that nobody asked for is a failure, so that the recovery actions restart it. */
	service_run.status.dwWin32ExitCode = state == SERVICE_STOPPED && service_run.rc != 0
		? ERROR_SERVICE_SPECIFIC_ERROR : NO_ERROR;
	service_run.status.dwServiceSpecificExitCode = service_run.rc != 0 ? 2 : 0;
	SetServiceStatus(service_run.handle, &service_run.status);
}

static DWORD WINAPI on_control(DWORD control, DWORD type, void *data, void *ctx)
{
	(void)type;
	(void)data;
	(void)ctx;
	if (control == SERVICE_CONTROL_INTERROGATE)
		return NO_ERROR;
	if (control != SERVICE_CONTROL_STOP && control != SERVICE_CONTROL_PRESHUTDOWN)
		return ERROR_CALL_NOT_IMPLEMENTED;
	tell(SERVICE_STOP_PENDING);
	stop = 1;
	return NO_ERROR;
}

static void WINAPI service_main(DWORD argc, wchar_t **argv)
{
	(void)argc;
	(void)argv;
	service_run.handle = RegisterServiceCtrlHandlerExW(SERVICE_NAME, on_control, NULL);
	if (!service_run.handle)
		return;
	tell(SERVICE_RUNNING);
	service_run.rc = pp_agent_run(service_run.config, &service_run.err);
	tell(SERVICE_STOPPED);
}

int pp_agent_serve(struct pp_agent_config *config, bool service, struct pp_error *err)
{
	wchar_t name[] = SERVICE_NAME;
	SERVICE_TABLE_ENTRYW table[] = { { name, service_main }, { NULL, NULL } };

	config->stop = &stop;
	if (!service) {
		SetConsoleCtrlHandler(on_console, TRUE);
		return pp_agent_run(config, err);
	}
	service_run.config = config;
	if (!StartServiceCtrlDispatcherW(table))
		return pp_fail_win(err, GetLastError(), "only the service manager starts it with --service");
	if (service_run.rc != 0 && err)
		*err = service_run.err;
	return service_run.rc;
}

/* ---- install and remove ---------------------------------------------------------------------- */

static wchar_t *command_line(const char *const *arguments, struct pp_error *err)
{
	const char *argv[256];
	wchar_t path[4096], *wide;
	DWORD n = GetModuleFileNameW(NULL, path, 4096);
	char *own = n > 0 && n < 4096 ? pp_utf8(path) : NULL;
	struct pp_buf line;
	size_t i;

	if (!own) {
		pp_fail(err, PP_ERR_SYSTEM, "cannot find this program's own file");
		return NULL;
	}
	argv[0] = own;
	for (i = 0; arguments[i] && i < 250; i++)
		argv[i + 1] = arguments[i];
	argv[++i] = "--service";
	argv[++i] = NULL;
	pp_buf_init(&line, 32767);
	pp_command_line(&line, argv);
	wide = line.failed ? NULL : pp_wide(line.data);
	pp_buf_release(&line);
	free(own);
	if (!wide)
		pp_fail(err, PP_ERR_USAGE, "the service's command line is too long, or not UTF-8");
	return wide;
}

/* A system that does not know the setting (Wine) starts and runs the service without it. */
static bool set(SC_HANDLE service, DWORD level, void *info)
{
	return ChangeServiceConfig2W(service, level, info) || GetLastError() == ERROR_INVALID_LEVEL;
}

static int set_recovery(SC_HANDLE service, struct pp_error *err)
{
	wchar_t text[] = SERVICE_TEXT;
	SC_ACTION restart[3] = { { SC_ACTION_RESTART, 1000 }, { SC_ACTION_RESTART, 1000 },
		{ SC_ACTION_RESTART, 5000 } };
	SERVICE_FAILURE_ACTIONSW actions = { .dwResetPeriod = 3600, .cActions = 3, .lpsaActions = restart };
	SERVICE_FAILURE_ACTIONS_FLAG also_stops = { TRUE };
	SERVICE_DELAYED_AUTO_START_INFO delayed = { TRUE };
	SERVICE_DESCRIPTIONW description = { text };

	set(service, SERVICE_CONFIG_DESCRIPTION, &description);
	if (!set(service, SERVICE_CONFIG_DELAYED_AUTO_START_INFO, &delayed))
		return pp_fail_win(err, GetLastError(), "cannot make the service start by itself");
	if (!set(service, SERVICE_CONFIG_FAILURE_ACTIONS, &actions) ||
		!set(service, SERVICE_CONFIG_FAILURE_ACTIONS_FLAG, &also_stops))
		return pp_fail_win(err, GetLastError(), "cannot make the service restart after a failure");
	return 0;
}

static SC_HANDLE open_manager(DWORD access, struct pp_error *err)
{
	SC_HANDLE manager = OpenSCManagerW(NULL, NULL, access);

	if (!manager)
		pp_fail_win(err, GetLastError(), "cannot reach the service manager (run this as "
			"administrator)");
	return manager;
}

int pp_agent_install(const char *const *arguments, struct pp_error *err)
{
	wchar_t *line = command_line(arguments, err);
	SC_HANDLE manager, service;
	DWORD code;
	int rc = -1;

	manager = line ? open_manager(SC_MANAGER_CREATE_SERVICE, err) : NULL;
	if (!manager) {
		free(line);
		return -1;
	}
	service = CreateServiceW(manager, SERVICE_NAME, SERVICE_TITLE, SERVICE_ALL_ACCESS,
		SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START, SERVICE_ERROR_NORMAL, line, NULL, NULL, NULL,
		NULL, NULL);
	code = GetLastError();
	if (!service && code == ERROR_SERVICE_EXISTS)
		pp_fail(err, PP_ERR_USAGE, "the service is installed already: --uninstall it first");
	else if (!service)
		pp_fail_win(err, code, "cannot install the service");
	else if (set_recovery(service, err) == 0)
		rc = StartServiceW(service, 0, NULL) ? 0
			: pp_fail_win(err, GetLastError(), "cannot start the service");
	if (service && rc != 0)
		DeleteService(service); /* all of it, or nothing */
	if (service)
		CloseServiceHandle(service);
	CloseServiceHandle(manager);
	free(line);
	return rc;
}

static void stop_service(SC_HANDLE service)
{
	int64_t until_ns = pp_clock_mono_ns() + STOP_WAIT_MS * PP_NS_PER_MS;
	SERVICE_STATUS status;

	if (!ControlService(service, SERVICE_CONTROL_STOP, &status))
		return;
	while (QueryServiceStatus(service, &status) && status.dwCurrentState != SERVICE_STOPPED &&
		pp_clock_mono_ns() < until_ns)
		pp_clock_sleep_ms(100);
}

int pp_agent_uninstall(struct pp_error *err)
{
	SC_HANDLE manager = open_manager(SC_MANAGER_CONNECT, err), service;
	DWORD code;
	int rc = 0;

	if (!manager)
		return -1;
	service = OpenServiceW(manager, SERVICE_NAME, SERVICE_STOP | SERVICE_QUERY_STATUS | DELETE);
	code = GetLastError();
	if (!service) {
		rc = code == ERROR_SERVICE_DOES_NOT_EXIST
			? pp_fail(err, PP_ERR_USAGE, "the service is not there: nothing is installed")
			: pp_fail_win(err, code, "cannot open the service");
	} else {
		stop_service(service);
		if (!DeleteService(service))
			rc = pp_fail_win(err, GetLastError(), "cannot remove the service");
		CloseServiceHandle(service);
	}
	CloseServiceHandle(manager);
	return rc;
}
