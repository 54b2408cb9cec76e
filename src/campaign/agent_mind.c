/* SPDX-License-Identifier: MIT
 *
 * Two threads of a session from its first run on. One does nothing but the heartbeats, since the
 * proof of a cut rests on when the last one came (M5.1). The other minds the runs: it ends their acks
 * when the kernel log tells of an I/O error of their disk (M2.3), tells control of the first failed
 * call and of full files, and ends the lanes when the connection is over.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent_parts.h"
#include "src/core/clock.h"

#define LOG_EVENTS_A_TICK 64
#define FAILED_TICKS_MAX  100 /* for the failing lane's thread to end and tell its failure */

/* The next tick on the grid; ticks that were missed are not made up for. */
static int64_t next_tick(int64_t last_ns)
{
	int64_t step = AGENT_BEAT_MS * PP_NS_PER_MS, now = pp_clock_mono_ns();

	return last_ns + step > now ? last_ns + step : now + step;
}

/* ---- heartbeats ---------------------------------------------------------------------------- */

static uint32_t read_disks(struct agent_session *s, struct pp_beat_disk *disks)
{
	struct pp_disk_counters counters;
	uint32_t i, n = 0;

	pthread_mutex_lock(&s->disks_lock);
	for (i = 0; i <= PP_ORDER_INDEX_MAX; i++) {
		/* Flushes that nobody counts (Windows, Linux before 5.5) must not read as none. */
		if (s->disks[i].fd < 0 || pp_disk_source_read(&s->disks[i], &counters, NULL) != 0 ||
			!counters.has_flushes)
			continue;
		disks[n++] = (struct pp_beat_disk){ .run_index = i, .writes = counters.writes,
			.sectors_written = counters.sectors_written, .flushes = counters.flushes };
	}
	pthread_mutex_unlock(&s->disks_lock);
	return n;
}

static void *beat_main(void *arg)
{
	struct pp_beat_disk disks[PP_ORDER_INDEX_MAX + 1];
	struct agent_session *s = arg;
	int64_t tick = pp_clock_mono_ns();
	uint32_t n;

	while (!atomic_load(&s->ending)) {
		n = read_disks(s, disks);
		if (pp_client_send_beat(s->client, (uint64_t)pp_clock_mono_ns(), disks, n, NULL) != 0) {
			agent_session_break(s);
			break;
		}
		tick = next_tick(tick);
		pp_clock_sleep_until_ns(tick);
	}
	agent_session_let_go(s);
	return NULL;
}

/* ---- minding ------------------------------------------------------------------------------- */

static void send_note(struct agent_session *s, const struct pp_note *note)
{
	struct pp_buf kv;

	pp_buf_init(&kv, 1 << 16);
	pp_note_put(&kv, note);
	if (!kv.failed && pp_client_send(s->client, PP_FRAME_NOTE, kv.data, kv.bytes, NULL) != 0)
		agent_session_break(s);
	pp_buf_release(&kv);
}

/* Reads the log. It and the io_error fields are this thread's while slot->borrowed is set. */
static void mind_log(struct agent_slot *slot)
{
	struct pp_kmsg_event event;
	struct pp_note note;
	int i;

	for (i = 0; i < LOG_EVENTS_A_TICK && pp_kmsg_poll(&slot->log, &event, NULL) == 1; i++) {
		if (event.class == PP_KMSG_IO_ERROR && !slot->io_error) {
			slot->io_error = true;
			snprintf(slot->io_error_text, sizeof(slot->io_error_text), "%s", event.text);
		}
		if (slot->log_notes++ >= AGENT_LOG_NOTES_MAX)
			continue;
		memset(&note, 0, sizeof(note));
		note.event = PP_NOTE_LOG;
		note.index = slot->index;
		snprintf(note.call, sizeof(note.call), "%s", pp_kmsg_class_name(event.class));
		snprintf(note.text, sizeof(note.text), "%s", event.text);
		send_note(slot->session, &note);
	}
}

static void note_io_error(struct agent_slot *slot)
{
	struct pp_note note = { .event = PP_NOTE_FAILED, .index = slot->index, .call = "kernel log" };

	snprintf(note.text, sizeof(note.text), "%s", slot->io_error_text);
	send_note(slot->session, &note);
}

/* The first failed call, once the thread of its lane has told of it. */
static bool note_failure(struct agent_slot *slot, const struct pp_writer_result *result)
{
	struct pp_note note = { .event = PP_NOTE_FAILED, .index = slot->index };

	if (!result->failed && slot->failed_ticks++ < FAILED_TICKS_MAX)
		return false;
	if (result->failed) {
		note.lane = result->failed_lane;
		note.seq = result->failure.seq;
		note.os_code = result->failure.os_code;
		snprintf(note.call, sizeof(note.call), "%s", result->failure.call);
		snprintf(note.text, sizeof(note.text), "%s", result->error.text);
	} else {
		snprintf(note.text, sizeof(note.text), "a lane failed and does not end");
	}
	send_note(slot->session, &note);
	return true;
}

/* True once the end of the run has been told. */
static bool mind_writer(struct agent_slot *slot, struct pp_writer *writer,
	struct pp_writer_result *result)
{
	struct pp_note note = { .event = PP_NOTE_FULL, .index = slot->index };
	bool failed = pp_writer_state(writer) == PP_RUN_FAILED;

	if (!failed && !pp_writer_ended(writer))
		return false;
	pp_writer_stop(writer, 0, NULL);
	pp_writer_result(writer, result);
	if (failed)
		return note_failure(slot, result);
	if (result->lanes_full > 0)
		send_note(slot->session, &note);
	return true;
}

/* What is borrowed is looked after without the lock, so that nothing here holds up the reader. */
static bool mind_borrowed(struct agent_slot *slot, struct pp_writer *writer, bool told,
	struct pp_writer_result *result)
{
	if (atomic_load(&slot->session->ending)) {
		if (writer)
			pp_writer_stop(writer, 0, NULL);
		return told;
	}
	if (slot->log_open)
		mind_log(slot);
	/* also one that came between the start of the watch and the writer's */
	if (slot->io_error && writer && !told) {
		pp_writer_stop(writer, 0, NULL);
		note_io_error(slot);
		return true;
	}
	return told || (writer && mind_writer(slot, writer, result));
}

static void mind_slot(struct agent_slot *slot, struct pp_writer_result *result)
{
	struct pp_writer *writer;
	bool told;

	pthread_mutex_lock(&slot->lock);
	if (slot->stopping || (!slot->writer && !slot->log_open)) {
		pthread_mutex_unlock(&slot->lock);
		return;
	}
	slot->borrowed = true;
	writer = slot->writer;
	told = slot->noted;
	pthread_mutex_unlock(&slot->lock);
	told = mind_borrowed(slot, writer, told, result);
	pthread_mutex_lock(&slot->lock);
	slot->noted = told;
	slot->borrowed = false;
	pthread_cond_broadcast(&slot->changed);
	pthread_mutex_unlock(&slot->lock);
}

static void *mind_main(void *arg)
{
	struct pp_writer_result *result = malloc(sizeof(*result));
	struct agent_session *s = arg;
	int64_t tick = pp_clock_mono_ns();
	bool last = false;
	uint32_t i;

	if (!result)
		agent_session_break(s);
	while (result && !last) {
		last = atomic_load(&s->ending); /* once more after the end: it stops the lanes */
		for (i = 0; i <= PP_RUN_INDEX_MAX; i++)
			mind_slot(&s->slots[i], result);
		tick = next_tick(tick);
		if (!last)
			pp_clock_sleep_until_ns(tick);
	}
	free(result);
	agent_session_let_go(s);
	return NULL;
}

int agent_mind_start(struct agent_session *s, struct pp_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&s->disks_lock);
	if (!s->minded) {
		s->minded = true;
		rc = agent_thread(s, beat_main, s, err);
		if (rc == 0)
			rc = agent_thread(s, mind_main, s, err);
		if (rc != 0) /* half of it is worse than a new start */
			agent_session_break(s);
	}
	pthread_mutex_unlock(&s->disks_lock);
	return rc;
}
