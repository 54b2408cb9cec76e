/* SPDX-License-Identifier: MIT
 *
 * What the tests of the power switch share: a mock, a folder of their own, a config with short
 * times, and the records that were written. Included after mock_pdu.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "pdu/guard.h"
#include "pdu/pdu.h"
#include "src/core/buf.h"
#include "src/core/clock.h"
#include "tests/janitor.h"

#define RIG_PASSWORD "correct-horse-9"

struct rig {
	struct mock mock;
	struct pp_pdu_config config;
	char dir[64], state[96], credentials[96], url[64];
	struct pp_buf records;
};

static void rig_record(void *arg, const char *line)
{
	struct rig *rig = arg;

	pp_buf_addf(&rig->records, "%s\n", line);
}

__attribute__((unused))
static void rig_credentials(struct rig *rig, const char *password)
{
	FILE *file = fopen(rig->credentials, "w");

	assert_non_null(file);
	fprintf(file, "user = %s\npassword = %s\ntoken = %s\n", rig->mock.user, password, password);
	fclose(file);
	assert_int_equal(chmod(rig->credentials, 0600), 0);
	rig->config.credentials_file = rig->credentials;
}

static void rig_start(struct rig *rig, const char *dialect)
{
	memset(rig, 0, sizeof(*rig));
	snprintf(rig->dir, sizeof(rig->dir), "%s/plugpull-pdu-XXXXXX", janitor_tmp());
	assert_non_null(janitor_mkdtemp(rig->dir));
	snprintf(rig->state, sizeof(rig->state), "%s/state", rig->dir);
	snprintf(rig->credentials, sizeof(rig->credentials), "%s/credentials", rig->dir);
	mock_start(&rig->mock, dialect);
	snprintf(rig->url, sizeof(rig->url), "http://127.0.0.1:%d", rig->mock.port);
	pp_buf_init(&rig->records, 4 << 20);
	rig->config = (struct pp_pdu_config){
		.profile = dialect, .url = rig->url, .outlets = { "1" }, .outlet_count = 1,
		.state_dir = rig->state, .min_off_ms = -1, .min_on_ms = -1, .cycles_per_hour_max = -1,
		.connect_timeout_ms = 1000, .request_timeout_ms = 600, .verify_timeout_ms = 800,
		.settle_ms = 1, .poll_ms = 5, .watts_period_ms = 1, .watts_stale_ms = -1,
		.record = rig_record, .record_arg = rig,
	};
}

static void rig_stop(struct rig *rig)
{
	mock_stop(&rig->mock);
	pp_buf_release(&rig->records);
	janitor_remove(rig->dir);
}

#define RIG_TEST_PID "PLUGPULL_TEST_PID"

/* A guard ends with its duty, and the switch of an interrupted test never comes back. So in a test it
 * ends with the test as well. */
static void *rig_leash(void *arg)
{
	pid_t test = atoi(arg);

	while (kill(test, 0) == 0)
		usleep(100000);
	_exit(0);
}

/* The guard is this very program: each test's main() begins with this. */
static int rig_main(int argc, char **argv)
{
	char pid[16];
	pthread_t leash;

	signal(SIGPIPE, SIG_IGN);
	if (argc == 5 && strcmp(argv[1], "pdu") == 0 && strcmp(argv[2], "guard") == 0) {
		if (getenv(RIG_TEST_PID))
			pthread_create(&leash, NULL, rig_leash, getenv(RIG_TEST_PID));
		return pp_guard_main(atoi(argv[4]));
	}
	if (argc == 1) {
		snprintf(pid, sizeof(pid), "%d", (int)getpid());
		setenv(RIG_TEST_PID, pid, 1);
		janitor_start();
	}
	return -1;
}

__attribute__((unused))
static int rig_journal_entries(struct rig *rig)
{
	char command[256];
	FILE *pipe;
	int count = -1;

	snprintf(command, sizeof(command), "ls %s/journal 2>/dev/null | wc -l", rig->state);
	pipe = popen(command, "r");
	if (pipe && fscanf(pipe, "%d", &count) != 1)
		count = -1;
	if (pipe)
		pclose(pipe);
	return count;
}
