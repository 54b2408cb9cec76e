/* SPDX-License-Identifier: MIT */
#include "matrix_host.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "src/core/text.h"

static volatile sig_atomic_t *stop_flag;

enum pp_matrix_place pp_matrix_host_place(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return PP_MATRIX_PLACE_FILE;
	return S_ISDIR(st.st_mode) ? PP_MATRIX_PLACE_FOLDER
		: S_ISBLK(st.st_mode) ? PP_MATRIX_PLACE_DEVICE : PP_MATRIX_PLACE_FILE;
}

int pp_matrix_host_disk(const char *path, char *name, size_t bytes, struct pp_error *err)
{
	char *real = realpath(path, NULL);

	if (!real)
		return pp_fail_os(err, errno, "cannot resolve '%s'", path);
	pp_text_copy(name, bytes, strrchr(real, '/') + 1);
	free(real);
	return 0;
}

/* The matrix opens it with O_EXCL. */
const struct pp_target *pp_matrix_host_claim(const char *serial, int *rc, struct pp_error *err)
{
	(void)serial;
	(void)err;
	*rc = 0;
	return NULL;
}

static void on_signal(int number)
{
	(void)number;
	*stop_flag = 1;
}

/* A closed pipe and a file size limit are errors here, no end. */
void pp_matrix_host_catch(volatile sig_atomic_t *stop)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = on_signal };
	size_t i;

	stop_flag = stop;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		sigaction(ends[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

void pp_matrix_host_kernel(char *out, size_t bytes)
{
	struct utsname name;

	pp_text_copy(out, bytes, uname(&name) == 0 ? name.release : "");
}

bool pp_matrix_host_fs(const char *folder, struct pp_stack *stack)
{
	return pp_drive_of_path(NULL, folder, stack, NULL) == 0;
}
