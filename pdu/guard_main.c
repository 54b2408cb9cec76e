/* SPDX-License-Identifier: MIT
 *
 * The guard's own life. One thread, one loop: wait for an order, the end of the controller, or the
 * deadline. While armed, the last two mean: power on, now, and for as long as it takes.
 *
 * "The controller died" has two witnesses, because each alone can be blind: end of file is late when
 * a forked child of the controller still holds the socket; the pidfd does not exist on old kernels.
 * After turning on it stays for a while and looks again, since an off request of the dead controller
 * may still have been on its way to a slow device.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "guard_wire.h"
#include "journal.h"
#include "src/core/clock.h"
#include "src/core/file.h"

#define BACKOFF_MS_MIN 500
#define BACKOFF_MS_MAX 30000

struct life {
	int fd, pidfd, log_fd;
	struct pp_pdu *pdu;
	struct pp_pdu_config config; /* strings in orders */
	json_t *first;
	struct pp_journal_owner controller;
	bool armed, fired, orphaned, leave;
	int64_t deadline_ns, t_on_ns;
};

static void say(struct life *life, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* stderr may be a terminal that is gone: the log file is the lasting word. */
static void say(struct life *life, const char *fmt, ...)
{
	char text[900], line[1000], wall[32];
	va_list ap;
	int n;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pp_clock_wall(wall, sizeof(wall));
	n = snprintf(line, sizeof(line), "%s plugpull guard %d: %s\n", wall, (int)getpid(), text);
	if (life->log_fd >= 0)
		(void)!pp_write_all(life->log_fd, line, (size_t)n);
	(void)!pp_write_all(2, line, (size_t)n);
}

static void record(void *arg, const char *line)
{
	struct life *life = arg;

	if (life->log_fd < 0)
		return;
	(void)!pp_write_all(life->log_fd, line, strlen(line));
	(void)!pp_write_all(life->log_fd, "\n", 1);
}

static void answer(struct life *life, bool good, const char *error)
{
	json_t *json = json_pack("{s:b, s:b, s:I}", "ok", good, "fired", life->fired, "t_on_ns",
		(json_int_t)life->t_on_ns);
	char *text;

	if (json && error)
		json_object_set_new(json, "error", json_string(error));
	text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	if (text)
		(void)!send(life->fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	free(text);
	json_decref(json);
}

/* ---- orders ------------------------------------------------------------------------------- */

static int start(struct life *life, json_t *order, struct pp_error *err)
{
	struct pp_pdu_status status;
	char path[4200];

	life->first = json_incref(order);
	life->controller.pid = (pid_t)json_integer_value(json_object_get(order, "pid"));
	life->controller.start =
		(unsigned long long)json_integer_value(json_object_get(order, "pid_start"));
	if (pp_config_from_json(json_object_get(order, "config"), &life->config, err) != 0)
		return -1;
	life->config.record = record;
	life->config.record_arg = life;
	life->config.min_off_ms = -1; /* restoring has no time to lose */
	life->pidfd = (int)syscall(SYS_pidfd_open, life->controller.pid, 0);
	if (pp_state_process_start(life->controller.pid) != life->controller.start)
		return pp_fail(err, PP_ERR_SYSTEM, "the controller is gone already");
	snprintf(path, sizeof(path), "%s/guard.log", life->config.state_dir);
	life->log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	life->pdu = pp_pdu_open(&life->config, err);
	if (!life->pdu)
		return -1;
	/* Whoever cannot read the switch now will not restore it later. */
	if (pp_pdu_identify(life->pdu, NULL, err) != 0)
		return -1;
	return pp_pdu_can_verify(life->pdu) ? pp_pdu_status(life->pdu, &status, err) : 0;
}

static void set_armed(struct life *life, bool armed, int64_t deadline_ns)
{
	life->armed = armed;
	life->deadline_ns = deadline_ns;
	answer(life, true, NULL);
}

static void obey(struct life *life, json_t *json)
{
	const char *order = json_string_value(json_object_get(json, "order"));
	int64_t deadline_ns = json_integer_value(json_object_get(json, "deadline_ns"));
	struct pp_error err = { 0 };

	if (!order) {
		answer(life, false, "no order");
	} else if (!life->pdu && strcmp(order, "start") == 0) {
		if (start(life, json, &err) == 0) {
			answer(life, true, NULL);
		} else {
			answer(life, false, err.text);
			life->leave = true;
		}
	} else if (!life->pdu) {
		answer(life, false, "not started");
	} else if (strcmp(order, "arm") == 0) {
		life->fired = false;
		life->t_on_ns = 0;
		set_armed(life, true, deadline_ns);
	} else if (strcmp(order, "extend") == 0) {
		if (life->fired || !life->armed)
			answer(life, false, life->fired ?
				"the deadline has passed and the power is turned on" : "not armed");
		else
			set_armed(life, true, deadline_ns);
	} else if (strcmp(order, "disarm") == 0) {
		set_armed(life, false, 0);
		life->fired = false;
	} else if (strcmp(order, "stop") == 0) {
		life->leave = true;
		answer(life, true, NULL);
	} else {
		answer(life, false, "unknown order");
	}
}

/* False: no (more) packets now. */
static bool take_order(struct life *life)
{
	char packet[PP_GUARD_PACKET_BYTES];
	ssize_t n = recv(life->fd, packet, sizeof(packet) - 1, MSG_DONTWAIT);
	json_t *json;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		life->orphaned = true;
		return false;
	}
	packet[n] = '\0';
	json = json_loads(packet, 0, NULL);
	obey(life, json);
	json_decref(json);
	return true;
}

static void wait_for_word(struct life *life, int64_t timeout_ms)
{
	struct pollfd pfd[2] = {
		{ .fd = life->fd, .events = POLLIN },
		{ .fd = life->pidfd, .events = POLLIN },
	};

	/* A dead controller's descriptors stay readable: then the time is slept away. */
	if (life->orphaned) {
		pp_clock_sleep_ms(timeout_ms);
		return;
	}
	if (timeout_ms > 3600000 || timeout_ms < 0)
		timeout_ms = 3600000;
	if (poll(pfd, 2, (int)timeout_ms) <= 0)
		return;
	/* Orders that were sent before the end are still obeyed: disarm, then exit, is a good end. */
	if (pfd[0].revents)
		while (take_order(life) && !life->leave)
			;
	if (pfd[1].revents && !life->leave)
		life->orphaned = true;
}

/* ---- duty --------------------------------------------------------------------------------- */

/* An entry of our controller in the journal means that an off may have been sent. */
static bool journal_pending(struct life *life)
{
	bool pending = false;

	for (int i = 0; i < life->config.outlet_count; i++) {
		struct pp_journal_entry entry;

		if (pp_journal_read(life->config.state_dir, pp_pdu_host_key(life->pdu),
		    life->config.outlets[i], life->controller, &entry, NULL) != 0)
			continue;
		pending = pending || entry.state == PP_JOURNAL_MINE;
		pp_journal_release(&entry);
	}
	return pending;
}

static void write_restored(struct life *life)
{
	for (int i = 0; i < life->config.outlet_count; i++) {
		struct pp_error err = { 0 };

		if (pp_journal_restored(life->config.state_dir, pp_pdu_host_key(life->pdu),
		    life->config.outlets[i], "guard", life->t_on_ns, &err) != 0)
			say(life, "%s", err.text);
	}
}

/* A living controller has disarmed, or armed anew for its next cut: hands off. */
static bool relieved(const struct life *life)
{
	return !life->orphaned && (!life->armed || !life->fired);
}

/* Until it reads on. Orders are answered in between; only disarm and stop end the effort early: then
 * a living controller has verified the power itself. */
static void turn_on(struct life *life)
{
	int64_t backoff_ms = BACKOFF_MS_MIN;

	for (int attempt = 1;; attempt++) {
		struct pp_pdu_times times;
		struct pp_error err = { 0 };

		if (pp_pdu_on(life->pdu, &times, &err) == 0) {
			life->t_on_ns = times.t_read_ns;
			say(life, "power is on again");
			write_restored(life);
			return;
		}
		if (times.outcome == PP_PDU_STATE_UNKNOWN && !pp_pdu_can_verify(life->pdu)) {
			say(life, "on was sent; this switch cannot be read back");
			return;
		}
		say(life, "POWER IS NOT RESTORED, attempt %d: %s; trying again in %lld ms", attempt,
			err.text, (long long)backoff_ms);
		wait_for_word(life, backoff_ms);
		if (relieved(life))
			return;
		backoff_ms = backoff_ms * 2 > BACKOFF_MS_MAX ? BACKOFF_MS_MAX : backoff_ms * 2;
	}
}

/* An off that another living controller has journaled is meant: the outlet is in its care now. */
static bool taken_over(const struct life *life)
{
	bool taken = false;

	for (int i = 0; i < life->config.outlet_count; i++) {
		struct pp_journal_entry entry;

		if (pp_journal_read(life->config.state_dir, pp_pdu_host_key(life->pdu),
		    life->config.outlets[i], life->controller, &entry, NULL) != 0)
			continue;
		taken = taken || entry.state == PP_JOURNAL_OTHERS;
		pp_journal_release(&entry);
	}
	return taken;
}

/* Looks again for as long as a late off can arrive. */
static void linger(struct life *life)
{
	int64_t end_ns = pp_clock_mono_ns() +
		(life->config.request_timeout_ms + life->config.settle_ms +
		4 * life->config.poll_ms) * PP_NS_PER_MS;

	while (pp_clock_mono_ns() < end_ns && !life->leave) {
		struct pp_pdu_status status;

		wait_for_word(life, life->config.poll_ms);
		if (relieved(life))
			return;
		if (pp_pdu_can_verify(life->pdu) && pp_pdu_status(life->pdu, &status, NULL) == 0 &&
		    status.state == PP_PDU_OFF) {
			if (taken_over(life)) /* the journal is written before the off */
				return;
			say(life, "the outlet went off again (a late command): turning it on");
			turn_on(life);
		}
	}
}

static void fire(struct life *life, const char *why)
{
	say(life, "%s: turning the power on (%s, outlet %s)", why, pp_pdu_host_key(life->pdu),
		life->config.outlets[0]);
	life->fired = true;
	life->deadline_ns = INT64_MAX;
	turn_on(life);
	linger(life);
}

static void end_of_duty(struct life *life)
{
	if (!life->pdu)
		return;
	if (life->fired && life->t_on_ns)
		linger(life); /* done already; its time in the journal stays */
	else if (life->armed)
		fire(life, life->orphaned ? "the controller died" : "stopped while armed");
	else if (life->orphaned && journal_pending(life))
		fire(life, "the controller died and the journal says on");
	life->armed = false;
}

static void become_guard(int fd)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU };

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		sigaction(ignored[i], &ignore, NULL);
	setsid(); /* no harm if it leads a session already */
	prctl(PR_SET_DUMPABLE, 0); /* it holds a password */
	if (fd > 3)
		close_range(3, (unsigned)fd - 1, 0);
	close_range((unsigned)fd + 1, ~0U, 0);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (chdir("/") != 0) /* must not pin anybody's mount; names are absolute */
		return;
}

int pp_guard_main(int fd)
{
	struct life life = { .fd = fd, .pidfd = -1, .log_fd = -1 };

	if (fd < 3 || fcntl(fd, F_GETFD) < 0)
		return 2;
	become_guard(fd);
	while (!life.leave && !life.orphaned) {
		int64_t left_ms = !life.armed || life.fired ? 3600000 :
			(life.deadline_ns - pp_clock_mono_ns()) / PP_NS_PER_MS;

		if (left_ms > 0)
			wait_for_word(&life, left_ms);
		if (life.armed && !life.fired && !life.orphaned &&
		    pp_clock_mono_ns() >= life.deadline_ns)
			fire(&life, "the controller missed its deadline");
	}
	end_of_duty(&life);
	pp_pdu_close(life.pdu);
	json_decref(life.first);
	if (life.log_fd >= 0)
		close(life.log_fd);
	if (life.pidfd >= 0)
		close(life.pidfd);
	close(fd);
	return 0;
}
