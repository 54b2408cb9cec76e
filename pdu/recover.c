/* SPDX-License-Identifier: MIT
 *
 * Replays the journal: for whoever comes after a controller and its guard have both died.
 */
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "src/core/clock.h"

struct replay {
	const char *dir;
	int64_t give_up_ms;
	void (*seen)(void *arg, const struct pp_pdu_recovered *);
	void *arg;
	int not_on;
};

static int turn_on(struct replay *replay, struct pp_journal_entry *entry,
	struct pp_pdu_times *times)
{
	int64_t deadline_ns = pp_clock_mono_ns() + replay->give_up_ms * PP_NS_PER_MS;
	struct pp_error err = { 0 };
	struct pp_pdu *pdu;
	int rc;

	entry->config.state_dir = replay->dir;
	entry->config.min_off_ms = -1;
	pdu = pp_pdu_open(&entry->config, &err);
	if (!pdu)
		return -1;
	while ((rc = pp_pdu_on(pdu, times, &err)) != 0 && pp_clock_mono_ns() < deadline_ns)
		pp_clock_sleep_ms(200);
	if (rc == 0)
		rc = pp_journal_restored(replay->dir, pp_pdu_host_key(pdu), entry->config.outlets[0],
			"recover", times->t_read_ns, &err);
	pp_pdu_close(pdu);
	return rc;
}

static void replay_entry(void *arg, struct pp_journal_entry *entry)
{
	struct replay *replay = arg;
	struct pp_pdu_recovered out = { .busy = entry->state == PP_JOURNAL_OTHERS };
	char boot_id[PP_BOOT_ID_BYTES];
	struct pp_pdu_times times;

	if (entry->state == PP_JOURNAL_DAMAGED) {
		out.url = entry->path; /* all that can be said */
		out.outlet = out.profile = "?";
		replay->not_on++;
		replay->seen(replay->arg, &out);
		return;
	}
	out.url = entry->config.url ? entry->config.url : "";
	out.outlet = entry->config.outlets[0];
	out.profile = entry->config.profile;
	if (entry->state == PP_JOURNAL_RESTORED) {
		out.restored = true;
		out.by = entry->by;
		out.boot_id = entry->boot_id;
		out.t_on_mono_ns = entry->t_on_mono_ns;
		out.t_on_boot_ns = entry->t_on_boot_ns;
	} else if (!out.busy && turn_on(replay, entry, &times) == 0) {
		pp_state_boot_id(boot_id);
		out.restored = true;
		out.by = "recover";
		out.boot_id = boot_id;
		out.t_on_mono_ns = times.t_read_ns;
		out.t_on_boot_ns = pp_clock_boot_ns() - (pp_clock_mono_ns() - times.t_read_ns);
	}
	if (!out.restored)
		replay->not_on++;
	replay->seen(replay->arg, &out);
}

static void see_nothing(void *arg, const struct pp_pdu_recovered *recovered)
{
	(void)arg;
	(void)recovered;
}

int pp_pdu_recover(const char *state_dir, int64_t give_up_ms,
	void (*seen)(void *arg, const struct pp_pdu_recovered *), void *arg, struct pp_error *err)
{
	struct replay replay = { .give_up_ms = give_up_ms, .seen = seen ? seen : see_nothing,
		.arg = arg };
	char dir[4096];

	if (pp_state_dir(state_dir, dir, sizeof(dir), err) != 0)
		return -1;
	replay.dir = dir;
	if (pp_journal_each(dir, replay_entry, &replay, err) != 0)
		return -1;
	return replay.not_on;
}

static void clear_entry(void *arg, struct pp_journal_entry *entry)
{
	if (entry->state == PP_JOURNAL_RESTORED && remove(entry->path) != 0)
		*(int *)arg = -1;
}

int pp_pdu_recover_clear(const char *state_dir, struct pp_error *err)
{
	char dir[4096];
	int rc = 0;

	if (pp_state_dir(state_dir, dir, sizeof(dir), err) != 0 ||
	    pp_journal_each(dir, clear_entry, &rc, err) != 0)
		return -1;
	return rc == 0 ? 0 : pp_fail(err, PP_ERR_SYSTEM, "cannot remove a journal entry");
}
