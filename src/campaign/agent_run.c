/* SPDX-License-Identifier: MIT
 *
 * Runs: the lanes, the echoes that open their window, the counters and the log of their disk.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_parts.h"
#include "src/core/clock.h"
#include "src/core/policy.h"

/* An ack that cannot be sent ends the connection, and with it the run: nobody would hear the next. */
static void send_ack(void *ctx, uint32_t lane, uint64_t first, uint64_t last)
{
	struct agent_slot *slot = ctx;

	if (pp_client_send_ack(slot->session->client, slot->index, lane, first, last, NULL) != 0)
		agent_session_break(slot->session);
}

/* Control echoed what was never acked: it is not to be trusted any more. */
static void echo_failed(struct agent_slot *slot, const struct pp_error *why)
{
	agent_say(slot->session->config, "%s", why->text);
	agent_session_break(slot->session);
}

void agent_echo(struct agent_slot *slot, uint32_t lane, uint64_t last)
{
	struct pp_error why = { 0 };
	int rc = 0;

	pthread_mutex_lock(&slot->lock);
	if (slot->writer)
		rc = pp_writer_echo(slot->writer, lane, last, &why);
	else if (slot->starting && last > slot->early_echo[lane])
		slot->early_echo[lane] = last;
	pthread_mutex_unlock(&slot->lock);
	if (rc != 0)
		echo_failed(slot, &why);
}

/* ---- watching ------------------------------------------------------------------------------ */

/* The log may name the disk, or what stands between it and the target. */
static void watch_names(const struct agent_slot *slot, struct pp_kmsg *log)
{
	struct pp_stack *stack = malloc(sizeof(*stack));
	const char *name = slot->target.drive.name, *n;
	char controller[PP_DRIVE_NAME_BYTES];
	size_t i;

	if (strncmp(name, "nvme", 4) == 0 && (n = strchr(name + 4, 'n'))) {
		snprintf(controller, sizeof(controller), "%.*s", (int)(n - name), name);
		pp_kmsg_add_name(log, controller);
	}
	if (stack && pp_drive_of_fd(slot->target.fd, slot->target.path, stack, NULL) == 0)
		for (i = 0; i < stack->layer_count; i++)
			if (strcmp(stack->layers[i].kind, "file system") != 0 &&
				strcmp(stack->layers[i].name, name) != 0)
				pp_kmsg_add_name(log, stack->layers[i].name);
	free(stack);
}

static void watch_disk(struct agent_slot *slot, struct pp_started *started)
{
	struct agent_session *s = slot->session;
	struct pp_disk_source source;

	if (pp_disk_source_open_name(slot->target.drive.name, &source, NULL) != 0)
		return;
	pthread_mutex_lock(&s->disks_lock);
	pp_disk_source_close(&s->disks[slot->index]);
	s->disks[slot->index] = source;
	pthread_mutex_unlock(&s->disks_lock);
	snprintf(started->disk, sizeof(started->disk), "%s", source.name);
}

void agent_unwatch(struct agent_slot *slot)
{
	struct agent_session *s = slot->session;

	pthread_mutex_lock(&s->disks_lock);
	pp_disk_source_close(&s->disks[slot->index]);
	s->disks[slot->index].fd = -1;
	pthread_mutex_unlock(&s->disks_lock);
	pthread_mutex_lock(&slot->lock);
	agent_slot_own_writer(slot);
	if (slot->log_open)
		pp_kmsg_close(&slot->log);
	slot->log_open = false;
	pthread_mutex_unlock(&slot->lock);
}

/* From now on: what the log held before this run does not count. */
static int watch(struct agent_slot *slot, struct pp_started *started, struct pp_error *err)
{
	struct pp_error why = { 0 };

	agent_unwatch(slot);
	started->log_watched = pp_kmsg_open(&slot->log, slot->target.drive.name, &why) == 0;
	if (started->log_watched)
		watch_names(slot, &slot->log);
	else
		snprintf(started->log_error, sizeof(started->log_error), "%.255s", why.text);
	pthread_mutex_lock(&slot->lock);
	slot->log_open = started->log_watched;
	slot->log_notes = 0;
	slot->io_error = false;
	slot->noted = false;
	slot->failed_ticks = 0;
	pthread_mutex_unlock(&slot->lock);
	watch_disk(slot, started);
	return agent_mind_start(slot->session, err);
}

int agent_watch(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_started started = { 0 };

	(void)r;
	if (agent_need_idle(slot, err) != 0 || watch(slot, &started, err) != 0)
		return -1;
	started.agent_ns = (uint64_t)pp_clock_mono_ns();
	pp_started_put(kv, &started);
	return 0;
}

/* ---- run and stop -------------------------------------------------------------------------- */

/* Hands the writer to the other threads, with the echoes that came while it started. */
static void adopt_writer(struct agent_slot *slot, struct pp_writer *writer)
{
	struct pp_error why = { 0 };
	uint32_t lane;
	int rc = 0;

	pthread_mutex_lock(&slot->lock);
	slot->starting = false;
	slot->writer = writer;
	for (lane = 0; writer && lane < PP_LANES_MAX && rc == 0; lane++)
		if (slot->early_echo[lane])
			rc = pp_writer_echo(writer, lane, slot->early_echo[lane], &why);
	pthread_mutex_unlock(&slot->lock);
	if (rc != 0)
		echo_failed(slot, &why);
}

/* Writes to the drive's target, under the run index of run: the drive's own slot, or its noise's. */
static int start_writer(struct agent_slot *drive, struct agent_slot *run, const struct pp_order *o,
	const struct pp_method *method, struct pp_error *err)
{
	char path[PP_TARGET_PATH_BYTES + PP_ORDER_FILE_BYTES];
	struct pp_writer_config config = { .layout = o->layout, .method = method,
		.target = &drive->target, .path = path, .run_id = o->run_id,
		.pace_per_s = o->pace_per_s, .compressible = o->compressible, .peer = { .ctx = run, .ack = send_ack } };
	struct pp_writer *writer;

	agent_base_path(drive, o->file, path, sizeof(path));
	pthread_mutex_lock(&run->lock);
	memset(run->early_echo, 0, sizeof(run->early_echo));
	run->starting = true;
	pthread_mutex_unlock(&run->lock);
	writer = pp_writer_start(&config, err);
	adopt_writer(run, writer);
	return writer ? 0 : -1;
}

/* M1.5: never during a run; on Windows the question itself is a flush. */
static void guard_policy(struct agent_slot *slot, bool on)
{
	if (slot->guarded[0])
		pp_policy_run_end(slot->guarded);
	slot->guarded[0] = '\0';
	if (!on)
		return;
	snprintf(slot->guarded, sizeof(slot->guarded), "%s", slot->target.drive.name);
	pp_policy_run_begin(slot->guarded);
}

int agent_run(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	const struct pp_order *o = &r->order;
	struct pp_started started = { 0 };

	if (agent_need_idle(slot, err) != 0)
		return -1;
	if (pp_method_promise(o->method, slot->target.kind) == PP_PROMISE_NA)
		return pp_fail(err, PP_ERR_REFUSED, "method '%s' is n/a on this kind of target",
			o->method->name);
	if (agent_layout_check(slot, o, false, err) != 0 || watch(slot, &started, err) != 0)
		return -1;
	guard_policy(slot, true);
	if (start_writer(slot, slot, o, o->method, err) != 0) {
		guard_policy(slot, false);
		return -1;
	}
	started.agent_ns = (uint64_t)pp_clock_mono_ns();
	pp_started_put(kv, &started);
	return 0;
}

/* ---- noise (M7.6): a second writer on the target of the run -------------------------------- */

struct agent_slot *agent_noise_slot(struct agent_slot *slot)
{
	return &slot->session->slots[slot->index + PP_NOISE_INDEX];
}

int agent_noise(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct agent_slot *noise = agent_noise_slot(slot);
	struct pp_started started = { 0 };
	bool beside, noisy;

	pthread_mutex_lock(&slot->lock);
	beside = slot->writer != NULL;
	pthread_mutex_unlock(&slot->lock);
	pthread_mutex_lock(&noise->lock);
	noisy = noise->writer != NULL;
	noise->noted = false;
	noise->failed_ticks = 0;
	pthread_mutex_unlock(&noise->lock);
	if (!slot->proven || !beside)
		return pp_fail(err, PP_ERR_REFUSED, "no run is on drive %u for noise to be beside",
			slot->index);
	if (noisy)
		return pp_fail(err, PP_ERR_REFUSED, "noise is on drive %u already", slot->index);
	if (r->order.layout.workload != PP_OVERWRITE)
		return pp_fail(err, PP_ERR_REFUSED, "noise is for workload overwrite");
	if (agent_layout_check(slot, &r->order, false, err) != 0 ||
		start_writer(slot, noise, &r->order, pp_method_find(PP_NOISE_METHOD), err) != 0)
		return -1;
	started.agent_ns = (uint64_t)pp_clock_mono_ns();
	started.log_watched = true; /* by the run */
	pp_started_put(kv, &started);
	return 0;
}

bool agent_noise_end(struct agent_slot *slot)
{
	return slot->index > PP_ORDER_INDEX_MAX || agent_writer_end(agent_noise_slot(slot), NULL);
}

static void fill_stopped(struct agent_slot *slot, const struct pp_writer_result *result,
	struct pp_stopped *stopped)
{
	memset(stopped, 0, sizeof(*stopped));
	stopped->issued = result->records_issued;
	stopped->acked = result->records_acked;
	stopped->failed = result->failed || slot->io_error;
	if (result->failed)
		snprintf(stopped->error, sizeof(stopped->error), "%s", result->error.text);
	else if (slot->io_error)
		snprintf(stopped->error, sizeof(stopped->error), "%s", slot->io_error_text);
	stopped->lanes_full = result->lanes_full;
	stopped->lanes_left_behind = result->lanes_left_behind;
	stopped->latency_count = result->latency.count;
	stopped->latency_ns_p50 = pp_histogram_quantile_ns(&result->latency, 0.5);
	stopped->latency_ns_p99 = pp_histogram_quantile_ns(&result->latency, 0.99);
	stopped->latency_ns_max = result->latency.max_ns;
}

bool agent_writer_end(struct agent_slot *slot, struct pp_stopped *stopped)
{
	struct pp_writer_result *result;
	struct pp_writer *writer;
	bool all;

	pthread_mutex_lock(&slot->lock);
	slot->stopping = true;
	agent_slot_own_writer(slot);
	writer = slot->writer;
	pthread_mutex_unlock(&slot->lock);
	all = !writer || pp_writer_stop(writer, AGENT_STOP_MS, NULL) == 0;
	if (writer && stopped) {
		result = malloc(sizeof(*result));
		if (result) {
			pp_writer_result(writer, result);
			fill_stopped(slot, result, stopped);
			all = result->lanes_left_behind == 0;
			free(result);
		}
	}
	pthread_mutex_lock(&slot->lock);
	slot->writer = NULL;
	slot->stopping = false;
	pthread_mutex_unlock(&slot->lock);
	pp_writer_free(writer);
	guard_policy(slot, false);
	return all;
}

int agent_stop(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_stopped stopped = { 0 };
	bool running;

	(void)r;
	pthread_mutex_lock(&slot->lock);
	running = slot->writer != NULL;
	pthread_mutex_unlock(&slot->lock);
	if (!running)
		return pp_fail(err, PP_ERR_REFUSED, "no run is on drive %u", slot->index);
	agent_noise_end(slot);
	agent_writer_end(slot, &stopped);
	pp_stopped_put(kv, &stopped);
	return 0;
}
