/* SPDX-License-Identifier: MIT
 *
 * SHA256SUMS, in the form that sha256sum(1) checks: sorted, two blanks, path from the folder.
 */
#include "evidence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/file.h"
#include "src/core/text.h"

#define SUMS "SHA256SUMS"

static int hash_file(const char *path, char hex[65], struct pp_error *err)
{
	uint8_t buf[65536], digest[SHA256_DIGEST_SIZE];
	struct sha256_ctx ctx;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int i;

	if (fd < 0)
		return pp_fail_os(err, errno, "cannot open '%s'", path);
	sha256_init(&ctx);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		sha256_update(&ctx, (size_t)n, buf);
	close(fd);
	if (n < 0)
		return pp_fail_os(err, errno, "cannot read '%s'", path);
	sha256_digest(&ctx, sizeof(digest), digest);
	for (i = 0; i < SHA256_DIGEST_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n >= m && strcmp(name + n - m, end) == 0;
}

static int walk(const char *folder, const char *below, struct pp_buf *out, struct pp_error *err)
{
	char path[4608], name[4096], hex[65];
	struct dirent **list;
	int n, i, rc = 0;

	pp_text_format(path, sizeof(path), "%s%s%s", folder, below[0] ? "/" : "", below);
	n = scandir(path, &list, NULL, alphasort);
	if (n < 0)
		return pp_fail_os(err, errno, "cannot read folder '%s'", path);
	for (i = 0; i < n; i++) {
		struct stat st;

		if (rc == 0 && list[i]->d_name[0] != '.' && strcmp(list[i]->d_name, SUMS) != 0 &&
			!ends_with(list[i]->d_name, ".tmp")) {
			snprintf(name, sizeof(name), "%.3800s%s%s", below, below[0] ? "/" : "",
				list[i]->d_name);
			pp_text_format(path, sizeof(path), "%.4000s/%.500s", folder, name);
			if (lstat(path, &st) != 0) {
				rc = pp_fail_os(err, errno, "cannot look at '%s'", path);
			} else if (S_ISDIR(st.st_mode)) {
				rc = walk(folder, name, out, err);
			} else if (S_ISREG(st.st_mode)) {
				rc = hash_file(path, hex, err);
				if (rc == 0)
					pp_buf_addf(out, "%s  %s\n", hex, name);
			}
		}
		free(list[i]);
	}
	free(list);
	return rc;
}

static int sums_of(const char *folder, struct pp_buf *out, struct pp_error *err)
{
	if (walk(folder, "", out, err) != 0)
		return -1;
	return out->failed ? pp_fail_os(err, ENOMEM, "cannot sum up '%s'", folder) : 0;
}

int pp_evidence_seal(const char *folder, struct pp_error *err)
{
	char path[4352];
	struct pp_buf sums;
	int rc;

	pp_buf_init(&sums, 256U << 20);
	pp_text_format(path, sizeof(path), "%.4200s/%s", folder, SUMS);
	rc = sums_of(folder, &sums, err);
	if (rc == 0)
		rc = pp_file_write(path, sums.data ? sums.data : "", sums.bytes, 0644, err);
	pp_buf_release(&sums);
	return rc;
}

int pp_evidence_seal_sum(const char *folder, char hex[65], struct pp_error *err)
{
	char path[4352];

	pp_text_format(path, sizeof(path), "%.4200s/%s", folder, SUMS);
	return hash_file(path, hex, err);
}

/* The name in the line at `at`, as a list has it: "  NAME\n"; "" at the end of the list. */
static void name_at(const char *at, char *out, size_t bytes)
{
	size_t n = strcspn(at, "\n");

	snprintf(out, bytes, "%.*s%s", n > 64 ? (int)(n - 64) : 0, n > 64 ? at + 64 : "",
		n > 64 && at[n] ? "\n" : "");
}

/* What happened to the first file in which two lists differ, in words. */
static void first_difference(const char *kept, const char *now, char *out, size_t bytes)
{
	char a[512], b[512];
	const char *what = "was changed", *name = a;
	size_t n = 0;

	while (kept[n] && kept[n] == now[n])
		n++;
	while (n && kept[n - 1] != '\n')
		n--;
	name_at(kept + n, a, sizeof(a));
	name_at(now + n, b, sizeof(b));
	if (b[0] && !strstr(kept, b)) {
		what = "was added";
		name = b;
	} else if (a[0] && !strstr(now, a)) {
		what = "is missing";
	}
	while (*name == ' ')
		name++;
	snprintf(out, bytes, "'%.*s' %s", (int)strcspn(name, "\n"), name, what);
}

int pp_evidence_check_seal(const char *folder, struct pp_error *err)
{
	char path[4352], where[512];
	struct pp_buf kept, now;
	int rc;

	pp_buf_init(&kept, 256U << 20);
	pp_buf_init(&now, 256U << 20);
	pp_text_format(path, sizeof(path), "%.4200s/%s", folder, SUMS);
	rc = pp_file_read(path, &kept, err);
	if (rc == 0)
		rc = sums_of(folder, &now, err);
	if (rc == 0 && (kept.bytes != now.bytes || (now.bytes &&
		memcmp(kept.data, now.data, now.bytes) != 0))) {
		first_difference(kept.data ? kept.data : "", now.data ? now.data : "", where,
			sizeof(where));
		rc = pp_fail(err, PP_ERR_EVIDENCE, "'%s' is not as it was sealed in " SUMS ": %s", folder,
			where);
	}
	pp_buf_release(&kept);
	pp_buf_release(&now);
	return rc;
}
