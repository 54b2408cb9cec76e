/* SPDX-License-Identifier: MIT */
#include "tree.h"

#include <stdlib.h>
#include <wchar.h>

#include "handle_win.h"

/* Owners are not changed here: who runs plugpull on Windows stays the owner of what it wrote. */
void pp_tree_give(const char *path, unsigned uid, unsigned gid)
{
	(void)path;
	(void)uid;
	(void)gid;
}

void pp_tree_give_to_sudo_user(const char *path)
{
	(void)path;
}

static DWORD remove_wide(const wchar_t *path);

static DWORD remove_inside(const wchar_t *path)
{
	size_t n = wcslen(path) + 2 + MAX_PATH;
	wchar_t *child = malloc(n * sizeof(*child));
	WIN32_FIND_DATAW found;
	DWORD code = ERROR_SUCCESS;
	HANDLE find;

	if (!child)
		return ERROR_NOT_ENOUGH_MEMORY;
	_snwprintf(child, n, L"%ls\\*", path);
	find = FindFirstFileW(child, &found);
	if (find != INVALID_HANDLE_VALUE) {
		do {
			if (wcscmp(found.cFileName, L".") == 0 || wcscmp(found.cFileName, L"..") == 0)
				continue;
			_snwprintf(child, n, L"%ls\\%ls", path, found.cFileName);
			code = remove_wide(child);
		} while (code == ERROR_SUCCESS && FindNextFileW(find, &found));
		FindClose(find);
	}
	free(child);
	return code;
}

/* A junction or link goes, what it points to stays. */
static DWORD remove_wide(const wchar_t *path)
{
	DWORD attributes = GetFileAttributesW(path), code;

	if (attributes == INVALID_FILE_ATTRIBUTES)
		return GetLastError();
	if (!(attributes & FILE_ATTRIBUTE_DIRECTORY))
		return DeleteFileW(path) ? ERROR_SUCCESS : GetLastError();
	code = attributes & FILE_ATTRIBUTE_REPARSE_POINT ? ERROR_SUCCESS : remove_inside(path);
	if (code != ERROR_SUCCESS)
		return code;
	return RemoveDirectoryW(path) ? ERROR_SUCCESS : GetLastError();
}

int pp_tree_remove(const char *path, struct pp_error *err)
{
	wchar_t *wide = pp_wide_path(path, err);
	DWORD code;

	if (!wide)
		return -1;
	code = remove_wide(wide);
	free(wide);
	return code == ERROR_SUCCESS || code == ERROR_FILE_NOT_FOUND || code == ERROR_PATH_NOT_FOUND ? 0
		: pp_fail_win(err, code, "cannot remove '%s'", path);
}
