/* SPDX-License-Identifier: MIT
 *
 * The power switch's own share: how long from the command until the relay is read back, on a mock that
 * takes no time itself, and what waiting costs in CPU. Prints both with their limits; exits 1 beyond.
 */
#define MOCK_PDU_EMBEDDED
#include "../pdu/mock_pdu.c"

#include <sys/resource.h>

#include "pdu/pdu.h"
#include "src/core/clock.h"

#define ROUNDS     51
#define LIMIT_MS   20.0
#define WATCH_MS   3000
#define LIMIT_CPU  0.02 /* of the time waited */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
		(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

int main(void)
{
	char dir[] = "/tmp/plugpull-bench-pdu-XXXXXX", url[64], command[128];
	double confirmed_ms[ROUNDS], cpu_before, cpu_share;
	struct pp_pdu_times times;
	struct pp_pdu_watts watts;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu = NULL;
	static struct mock mock;
	int rc = 1;

	if (!mkdtemp(dir))
		return 2;
	mock_start(&mock, "generic-rest");
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", mock.port);
	pdu = pp_pdu_open(&(struct pp_pdu_config){ .profile = "generic-rest", .url = url,
		.outlets = { "1" }, .outlet_count = 1, .state_dir = dir, .min_off_ms = -1,
		.min_on_ms = -1, .cycles_per_hour_max = -1, .settle_ms = -1, .poll_ms = 10 }, &err);
	for (int i = 0; pdu && i < ROUNDS; i++) {
		if (pp_pdu_off(pdu, &times, &err) != 0)
			goto out;
		confirmed_ms[i] = (double)(times.t_read_ns - times.t_sent_ns) / 1e6;
		if (pp_pdu_on(pdu, NULL, &err) != 0)
			goto out;
	}
	if (!pdu || pp_pdu_off(pdu, &times, &err) != 0)
		goto out;
	pp_pdu_close(pdu); /* again, as a campaign has it: a poll twice a second */
	pdu = pp_pdu_open(&(struct pp_pdu_config){ .profile = "generic-rest", .url = url,
		.outlets = { "1" }, .outlet_count = 1, .state_dir = dir }, &err);
	if (!pdu)
		goto out;
	cpu_before = cpu_ms(); /* the mock's share is in it */
	if (pp_pdu_watch_off(pdu, pp_clock_mono_ns() + WATCH_MS * PP_NS_PER_MS, &watts, &err) != 0)
		goto out;
	cpu_share = (cpu_ms() - cpu_before) / WATCH_MS;
	qsort(confirmed_ms, ROUNDS, sizeof(confirmed_ms[0]), by_value);
	printf("pdu: command to relay confirmed: median %.2f ms, worst %.2f ms (limit %.0f ms, median)\n"
		"pdu: CPU while watching an outlet: %.2f %% (limit %.0f %%)\n", confirmed_ms[ROUNDS / 2],
		confirmed_ms[ROUNDS - 1], LIMIT_MS, cpu_share * 100, LIMIT_CPU * 100);
	rc = confirmed_ms[ROUNDS / 2] < LIMIT_MS && cpu_share < LIMIT_CPU ? 0 : 1;
out:
	if (err.text[0])
		fprintf(stderr, "bench_pdu: %s\n", err.text);
	if (pdu)
		pp_pdu_leave_off(pdu, NULL);
	pp_pdu_close(pdu);
	mock_stop(&mock);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) == 0 ? rc : 2;
}
