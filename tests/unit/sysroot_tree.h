/* SPDX-License-Identifier: MIT
 *
 * Unpacks a recorded machine (tests/unit/data/sysroot/NAME.tree) into a temporary folder that a
 * struct pp_sysroot can point to. A tree is text, so that a reader sees what is recorded:
 *   F path text     a file with that line          A path text    another line of it
 *   X path hex      a binary file                  L path target  a symbolic link
 *   O path OFFSET HEX   bytes at an offset of a binary file, zeros before them
 */
#ifndef TESTS_UNIT_SYSROOT_TREE_H
#define TESTS_UNIT_SYSROOT_TREE_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/janitor.h"

static void tree_parents(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		mkdir(path, 0755);
		*p = '/';
	}
}

static int tree_patch(const char *path, char *text)
{
	FILE *f = fopen(path, "r+");

	if (!f)
		f = fopen(path, "w");
	if (!f)
		return -1;
	fseek(f, strtol(text, &text, 10), SEEK_SET);
	text += *text == ' ';
	for (unsigned byte; sscanf(text, "%2x", &byte) == 1; text += 2)
		fputc((int)byte, f);
	return fclose(f);
}

static int tree_line(const char *root, char *line)
{
	char path[PATH_MAX], *name = line + 2, *text = strchr(name, ' ');
	FILE *f;

	line[strcspn(line, "\n")] = '\0';
	if (line[0] == '#' || line[0] == '\0')
		return 0;
	if (!text)
		return -1;
	*text++ = '\0';
	snprintf(path, sizeof(path), "%s/%s", root, name);
	tree_parents(path);
	if (line[0] == 'L')
		return symlink(text, path);
	if (line[0] == 'O')
		return tree_patch(path, text);
	f = fopen(path, line[0] == 'A' ? "a" : "w");
	if (!f)
		return -1;
	for (unsigned byte; line[0] == 'X' && sscanf(text, "%2x", &byte) == 1; text += 2)
		fputc((int)byte, f);
	if (line[0] != 'X')
		fprintf(f, "%s\n", text);
	return fclose(f);
}

/* What is unpacked, so that a test that fails leaves nothing behind either. */
static char tree_roots[256][64];
static size_t tree_count;

/* Returns 0 and the folder in root. Data lies beside this header's folder. */
static int tree_unpack(const char *name, char root[64])
{
	char path[PATH_MAX], line[1024];
	int rc = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%.*s/data/sysroot/%s.tree",
		(int)(strrchr(__FILE__, '/') - __FILE__), __FILE__, name);
	f = fopen(path, "r");
	snprintf(root, 64, "%s/plugpull-sysroot.XXXXXX", janitor_tmp());
	if (!f || !janitor_mkdtemp(root)) {
		fprintf(stderr, "cannot unpack '%s': run the test from the project's folder\n", path);
		if (f)
			fclose(f);
		return -1;
	}
	if (tree_count < sizeof(tree_roots) / sizeof(tree_roots[0]))
		memcpy(tree_roots[tree_count++], root, 64);
	while (rc == 0 && fgets(line, sizeof(line), f))
		rc = tree_line(root, line);
	fclose(f);
	return rc;
}

static void tree_remove(const char *root)
{
	janitor_remove(root);
}

/* cmocka group teardown. */
static int tree_remove_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < tree_count; i++)
		tree_remove(tree_roots[i]);
	return 0;
}

#endif
