/* SPDX-License-Identifier: MIT
 *
 * CreateProcessW in a job object, so that a time limit ends its children too. Only the pipe's ends
 * are inherited (PROC_THREAD_ATTRIBUTE_HANDLE_LIST).
 */
#include "subprocess.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "clock.h"
#include "handle_win.h"

#define DEFAULT_TIMEOUT_MS 60000
#define SLICE_MS 20

bool pp_subprocess_find(const char *program, char *path, size_t path_bytes)
{
	wchar_t *wide = pp_wide(program), found[2048];
	char *utf8 = NULL;
	DWORD n = 0;
	bool fits;

	if (wide && wcspbrk(wide, L"/\\:")) {
		n = GetFileAttributesW(wide) != INVALID_FILE_ATTRIBUTES;
		if (n)
			utf8 = pp_utf8(wide);
	} else if (wide) {
		/* The system's folder first; never the current one. */
		wchar_t system[512];

		if (GetSystemDirectoryW(system, 512))
			n = SearchPathW(system, wide, L".exe", 2048, found, NULL);
		if (!n || n >= 2048) {
			DWORD bytes = GetEnvironmentVariableW(L"PATH", NULL, 0);
			wchar_t *list = bytes ? malloc(bytes * sizeof(*list)) : NULL;

			if (list && GetEnvironmentVariableW(L"PATH", list, bytes))
				n = SearchPathW(list, wide, L".exe", 2048, found, NULL);
			free(list);
		}
		if (n && n < 2048)
			utf8 = pp_utf8(found);
	}
	free(wide);
	fits = utf8 && strlen(utf8) < path_bytes;
	if (fits)
		memcpy(path, utf8, strlen(utf8) + 1);
	free(utf8);
	return fits;
}

/* One argument as CommandLineToArgvW and the C runtime take it apart again. */
static void put_argument(struct pp_buf *line, const char *word)
{
	size_t strokes = 0;

	pp_buf_add(line, "\"", 1);
	for (; *word; word++) {
		if (*word == '\\') {
			strokes++;
			pp_buf_add(line, "\\", 1);
			continue;
		}
		if (*word == '"') /* as many again, and one for the mark itself */
			for (strokes++; strokes; strokes--)
				pp_buf_add(line, "\\", 1);
		strokes = 0;
		pp_buf_add(line, word, 1);
	}
	for (; strokes; strokes--)
		pp_buf_add(line, "\\", 1);
	pp_buf_add(line, "\"", 1);
}

void pp_command_line(struct pp_buf *line, const char *const *argv)
{
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			pp_buf_add(line, " ", 1);
		put_argument(line, argv[i]);
	}
	pp_buf_add(line, "", 1);
}

struct child {
	HANDLE process, job, out;
};

/* A pipe whose writing end alone the child inherits. */
static bool make_pipe(HANDLE *ours, HANDLE *theirs)
{
	SECURITY_ATTRIBUTES inherit = { sizeof(inherit), NULL, TRUE };

	return CreatePipe(ours, theirs, &inherit, 0) &&
		SetHandleInformation(*ours, HANDLE_FLAG_INHERIT, 0);
}

static int start(struct child *child, const char *path, wchar_t *line, struct pp_error *err)
{
	STARTUPINFOW info = { .cb = sizeof(info), .dwFlags = STARTF_USESTDHANDLES };
	SECURITY_ATTRIBUTES inherit = { sizeof(inherit), NULL, TRUE };
	JOBOBJECT_EXTENDED_LIMIT_INFORMATION limit = { 0 };
	PROCESS_INFORMATION made;
	HANDLE theirs, nothing;
	DWORD code;
	BOOL ok;

	if (!make_pipe(&child->out, &theirs))
		return pp_fail_win(err, GetLastError(), "cannot make a pipe");
	nothing = CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherit,
		OPEN_EXISTING, 0, NULL);
	info.hStdInput = nothing;
	info.hStdOutput = info.hStdError = theirs;
	ok = CreateProcessW(NULL, line, NULL, NULL, TRUE, CREATE_SUSPENDED | CREATE_NO_WINDOW, NULL, NULL,
		&info, &made);
	code = GetLastError();
	CloseHandle(theirs);
	CloseHandle(nothing);
	if (!ok) {
		CloseHandle(child->out);
		return pp_fail_win(err, code, "cannot run '%s'", path);
	}
	child->process = made.hProcess;
	child->job = CreateJobObjectW(NULL, NULL);
	limit.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
	SetInformationJobObject(child->job, JobObjectExtendedLimitInformation, &limit, sizeof(limit));
	AssignProcessToJobObject(child->job, made.hProcess);
	ResumeThread(made.hThread);
	CloseHandle(made.hThread);
	return 0;
}

/* What is there now; a pipe has no wait with a time limit. */
static void drain(HANDLE out, struct pp_buf *buf, bool *truncated)
{
	char chunk[4096];
	DWORD there, got;

	while (PeekNamedPipe(out, NULL, 0, NULL, &there, NULL) && there > 0 &&
		ReadFile(out, chunk, there < sizeof(chunk) ? there : sizeof(chunk), &got, NULL) && got) {
		if (!buf)
			continue;
		if (buf->bytes + got > buf->max_bytes) {
			*truncated = true;
			got = (DWORD)(buf->max_bytes - buf->bytes);
		}
		pp_buf_add(buf, chunk, got);
	}
}

static void wait_child(struct child *child, const struct pp_subprocess *what,
	struct pp_subprocess_result *result)
{
	int64_t limit_ms = what->timeout_ms > 0 ? what->timeout_ms : DEFAULT_TIMEOUT_MS;
	int64_t until_ns = pp_clock_mono_ns() + limit_ms * PP_NS_PER_MS;
	DWORD status = 0;

	while (WaitForSingleObject(child->process, SLICE_MS) == WAIT_TIMEOUT) {
		drain(child->out, what->out, &result->truncated);
		if (pp_clock_mono_ns() < until_ns)
			continue;
		result->timed_out = true;
		TerminateJobObject(child->job, 1);
		TerminateProcess(child->process, 1);
		until_ns += limit_ms * PP_NS_PER_MS;
	}
	drain(child->out, what->out, &result->truncated);
	if (!GetExitCodeProcess(child->process, &status))
		status = (DWORD)-1; /* Wine has no handle of a program that is none of Windows */
	result->exit_status = result->timed_out ? -1 : (int)status;
	CloseHandle(child->out);
	CloseHandle(child->job);
	CloseHandle(child->process);
}

/* what->env and what->err_out are not used by what runs on Windows: standard error goes with out. */
int pp_subprocess_run(const struct pp_subprocess *what, struct pp_subprocess_result *result,
	struct pp_error *err)
{
	const char *argv[64];
	char path[2048];
	struct pp_buf line;
	struct child child;
	wchar_t *wide;
	size_t i;
	int rc;

	memset(result, 0, sizeof(*result));
	if (what->env || what->err_out)
		return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' cannot be given an environment here",
			what->argv[0]);
	if (!pp_subprocess_find(what->argv[0], path, sizeof(path)))
		return pp_fail(err, PP_ERR_UNSUPPORTED, "'%s' is not installed", what->argv[0]);
	argv[0] = path;
	for (i = 1; i < 63 && what->argv[i]; i++)
		argv[i] = what->argv[i];
	argv[i] = NULL;
	pp_buf_init(&line, 32767);
	pp_command_line(&line, argv);
	wide = line.failed ? NULL : pp_wide(line.data);
	pp_buf_release(&line);
	if (!wide)
		return pp_fail(err, PP_ERR_USAGE, "cannot run '%s': too long, or not UTF-8", path);
	rc = start(&child, path, wide, err);
	free(wide);
	if (rc == 0)
		wait_child(&child, what, result);
	return rc;
}
