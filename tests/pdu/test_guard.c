/* SPDX-License-Identifier: MIT
 *
 * Goal: a controller may be killed at any step of off and on, and the outlet is on in the end; the
 * guard's log, the journal and every command line are free of the password.
 * Method: this program starts itself as the controller, which kills itself with SIGKILL at its k-th
 * record, for k = 1, 2, 3, ... until it lives through a whole cycle. The mock lives here. As
 * subreaper this program sees each guard end.
 */
#define MOCK_PDU_EMBEDDED
#include "mock_pdu.c"
#include "rig.h"

#include <sys/prctl.h>

#include "pdu/journal.h"

static int kill_at, records_seen;

static void die_at_record(void *arg, const char *line)
{
	(void)arg;
	(void)line;
	if (++records_seen == kill_at)
		raise(SIGKILL);
}

/* argv: controller URL STATE CREDENTIALS K REQUEST_TIMEOUT_MS. Exit 0: lived through a cycle. */
static int controller(char **argv)
{
	struct pp_pdu_config config = {
		.profile = "shelly-gen2", .url = argv[2], .outlets = { "1" }, .outlet_count = 1,
		.state_dir = argv[3], .credentials_file = argv[4], .min_off_ms = -1, .min_on_ms = -1,
		.cycles_per_hour_max = -1, .connect_timeout_ms = 1000,
		.request_timeout_ms = atoi(argv[6]), .verify_timeout_ms = 400, .settle_ms = 1,
		.poll_ms = 5, .record = die_at_record,
	};
	struct pp_guard_restored restored;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu = pp_pdu_open(&config, &err);
	struct pp_guard *guard = pp_guard_start(&config, NULL, &err);

	kill_at = atoi(argv[5]);
	if (kill_at == 1)
		raise(SIGKILL);
	records_seen = 1;
	if (!pdu || !guard ||
	    pp_guard_arm(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err) != 0 ||
	    pp_pdu_off(pdu, NULL, &err) != 0 || pp_pdu_on(pdu, NULL, &err) != 0 ||
	    pp_guard_disarm(guard, &restored, &err) != 0 || restored.fired ||
	    pp_guard_stop(guard, &err) != 0) {
		fprintf(stderr, "controller: %s\n", err.text);
		return 3;
	}
	pp_pdu_close(pdu);
	return 0;
}

static pid_t spawn_controller(struct rig *rig, int k, int request_timeout_ms)
{
	char at[16], timeout[16];
	pid_t pid;

	snprintf(at, sizeof(at), "%d", k);
	snprintf(timeout, sizeof(timeout), "%d", request_timeout_ms);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "test_guard", "controller", rig->url, rig->state,
			rig->credentials, at, timeout, (char *)NULL);
		_exit(99);
	}
	assert_true(pid > 0);
	return pid;
}

/* Waits for controller and guard alike; the controller's status. */
static int wait_all(pid_t controller_pid)
{
	int status, result = -1;
	pid_t pid;

	while ((pid = waitpid(-1, &status, 0)) > 0 || errno == EINTR)
		if (pid == controller_pid)
			result = status;
	return result;
}

static void rig_start_with_password(struct rig *rig)
{
	rig_start(rig, "shelly-gen2");
	rig_credentials(rig, RIG_PASSWORD);
	rig->mock.password = RIG_PASSWORD;
}

static void no_secret_under(const char *dir)
{
	char command[256];

	snprintf(command, sizeof(command),
		"grep -rlF '%s' '%s' | grep -v '/credentials$' | grep -q .", RIG_PASSWORD, dir);
	assert_int_not_equal(system(command), 0);
}

static void killed_at_each_step(void **state)
{
	int k, status = -1;

	(void)state;
	for (k = 1; k < 60 && status != 0; k++) {
		struct pp_error err = { 0 };
		struct rig rig;

		rig_start_with_password(&rig);
		status = wait_all(spawn_controller(&rig, k, 300));
		if (status != 0)
			assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		if (!rig.mock.relay[0])
			fail_msg("killed at %d: the outlet is off", k);
		no_secret_under(rig.dir);
		/* Nothing is left to do, and what is left says so. */
		assert_int_equal(pp_pdu_recover(rig.state, 0, NULL, NULL, &err), 0);
		rig_stop(&rig);
	}
	assert_int_equal(status, 0);
	assert_true(k > 8); /* the walk did walk */
}

/* Killed with the off under way, and the device obeys it only after the guard's on. */
static void late_off_of_a_dead_controller(void **state)
{
	/* 1: just after the on; 3: when the guard has read it back on twice already. */
	static const struct {
		enum mock_fault fault;
		int late_after;
	} cases[] = { { FAULT_HANG_AFTER, 1 }, { FAULT_LATE, 1 }, { FAULT_LATE, 3 } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct rig rig;
		pid_t pid;

		rig_start_with_password(&rig);
		rig.mock.fault = cases[i].fault;
		rig.mock.late_after = cases[i].late_after;
		rig.mock.kinds = KIND_OFF;
		pid = spawn_controller(&rig, 0, 3000);
		while (!rig.mock.late && !rig.mock.sets[0])
			usleep(1000);
		kill(pid, SIGKILL);
		wait_all(pid);
		assert_int_equal(rig.mock.sets[0], 1);
		assert_true(rig.mock.sets[1] >= 1);
		assert_true(rig.mock.relay[0]);
		rig_stop(&rig);
	}
}

static void wait_for_relay(struct rig *rig)
{
	for (int i = 0; i < 20000 && !rig->mock.relay[0]; i++)
		usleep(1000);
	assert_true(rig->mock.relay[0]);
}

static void missed_deadline(void **state)
{
	struct pp_guard_restored restored;
	struct pp_error err = { 0 };
	struct pp_pdu_times times;
	struct pp_guard *guard;
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start_with_password(&rig);
	pdu = pp_pdu_open(&rig.config, &err);
	guard = pp_guard_start(&rig.config, NULL, &err);
	if (!guard)
		fail_msg("%s", err.text);
	assert_int_equal(pp_guard_arm(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err), 0);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), 0);
	assert_int_equal(pp_guard_extend(guard, pp_clock_mono_ns() + PP_NS_PER_MS, &err), 0);
	wait_for_relay(&rig);
	assert_int_equal(pp_guard_extend(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err), -1);
	assert_int_equal(err.class, PP_ERR_REFUSED);
	for (restored.t_on_ns = 0; !restored.t_on_ns;) { /* it says so once it has read it back */
		struct pp_pdu_status status;

		assert_int_equal(pp_pdu_status(pdu, &status, &err), 0);
		if (rig_journal_entries(&rig) == 1 && status.state == PP_PDU_ON)
			break;
	}
	usleep(100000);
	assert_int_equal(pp_guard_disarm(guard, &restored, &err), 0);
	assert_true(restored.fired && restored.t_on_ns > times.t_read_ns);
	/* Armed anew: the old duty must not interfere with the next cut. */
	assert_int_equal(pp_guard_arm(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err), 0);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), 0);
	usleep(100000);
	assert_false(rig.mock.relay[0]);
	assert_int_equal(pp_pdu_on(pdu, &times, &err), 0);
	assert_int_equal(pp_guard_disarm(guard, &restored, &err), 0);
	assert_false(restored.fired);
	assert_int_equal(pp_guard_stop(guard, &err), 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

struct fence {
	struct rig *rig;
	int lock_fd;
};

/* The status before the off has been read: now the controller "sleeps" in front of the device's lock
 * while its journal entry is marked restored, as its guard would do. */
static void hold_before_the_off(void *arg, const char *line)
{
	struct fence *fence = arg;

	if (fence->lock_fd < 0 && strstr(line, "\"event\":\"state\"")) {
		char key[64];

		snprintf(key, sizeof(key), "127.0.0.1:%d", fence->rig->mock.port);
		fence->lock_fd = pp_state_lock_open(fence->rig->state, key, NULL);
		assert_int_equal(pp_state_lock(fence->lock_fd, 1000, NULL), 0);
	}
}

static void *restore_meanwhile(void *arg)
{
	struct fence *fence = arg;
	char key[64];

	snprintf(key, sizeof(key), "127.0.0.1:%d", fence->rig->mock.port);
	while (rig_journal_entries(fence->rig) < 1)
		usleep(1000);
	/* The entry is there; on a busy host its writer may still be about to say so to the disk. */
	usleep(300000);
	pp_journal_restored(fence->rig->state, key, "1", "guard", pp_clock_mono_ns(), NULL);
	pp_state_unlock(fence->lock_fd);
	return NULL;
}

static void a_late_controller_does_not_cut(void **state)
{
	struct pp_error err = { 0 };
	struct pp_pdu_times times;
	struct fence fence;
	struct pp_pdu *pdu;
	struct rig rig;
	pthread_t thread;

	(void)state;
	rig_start_with_password(&rig);
	fence = (struct fence){ &rig, -1 };
	rig.config.record = hold_before_the_off;
	rig.config.record_arg = &fence;
	pdu = pp_pdu_open(&rig.config, &err);
	pthread_create(&thread, NULL, restore_meanwhile, &fence);
	assert_int_equal(pp_pdu_off(pdu, &times, &err), -1);
	pthread_join(thread, NULL);
	assert_int_equal(times.outcome, PP_PDU_REFUSED);
	assert_int_equal(rig.mock.sets[0], 0);
	close(fence.lock_fd);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void guard_retries_until_the_device_is_back(void **state)
{
	struct pp_error err = { 0 };
	struct pp_guard *guard;
	struct pp_pdu *pdu;
	struct rig rig;

	(void)state;
	rig_start_with_password(&rig);
	pdu = pp_pdu_open(&rig.config, &err);
	guard = pp_guard_start(&rig.config, NULL, &err);
	assert_non_null(guard);
	assert_int_equal(pp_guard_arm(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err), 0);
	assert_int_equal(pp_pdu_off(pdu, NULL, &err), 0);
	rig.mock.fault = FAULT_RESET_BEFORE;
	rig.mock.fault_first = rig.mock.requests + 1;
	rig.mock.fault_count = 150; /* many polls; more than one attempt */
	assert_int_equal(pp_guard_extend(guard, 0, &err), 0);
	wait_for_relay(&rig);
	assert_int_equal(pp_guard_stop(guard, &err), 0);
	pp_pdu_close(pdu);
	rig_stop(&rig);
}

static void guard_stands_apart(void **state)
{
	char path[64], text[4096];
	struct pp_error err = { 0 };
	struct pp_guard *guard;
	struct rig rig;
	ssize_t n;
	pid_t pid;
	int fd;

	(void)state;
	rig_start_with_password(&rig);
	guard = pp_guard_start(&rig.config, NULL, &err);
	assert_non_null(guard);
	pid = pp_guard_pid(guard);
	assert_int_equal(getsid(pid), pid); /* Ctrl-C and hang-up go elsewhere */
	kill(pid, SIGINT);
	kill(pid, SIGTERM);
	kill(pid, SIGHUP);
	assert_int_equal(pp_guard_arm(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err), 0);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	fd = open(path, O_RDONLY);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	assert_true(n > 0);
	assert_null(memmem(text, (size_t)n, RIG_PASSWORD, strlen(RIG_PASSWORD)));
	/* A dead guard is noticed before the next cut. */
	kill(pid, SIGKILL);
	usleep(50000);
	assert_int_equal(pp_guard_arm(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err), -1);
	pp_guard_stop(guard, &err);
	rig_stop(&rig);
}

/* Armed is what counts: a guard that was never armed leaves an outlet alone that was never journaled,
 * one that was armed turns it on although the journal says nothing. */
static void arming_is_what_counts(void **state)
{
	(void)state;
	for (int armed = 0; armed < 2; armed++) {
		struct pp_error err = { 0 };
		struct pp_pdu_times times;
		struct pp_guard *guard;
		struct pp_pdu *pdu;
		struct rig rig;

		rig_start_with_password(&rig);
		guard = pp_guard_start(&rig.config, NULL, &err);
		assert_non_null(guard);
		rig.config.no_journal = true;
		pdu = pp_pdu_open(&rig.config, &err);
		if (armed)
			assert_int_equal(pp_guard_arm(guard, pp_clock_mono_ns() + 60 * PP_NS_PER_S, &err), 0);
		assert_int_equal(pp_pdu_off(pdu, &times, &err), 0);
		assert_int_equal(pp_guard_stop(guard, &err), 0);
		assert_int_equal(rig.mock.relay[0], armed);
		pp_pdu_close(pdu);
		rig_stop(&rig);
	}
}

static void guard_must_be_able_to_read(void **state)
{
	struct pp_error err = { 0 };
	struct rig rig;

	(void)state;
	rig_start_with_password(&rig);
	rig_credentials(&rig, "another-password");
	assert_null(pp_guard_start(&rig.config, NULL, &err));
	assert_non_null(strstr(err.text, "401"));
	rig_stop(&rig);
}

static struct pp_pdu_recovered last_seen;
static int seen_count;

static void see(void *arg, const struct pp_pdu_recovered *recovered)
{
	(void)arg;
	seen_count++;
	last_seen = *recovered;
}

/* Controller killed in the off phase: a resume learns from the journal when the power came back. */
static void resume_learns_the_time(void **state)
{
	int64_t before_ns = pp_clock_mono_ns();
	struct pp_error err = { 0 };
	struct rig rig;

	(void)state;
	rig_start_with_password(&rig);
	wait_all(spawn_controller(&rig, 7, 300)); /* status x3, off, two reads: it is off */
	seen_count = 0;
	assert_int_equal(pp_pdu_recover(rig.state, 0, see, NULL, &err), 0);
	assert_int_equal(seen_count, 1);
	assert_true(last_seen.restored);
	assert_true(last_seen.t_on_mono_ns > before_ns &&
		last_seen.t_on_mono_ns < pp_clock_mono_ns());
	assert_int_equal(pp_pdu_recover_clear(rig.state, &err), 0);
	rig_stop(&rig);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(killed_at_each_step),
		cmocka_unit_test(late_off_of_a_dead_controller),
		cmocka_unit_test(missed_deadline),
		cmocka_unit_test(a_late_controller_does_not_cut),
		cmocka_unit_test(guard_retries_until_the_device_is_back),
		cmocka_unit_test(guard_stands_apart),
		cmocka_unit_test(arming_is_what_counts),
		cmocka_unit_test(guard_must_be_able_to_read),
		cmocka_unit_test(resume_learns_the_time),
	};
	int rc = rig_main(argc, argv);

	if (rc >= 0)
		return rc;
	if (argc == 7 && strcmp(argv[1], "controller") == 0)
		return controller(argv);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
