/* SPDX-License-Identifier: MIT
 *
 * The journal: one small file an outlet that says "this outlet must be on", durable before the first
 * off request and removed (or marked restored) only when the outlet has been read back on. It holds
 * all that is needed to turn it on again without the plan; never a secret. Writing is fsync, rename,
 * fsync of the folder (src/core/file.h).
 */
#ifndef PP_PDU_JOURNAL_H
#define PP_PDU_JOURNAL_H

#include <jansson.h>

#include "pdu.h"
#include "state.h"

/* The settings of a config that another process needs, as JSON; strings of *config point into json
 * after _from_json. Also how the guard gets its orders. */
json_t *pp_config_to_json(const struct pp_pdu_config *config);
int pp_config_from_json(const json_t *json, struct pp_pdu_config *config, struct pp_error *err);

enum pp_journal_state {
	PP_JOURNAL_NONE = 0,
	PP_JOURNAL_MINE,     /* must be on; written by this process, or by the one named */
	PP_JOURNAL_OTHERS,   /* must be on; another living process wrote it */
	PP_JOURNAL_ORPHAN,   /* must be on; its writer is gone */
	PP_JOURNAL_RESTORED,
	PP_JOURNAL_DAMAGED,
};

struct pp_journal_entry {
	enum pp_journal_state state;
	char path[4096];
	json_t *json; /* NULL if damaged; owned by who got the entry: pp_journal_release */
	struct pp_pdu_config config; /* of this one outlet; strings in json */
	const char *by, *boot_id;    /* restored: who, and in which boot the times are */
	int64_t t_on_mono_ns, t_on_boot_ns;
};

/* owner: whose entries count as MINE (the guard asks for its controller). */
struct pp_journal_owner {
	pid_t pid;
	unsigned long long start;
};
struct pp_journal_owner pp_journal_me(void);

int pp_journal_read(const char *dir, const char *host_key, const char *outlet,
	struct pp_journal_owner owner, struct pp_journal_entry *entry, struct pp_error *err);
void pp_journal_release(struct pp_journal_entry *entry);

/* Refuses (PP_ERR_REFUSED) where another process's entry, an orphan or a damaged one stands. */
int pp_journal_begin(const char *dir, const char *host_key, const char *outlet,
	const struct pp_pdu_config *config, struct pp_error *err);
/* No entry: nothing to do. */
int pp_journal_restored(const char *dir, const char *host_key, const char *outlet, const char *by,
	int64_t t_on_mono_ns, struct pp_error *err);
int pp_journal_clear(const char *dir, const char *host_key, const char *outlet,
	struct pp_error *err);

/* Each entry of dir, in the order of their names; each() must not release it. */
int pp_journal_each(const char *dir, void (*each)(void *arg, struct pp_journal_entry *entry),
	void *arg, struct pp_error *err);

#endif
