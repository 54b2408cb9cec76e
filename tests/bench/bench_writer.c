/* SPDX-License-Identifier: MIT
 *
 * Budget: a writer whose acks travel to a witness and whose window waits for the echoes reaches 0.95
 * of the same writer without acks.
 * Method: short runs on one file, in pairs whose order is swapped from pair to pair, so that a disk
 * that drifts favours neither. With acks: a TCP connection over loopback to a thread that sends
 * every frame back, and a thread that reads the echoes, as the agent has. Without: the ack echoes
 * itself on the spot. `bench_writer [FOLDER [PAIRS [MS]]]`. Prints; judges nothing.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/core/clock.h"
#include "src/core/file.h"
#include "writer/writer.h"

#define PAIRS_MAX 999
#define REC       8192U

struct frame {
	uint64_t lane, first, last;
};

struct link {
	int ours, theirs;
	struct pp_writer *_Atomic writer;
	pthread_mutex_t lock;
};

static int read_all(int fd, void *data, size_t bytes)
{
	char *at = data;

	while (bytes) {
		ssize_t n = read(fd, at, bytes);

		if (n <= 0)
			return -1;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

static void *witness_main(void *arg)
{
	struct link *l = arg;
	struct frame frame;

	while (read_all(l->theirs, &frame, sizeof(frame)) == 0)
		if (pp_write_all(l->theirs, &frame, sizeof(frame)) != 0)
			break;
	return NULL;
}

static void *echo_main(void *arg)
{
	struct link *l = arg;
	struct frame frame;

	while (read_all(l->ours, &frame, sizeof(frame)) == 0) {
		struct pp_writer *writer = atomic_load(&l->writer);

		if (writer)
			pp_writer_echo(writer, (uint32_t)frame.lane, frame.last, NULL);
	}
	return NULL;
}

static void ack_far(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct link *l = ctx;
	struct frame frame = { lane, first, last };

	pthread_mutex_lock(&l->lock);
	pp_write_all(l->ours, &frame, sizeof(frame));
	pthread_mutex_unlock(&l->lock);
}

static void ack_near(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct link *l = ctx;
	struct pp_writer *writer;

	(void)first;
	while (!(writer = atomic_load(&l->writer)))
		;
	pp_writer_echo(writer, lane, last, NULL);
}

static int connect_link(struct link *l)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	socklen_t bytes = sizeof(here);
	int listening = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l->ours = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(listening, (struct sockaddr *)&here, sizeof(here)) != 0 || listen(listening, 1) != 0 ||
		getsockname(listening, (struct sockaddr *)&here, &bytes) != 0 ||
		connect(l->ours, (struct sockaddr *)&here, sizeof(here)) != 0)
		return -1;
	l->theirs = accept(listening, NULL, NULL);
	close(listening);
	setsockopt(l->ours, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(l->theirs, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return l->theirs < 0 ? -1 : 0;
}

/* Records acked a second; negative if it failed. */
static double run(const struct pp_writer_config *base, bool far, int ms)
{
	static struct pp_writer_result result;
	struct link l = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct pp_writer_config config = *base;
	struct pp_writer *writer;
	pthread_t witness, echo;
	struct pp_error err = { 0 };
	int64_t began;
	double rate = -1;

	config.peer.ctx = &l;
	config.peer.ack = far ? ack_far : ack_near;
	if (pp_run_id_draw(&config.run_id, NULL) != 0 || connect_link(&l) != 0)
		return -1;
	if (pthread_create(&witness, NULL, witness_main, &l) != 0 ||
		pthread_create(&echo, NULL, echo_main, &l) != 0)
		return -1;
	began = pp_clock_mono_ns();
	writer = pp_writer_start(&config, &err);
	if (writer) {
		atomic_store(&l.writer, writer);
		pp_clock_sleep_ms(ms);
		pp_writer_stop(writer, -1, NULL);
		pp_writer_result(writer, &result);
		rate = (double)result.records_acked * 1e9 / (double)(pp_clock_mono_ns() - began);
		if (result.failed) {
			err = result.error;
			rate = -1;
		}
	}
	shutdown(l.ours, SHUT_RDWR);
	pthread_join(echo, NULL);
	pthread_join(witness, NULL);
	close(l.ours);
	close(l.theirs);
	pp_writer_free(writer);
	if (rate < 0)
		fprintf(stderr, "bench_writer: %s\n", err.text);
	return rate;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int bench(const char *path, const char *method, uint32_t lanes, uint32_t group, int pairs,
	int ms)
{
	struct pp_writer_config config = { .path = path, .method = pp_method_find(method) };
	static double ratios[PAIRS_MAX], rates[PAIRS_MAX];
	struct pp_error err = { 0 };
	struct pp_run_id id = { { 1 } };
	int i;

	if (pp_layout_init(&config.layout, PP_OVERWRITE, lanes, group, REC, 4096, false, 0, 64U << 20,
		&err) != 0 ||
		pp_writer_prewrite(&config.layout, path, &id, false, false, NULL, &err) != 0) {
		fprintf(stderr, "bench_writer: %s\n", err.text);
		return -1;
	}
	for (i = -1; i < pairs; i++) { /* the first warms up */
		double far = 0, near;

		if (i % 2 == 0)
			far = run(&config, true, ms);
		near = run(&config, false, ms);
		if (i % 2 != 0)
			far = run(&config, true, ms);
		if (far < 0 || near <= 0)
			return -1;
		if (i >= 0) {
			ratios[i] = far / near;
			rates[i] = near;
		}
	}
	qsort(ratios, (size_t)pairs, sizeof(double), by_value);
	qsort(rates, (size_t)pairs, sizeof(double), by_value);
	printf("%-22s %2u lanes, group %2u: %8.0f records/s without acks; with / without: "
		"%.3f (%.3f ... %.3f)\n", method, lanes, group, rates[pairs / 2], ratios[pairs / 2],
		ratios[pairs / 4], ratios[pairs * 3 / 4]);
	return 0;
}

int main(int argc, char **argv)
{
	int pairs = argc > 2 ? atoi(argv[2]) : 15, ms = argc > 3 ? atoi(argv[3]) : 200, rc = 0;
	char path[4096];

	if (pairs < 1 || pairs > PAIRS_MAX || ms < 1)
		return 2;
	snprintf(path, sizeof(path), "%s/bench_writer.%ld.tmp", argc > 1 ? argv[1] : ".",
		(long)getpid());
	printf("acked writer, %d pairs of %d ms: median ratio (quartiles)\n", pairs, ms);
	rc |= bench(path, "fdatasync", 1, 1, pairs, ms);
	rc |= bench(path, "open_datasync (direct)", 1, 1, pairs, ms);
	rc |= bench(path, "fdatasync", 1, 16, pairs, ms);
	rc |= bench(path, "fdatasync", 4, 1, pairs, ms);
	unlink(path);
	return rc ? 2 : 0;
}
