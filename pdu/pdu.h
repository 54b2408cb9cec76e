/* SPDX-License-Identifier: MIT
 *
 * The power switch: turns the outlets that feed one machine off and on, and believes nothing but
 * what it reads back.
 *
 * A switch that answers "200 OK" has promised nothing: about half of the devices on the market
 * answer so to a command they refuse. So each set is followed by status requests, and an outlet is
 * off only when it reads "off" on two polls in a row, was read "on" before, the set was not
 * refused, and no watts say otherwise. "pending", "unknown" and every value that the profile does
 * not name are never off. A failed off ends in on: pp_pdu_off() restores the power itself.
 *
 * Before the first off request a journal entry "this outlet must be on" is on disk (journal.h);
 * it goes when the outlet has been read back on. guard.h is the process that restores the power
 * when this one dies.
 *
 * All times are CLOCK_MONOTONIC nanoseconds (src/core/clock.h). A pp_pdu belongs to one thread.
 * Requests to one device are serialized between processes by flock(2) in the state directory.
 */
#ifndef PP_PDU_PDU_H
#define PP_PDU_PDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/core/error.h"

#define PP_PDU_OUTLETS_MAX 8

enum pp_pdu_state {
	PP_PDU_UNKNOWN = 0, /* not read, not understood, or the outlets of one machine disagree */
	PP_PDU_ON,
	PP_PDU_OFF,
	PP_PDU_PENDING, /* the device says it is on its way */
};

enum pp_pdu_outcome {
	PP_PDU_VERIFIED = 0, /* done, and read back */
	PP_PDU_REFUSED,      /* a safety rule said no; nothing was sent (t_sent_ns is 0) */
	PP_PDU_FAILED,       /* the device refused, or nothing changed; power is on again */
	/* cannot tell what happened; if anything was sent, power was read back on afterwards */
	PP_PDU_STATE_UNKNOWN,
	PP_PDU_NOT_RESTORED, /* the worst: power may be off and could not be turned on */
};

enum pp_pdu_cuts { PP_PDU_CUTS_MAINS, PP_PDU_CUTS_DC, PP_PDU_CUTS_SLOT };

/* How a rendered request reaches the device: transport.h. Tests and simulators give their own. */
struct pp_pdu_transport;

/* Strings are copied by pp_pdu_open(). Zero and NULL mean the default in brackets. */
struct pp_pdu_config {
	const char *profile;  /* name ("shelly-gen2") or path of an INI file */
	const char *url;      /* "http://10.0.0.5", "10.0.0.5:8080"; exec: the {host}, may be NULL */
	const char *outlets[PP_PDU_OUTLETS_MAX]; /* as printed on the case; all feed one machine */
	int outlet_count;
	const char *parameters; /* "NAME=VALUE, ...": other values than the profile's [the profile's] */
	const char *identity; /* expected id, serial or MAC; read before every off [not checked] */
	const char *label;    /* expected name of the (one) outlet [not checked] */
	const char *credentials_file; /* 0600; "user = ", "password = ", "token = " lines [env] */
	const char *ca_file;  /* PEM for https [system's] */
	const char *pin;      /* "sha256//..." public key; enough without a chain */
	bool insecure;        /* do not verify TLS; printed in the record */
	const char *state_dir;/* locks, journal, history [$XDG_STATE_HOME/plugpull, ~/.local/state/..] */
	int64_t min_off_ms;   /* pp_pdu_on() waits for it [10 s, dc profiles 30 s; < 0: none] */
	int64_t min_on_ms;    /* pp_pdu_off() refuses before [60 s; < 0: none] */
	int cycles_per_hour_max; /* pp_pdu_off() refuses beyond [30; < 0: none] */
	int cycles_total_max; /* pp_pdu_off() refuses beyond, for ever: a relay wears out [none] */
	const char *dut_host; /* the machine itself: refuse if the switch is it [not checked] */
	const char *wake;     /* "MAC[@ADDRESS[:PORT]]": wake on LAN after an on [none] */
	int64_t device_restore_ms; /* ask the device itself to turn on after this [0: do not] */
	int64_t connect_timeout_ms, request_timeout_ms; /* [3 s, 10 s] */
	int64_t verify_timeout_ms, settle_ms, poll_ms;  /* [the profile's; poll 500 ms] */
	int64_t stagger_ms;      /* between two ons of several outlets [the profile's; < 0: none] */
	int64_t watts_period_ms; /* the meter's time for a new sample [the profile's] */
	int64_t watts_stale_ms;  /* its figure means nothing so long after a command [the profile's] */
	double watts_off_max; /* more than this in an outlet that reads off contradicts it [1.0] */
	/* One JSON object a call, without a newline: the evidence file pdu.jsonl. Never a secret. */
	void (*record)(void *arg, const char *json_line);
	void *record_arg;
	const struct pp_pdu_transport *transport; /* [HTTP or exec, as the profile says] */
	void *transport_arg;
	bool no_journal;      /* simulators only */
};

struct pp_pdu;

/* Loads the profile and the credentials, checks the outlets; no request is sent. NULL on failure. */
struct pp_pdu *pp_pdu_open(const struct pp_pdu_config *config, struct pp_error *err);
void pp_pdu_close(struct pp_pdu *pdu);

enum pp_pdu_cuts pp_pdu_cuts(const struct pp_pdu *pdu);
bool pp_pdu_can_verify(const struct pp_pdu *pdu);  /* the profile has a status request */
bool pp_pdu_has_watts(const struct pp_pdu *pdu);
bool pp_pdu_has_device_restore(const struct pp_pdu *pdu); /* rule 9: if not, say so */
const char *pp_pdu_profile_name(const struct pp_pdu *pdu);
const char *pp_pdu_state_dir(const struct pp_pdu *pdu);
const char *pp_pdu_host_key(const struct pp_pdu *pdu); /* "host:port", names locks and journal */
const char *pp_pdu_state_name(enum pp_pdu_state state);     /* "on" "off" "pending" "unknown" */
const char *pp_pdu_outcome_name(enum pp_pdu_outcome outcome);
const char *pp_pdu_cuts_name(enum pp_pdu_cuts cuts);        /* "mains" "dc" "slot" */

struct pp_pdu_identity {
	char id[128];    /* as the device says; "" if the profile has no identity request */
	char model[128];
	char label[PP_PDU_OUTLETS_MAX][128]; /* names of the outlets, "" where there are none */
};

/* Reads who the device is and fails (PP_ERR_REFUSED) when that is not what the config expects. What
 * the config does not expect and the device does not say is left empty. */
int pp_pdu_identify(struct pp_pdu *pdu, struct pp_pdu_identity *identity, struct pp_error *err);

/* Runs the profile's [check ...] requests: auto-off, power-on state, locks, delays. Each complaint
 * is a call of say() with a sentence. Returns the number of complaints, -1 if a read failed. */
int pp_pdu_preflight(struct pp_pdu *pdu, void (*say)(void *arg, const char *complaint), void *arg,
	struct pp_error *err);

struct pp_pdu_status {
	enum pp_pdu_state state; /* of all: on/off only if all agree, pending if any is, else unknown */
	enum pp_pdu_state outlet[PP_PDU_OUTLETS_MAX];
	int64_t t_ns;            /* when the last answer was complete */
	bool has_watts;          /* every outlet gave a number */
	double watts;            /* sum */
	bool watts_fresh;        /* the meter had time for a new sample since the last fresh one */
};

/* 0: the device was asked and answered, whatever it said. -1: no (usable) answer. */
int pp_pdu_status(struct pp_pdu *pdu, struct pp_pdu_status *status, struct pp_error *err);

struct pp_pdu_times {
	enum pp_pdu_outcome outcome;
	int64_t t_sent_ns;     /* just before the first outlet's request */
	int64_t t_answered_ns; /* the last outlet's request was answered; 0: an answer is missing */
	int64_t t_read_ns;     /* first read back as wanted of the last outlet; 0: never */
	int64_t t_second_ns;   /* the second, which makes it verified */
	bool ambiguous;        /* no clean answer to a set; the read-back alone decided */
	bool device_restore;   /* the device will turn itself on as well */
	bool has_watts_before; /* the load was measured before the off */
	double watts_before;
	int64_t t_restored_ns; /* a failed off: when the outlets were read back on */
};

/* 0 only if verified; else -1, times->outcome says which, and the power is on again unless the
 * outcome is PP_PDU_NOT_RESTORED. Refuses (nothing is sent): another identity, outlet not read as
 * on, limits, deny list (limits.h), journal entry of another process, profile that cannot read
 * back. */
int pp_pdu_off(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err);

/* 0 only if read back on (twice); waits for min_off_ms first. Tries for verify_timeout_ms, repeats
 * the set. Call it again as often as it takes: on is idempotent. Outcome on failure is
 * PP_PDU_NOT_RESTORED (the outlet may be off). Clears the journal entry. */
int pp_pdu_on(struct pp_pdu *pdu, struct pp_pdu_times *times, struct pp_error *err);

/* What no waiting will change: deny list, a switch that is the machine itself, cycles in all. -1
 * (PP_ERR_REFUSED) if pp_pdu_off() would refuse for one of them. */
int pp_pdu_off_permitted(struct pp_pdu *pdu, struct pp_error *err);

/* How long until pp_pdu_off() would not refuse for a limit; 0: now. */
int64_t pp_pdu_off_allowed_in_ms(struct pp_pdu *pdu);

/* Leave the outlet off on purpose (a person's `pdu off`): clears the journal entry. */
int pp_pdu_leave_off(struct pp_pdu *pdu, struct pp_error *err);

struct pp_pdu_watts {
	bool stayed_off;     /* every poll read off */
	bool has_watts;
	int samples_fresh;   /* fresh samples at or under the limit, none above */
	double watts_max;    /* of the fresh samples */
	int64_t t_last_ns;   /* of the last poll */
	bool zero_proven;    /* M7.5: load seen before the off, then >= 3 fresh zero samples, off for
	                      * >= 10 s, the last one just before this call returned */
};

/* Polls from now until until_ns, the last time as near to it as a request allows. Call between
 * off and on. 0 unless the device could not be asked at all. */
int pp_pdu_watch_off(struct pp_pdu *pdu, int64_t until_ns, struct pp_pdu_watts *watts,
	struct pp_error *err);

/* What recovery did with one journal entry. */
struct pp_pdu_recovered {
	const char *url, *outlet, *profile;
	bool restored;       /* read back on, now or earlier by a guard */
	bool busy;           /* its controller or guard still lives; not touched */
	const char *by;      /* "guard", "recover", "controller" */
	const char *boot_id; /* of this host's kernel, for the times below */
	int64_t t_on_mono_ns, t_on_boot_ns; /* read back on; 0 if not */
};

/* Replays the journal of state_dir (NULL: the default): every outlet that must be on and has no
 * living owner is turned on and read back; those are marked restored. seen() is called for each
 * entry, restored ones too (that is how a resuming campaign learns t_on after a crash). Tries each
 * for give_up_ms. Returns how many outlets are still not on, -1 if the journal cannot be read. */
int pp_pdu_recover(const char *state_dir, int64_t give_up_ms,
	void (*seen)(void *arg, const struct pp_pdu_recovered *), void *arg, struct pp_error *err);

/* Forgets entries that are marked restored, once the caller has used their times. */
int pp_pdu_recover_clear(const char *state_dir, struct pp_error *err);

#endif
