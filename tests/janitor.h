/* SPDX-License-Identifier: MIT
 *
 * Temporary folders that go when their test goes, however that happens. A process of its own session,
 * no child of the test, holds the other end of a pipe: at its end, be it by Ctrl-C, SIGTERM or SIGKILL,
 * it removes what it was told of and is still there. A signal handler could not: it may run in the
 * middle of malloc(3).
 */
#ifndef TESTS_JANITOR_H
#define TESTS_JANITOR_H

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int janitor_fd = -1;

static int janitor_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st;
	(void)kind;
	(void)ftw;
	return remove(path);
}

static void janitor_remove(const char *folder)
{
	nftw(folder, janitor_remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void janitor_work(int fd)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	static char folders[512][256];
	int null = open("/dev/null", O_RDWR), count = 0;
	FILE *list = fdopen(fd, "r");

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		signal(ignored[i], SIG_IGN);
	for (int i = 0; i < 3; i++)
		dup2(null, i); /* who waits for the test's output does not wait for us */
	while (list && count < 512 && fgets(folders[count], sizeof(folders[0]), list)) {
		folders[count][strcspn(folders[count], "\n")] = '\0';
		count++;
	}
	while (--count >= 0)
		janitor_remove(folders[count]);
}

/* Once, as early as there are no threads; janitor_mkdtemp() does it otherwise. */
static void janitor_start(void)
{
	int ends[2];
	pid_t pid;

	if (janitor_fd >= 0 || pipe2(ends, O_CLOEXEC) != 0)
		return;
	pid = fork();
	if (pid == 0) {
		setsid();
		if (fork() == 0) {
			close(ends[1]);
			janitor_work(ends[0]);
		}
		_exit(0);
	}
	close(ends[0]);
	janitor_fd = ends[1];
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

/* Where temporary folders go; a path that is too long for the tests' buffers is not taken. */
__attribute__((unused))
static const char *janitor_tmp(void)
{
	const char *given = getenv("TMPDIR");

	return given && *given && strlen(given) < 34 ? given : "/tmp";
}

/* As mkdtemp(3): the folder goes with this process, if nobody removed it before. */
static char *janitor_mkdtemp(char *path)
{
	janitor_start();
	if (!mkdtemp(path))
		return NULL;
	if (dprintf(janitor_fd, "%s\n", path) < 0)
		fprintf(stderr, "'%s' will not be removed if this test is interrupted\n", path);
	return path;
}

#endif
