/* SPDX-License-Identifier: MIT */
#include "matrix_host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/descriptor.h"
#include "src/core/handle_win.h"
#include "src/core/host_win.h"
#include "src/core/text.h"

#define DEVICE_PREFIX "\\\\.\\"

static volatile sig_atomic_t *stop_flag;

enum pp_matrix_place pp_matrix_host_place(const char *path)
{
	wchar_t *wide;
	DWORD attributes;

	if (strncmp(path, DEVICE_PREFIX, strlen(DEVICE_PREFIX)) == 0)
		return PP_MATRIX_PLACE_DEVICE;
	wide = pp_wide_path(path, NULL);
	attributes = wide ? GetFileAttributesW(wide) : INVALID_FILE_ATTRIBUTES;
	free(wide);
	return attributes != INVALID_FILE_ATTRIBUTES && attributes & FILE_ATTRIBUTE_DIRECTORY
		? PP_MATRIX_PLACE_FOLDER : PP_MATRIX_PLACE_FILE;
}

int pp_matrix_host_disk(const char *path, char *name, size_t bytes, struct pp_error *err)
{
	if (strncmp(path, DEVICE_PREFIX "PhysicalDrive", strlen(DEVICE_PREFIX "PhysicalDrive")) != 0)
		return pp_fail(err, PP_ERR_USAGE, "'%s' is no physical drive: name it as "
			DEVICE_PREFIX "PhysicalDrive1", path);
	pp_text_copy(name, bytes, path + strlen(DEVICE_PREFIX));
	return 0;
}

const struct pp_target *pp_matrix_host_claim(const char *serial, int *rc, struct pp_error *err)
{
	static struct pp_target target;
	static struct pp_target_spec spec;

	pp_target_spec_init(&spec);
	spec.kind = PP_TARGET_RAW;
	spec.wait_ms = 0;
	spec.force = true; /* a person named its serial for destruction */
	pp_text_copy(spec.serial, sizeof(spec.serial), serial);
	*rc = pp_target_prove(&spec, &target, err);
	return *rc == 0 ? &target : NULL;
}

/* Called in a thread of the system's. */
static BOOL WINAPI on_control(DWORD which)
{
	(void)which;
	*stop_flag = 1;
	return TRUE;
}

void pp_matrix_host_catch(volatile sig_atomic_t *stop)
{
	stop_flag = stop;
	SetConsoleCtrlHandler(on_control, TRUE);
}

void pp_matrix_host_kernel(char *out, size_t bytes)
{
	pp_host_version(out, bytes);
}

bool pp_matrix_host_fs(const char *folder, struct pp_stack *stack)
{
	bool found;
	int fd;

	if (pp_open_win(folder, O_RDONLY | O_DIRECTORY, &fd, NULL) != 0)
		return false;
	found = pp_drive_of_fd(fd, folder, stack, NULL) == 0;
	close(fd);
	return found;
}
