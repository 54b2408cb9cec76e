/* SPDX-License-Identifier: MIT */
#include "drive_sysfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file.h"

const struct pp_sysroot *pp_sys(const struct pp_sysroot *sys)
{
	return sys ? sys : &pp_sysroot_live;
}

bool pp_sys_living(const struct pp_sysroot *sys)
{
	return pp_sys(sys)->root[0] == '\0';
}

static bool __attribute__((format(printf, 3, 0)))
full_path(const struct pp_sysroot *sys, char path[PATH_MAX], const char *fmt,
	va_list ap)
{
	int n = snprintf(path, PATH_MAX, "%s", pp_sys(sys)->root);
	int m;

	if (n < 0 || n >= PATH_MAX)
		return false;
	m = vsnprintf(path + n, (size_t)(PATH_MAX - n), fmt, ap);
	return m >= 0 && n + m < PATH_MAX;
}

static long read_some(const char *path, void *out, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t have = 0;

	if (fd < 0)
		return -1;
	while (have < bytes) {
		ssize_t n = read(fd, (char *)out + have, bytes - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			close(fd);
			return -1;
		}
		if (n == 0)
			break;
		have += (size_t)n;
	}
	close(fd);
	return (long)have;
}

static bool read_text(const char *path, char *out, size_t out_bytes)
{
	long n = read_some(path, out, out_bytes - 1);
	size_t start = 0, end;

	if (n < 0 || (size_t)n == out_bytes - 1) {
		out[0] = '\0';
		return false;
	}
	/* An attribute may hold a NUL (vendor strings do); text ends there. */
	out[n] = '\0';
	end = strlen(out);
	while (end && isspace((unsigned char)out[end - 1]))
		end--;
	while (start < end && isspace((unsigned char)out[start]))
		start++;
	memmove(out, out + start, end - start);
	out[end - start] = '\0';
	return true;
}

bool pp_sys_text(const struct pp_sysroot *sys, char *out, size_t out_bytes, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	bool fits;

	out[0] = '\0';
	va_start(ap, fmt);
	fits = full_path(sys, path, fmt, ap);
	va_end(ap);
	return fits && read_text(path, out, out_bytes);
}

bool pp_sys_u64(const struct pp_sysroot *sys, uint64_t *value, const char *fmt, ...)
{
	char path[PATH_MAX], text[64], *end;
	va_list ap;
	bool fits;

	va_start(ap, fmt);
	fits = full_path(sys, path, fmt, ap);
	va_end(ap);
	if (!fits || !read_text(path, text, sizeof(text)) || !isdigit((unsigned char)text[0]))
		return false;
	*value = strtoull(text, &end, 10);
	return *end == '\0';
}

long pp_sys_bytes(const struct pp_sysroot *sys, void *out, size_t bytes, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	bool fits;

	va_start(ap, fmt);
	fits = full_path(sys, path, fmt, ap);
	va_end(ap);
	return fits ? read_some(path, out, bytes) : -1;
}

bool pp_sys_exists(const struct pp_sysroot *sys, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;
	bool fits;

	va_start(ap, fmt);
	fits = full_path(sys, path, fmt, ap);
	va_end(ap);
	return fits && access(path, F_OK) == 0;
}

static int by_name(const void *a, const void *b)
{
	return strverscmp(a, b);
}

size_t pp_sys_names(const struct pp_sysroot *sys, char (**names)[PP_DRIVE_NAME_BYTES],
	const char *fmt, ...)
{
	char (*list)[PP_DRIVE_NAME_BYTES] = NULL;
	size_t count = 0, room = 0;
	struct dirent *entry;
	char path[PATH_MAX];
	va_list ap;
	bool fits;
	DIR *dir;

	*names = NULL;
	va_start(ap, fmt);
	fits = full_path(sys, path, fmt, ap);
	va_end(ap);
	dir = fits ? opendir(path) : NULL;
	if (!dir)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		size_t bytes = strlen(entry->d_name) + 1;

		if (entry->d_name[0] == '.' || bytes > PP_DRIVE_NAME_BYTES)
			continue;
		if (count == room) {
			void *grown = realloc(list, (room = room ? 2 * room : 16) * sizeof(*list));

			if (!grown)
				break;
			list = grown;
		}
		memcpy(list[count++], entry->d_name, bytes);
	}
	closedir(dir);
	if (count)
		qsort(list, count, sizeof(*list), by_name);
	*names = list;
	return count;
}

bool pp_sys_block_dir(const struct pp_sysroot *sys, const char *name, char out[PATH_MAX])
{
	const char *root = pp_sys(sys)->root;
	char link[PATH_MAX], real[PATH_MAX], real_root[PATH_MAX];
	size_t n = 0;

	if (strchr(name, '/') || name[0] == '.' || !name[0])
		return false;
	if (snprintf(link, sizeof(link), "%s/sys/class/block/%s", root, name) >= (int)sizeof(link))
		return false;
	if (!realpath(link, real))
		return false;
	if (root[0]) {
		if (!realpath(root, real_root))
			return false;
		n = strlen(real_root);
		if (strncmp(real, real_root, n) != 0)
			return false;
	}
	snprintf(out, PATH_MAX, "%s", real + n);
	return true;
}

/* Undoes \040 and the like in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; to++) {
		if (at[0] == '\\' && at[1] >= '0' && at[1] <= '3' && at[2] >= '0' && at[2] <= '7' &&
			at[3] >= '0' && at[3] <= '7') {
			*to = (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0'));
			at += 4;
		} else {
			*to = *at++;
		}
	}
	*to = '\0';
}

static void take_word(char **at, char *out, size_t out_bytes)
{
	size_t n = strcspn(*at, " ");

	snprintf(out, out_bytes, "%.*s", (int)n, *at);
	unescape(out);
	*at += n + ((*at)[n] == ' ');
}

static bool parse_mount(char *line, struct pp_mount *m)
{
	int used = 0;
	char *at = line;

	memset(m, 0, sizeof(*m));
	if (sscanf(at, "%d %*d %u:%u %n", &m->id, &m->dev_major, &m->dev_minor, &used) < 3 || !used)
		return false;
	at += used;
	take_word(&at, m->root, sizeof(m->root));
	take_word(&at, m->mount_point, sizeof(m->mount_point));
	take_word(&at, m->options, sizeof(m->options));
	/* Optional fields, then a lone dash. */
	while (*at && !(at[0] == '-' && at[1] == ' ')) {
		at += strcspn(at, " ");
		at += *at == ' ';
	}
	if (!*at)
		return false;
	at += 2;
	take_word(&at, m->fs_type, sizeof(m->fs_type));
	take_word(&at, m->source, sizeof(m->source));
	take_word(&at, m->super_options, sizeof(m->super_options));
	return true;
}

int pp_mounts_read(const struct pp_sysroot *sys, struct pp_mount **mounts, size_t *count,
	struct pp_error *err)
{
	struct pp_mount *list = NULL;
	char path[PATH_MAX], *save = NULL;
	struct pp_buf text;
	size_t room = 0;

	*mounts = NULL;
	*count = 0;
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", pp_sys(sys)->root);
	pp_buf_init(&text, 16 << 20);
	if (pp_file_read(path, &text, err) != 0) {
		pp_buf_release(&text);
		return -1;
	}
	for (char *line = text.data ? strtok_r(text.data, "\n", &save) : NULL; line;
		line = strtok_r(NULL, "\n", &save)) {
		if (*count == room) {
			void *grown = realloc(list, (room = room ? 2 * room : 32) * sizeof(*list));

			if (!grown) {
				free(list);
				pp_buf_release(&text);
				*count = 0;
				return pp_fail(err, PP_ERR_SYSTEM, "out of memory");
			}
			list = grown;
		}
		if (parse_mount(line, &list[*count]))
			(*count)++;
	}
	pp_buf_release(&text);
	*mounts = list;
	return 0;
}

const struct pp_mount *pp_mounts_by_id(const struct pp_mount *mounts, size_t count, int id)
{
	for (size_t i = 0; i < count; i++)
		if (mounts[i].id == id)
			return &mounts[i];
	return NULL;
}

bool pp_sys_name_of_dev(const struct pp_sysroot *sys, unsigned dev_major, unsigned dev_minor,
	char name[PP_DRIVE_NAME_BYTES])
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count = pp_sys_names(sys, &names, "/sys/class/block");
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		char text[32], want[32];

		snprintf(want, sizeof(want), "%u:%u", dev_major, dev_minor);
		if (!pp_sys_text(sys, text, sizeof(text), "/sys/class/block/%s/dev", names[i]))
			continue;
		found = strcmp(text, want) == 0;
		if (found)
			snprintf(name, PP_DRIVE_NAME_BYTES, "%s", names[i]);
	}
	free(names);
	return found;
}

static bool name_of_mapper(const struct pp_sysroot *sys, const char *mapper,
	char name[PP_DRIVE_NAME_BYTES])
{
	char (*names)[PP_DRIVE_NAME_BYTES];
	size_t count = pp_sys_names(sys, &names, "/sys/class/block");
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		char text[256];

		found = pp_sys_text(sys, text, sizeof(text), "/sys/class/block/%s/dm/name", names[i]) &&
			strcmp(text, mapper) == 0;
		if (found)
			snprintf(name, PP_DRIVE_NAME_BYTES, "%s", names[i]);
	}
	free(names);
	return found;
}

bool pp_sys_name_of_node(const struct pp_sysroot *sys, const char *node,
	char name[PP_DRIVE_NAME_BYTES])
{
	struct stat st;
	size_t n;

	if (pp_sys_living(sys))
		return stat(node, &st) == 0 && S_ISBLK(st.st_mode) &&
			pp_sys_name_of_dev(sys, major(st.st_rdev), minor(st.st_rdev), name);
	if (strncmp(node, "/dev/mapper/", 12) == 0)
		return name_of_mapper(sys, node + 12, name);
	if (strncmp(node, "/dev/", 5) != 0 || strlen(node + 5) >= PP_DRIVE_NAME_BYTES)
		return false;
	n = (size_t)snprintf(name, PP_DRIVE_NAME_BYTES, "%s", node + 5);
	for (size_t i = 0; i < n; i++)
		if (name[i] == '/')
			name[i] = '!';
	return pp_sys_exists(sys, "/sys/class/block/%s", name);
}

void pp_sys_node(const char *name, char node[PP_DRIVE_NODE_BYTES])
{
	snprintf(node, PP_DRIVE_NODE_BYTES, "/dev/%s", name);
	for (char *at = node + 5; *at; at++)
		if (*at == '!')
			*at = '/';
}
