/* SPDX-License-Identifier: MIT
 *
 * Answers and notes: each is a table of fields, and what is no plain field beside it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fields.h"
#include "orders.h"

static const char *transport_name(int transport)
{
	return pp_transport_name((enum pp_transport)transport);
}

static const char *cache_name(int cache)
{
	static const char *const names[] = {
		[PP_CACHE_UNKNOWN] = "unknown", [PP_CACHE_NONE] = "none", [PP_CACHE_OFF] = "off",
		[PP_CACHE_ON] = "on",
	};

	return names[cache];
}

static const char *state_name(int state)
{
	return pp_target_state_name((enum pp_target_state)state);
}

static const char *kind_name(int kind)
{
	return kind == PP_TARGET_RAW ? "raw" : "file";
}

static const char *check_name(int result)
{
	return pp_check_result_name((enum pp_check_result)result);
}

static const char *event_name(int event)
{
	static const char *const names[] = {
		[PP_NOTE_FAILED] = "failed", [PP_NOTE_FULL] = "full", [PP_NOTE_LOG] = "log",
	};

	return names[event];
}

/* ---- hello --------------------------------------------------------------------------------- */

static const struct pp_field hello_fields[] = {
	PP_F_U32(pp_hello, protocol), PP_F_TEXT(pp_hello, version), PP_F_TEXT(pp_hello, commit),
	PP_F_TEXT(pp_hello, name), PP_F_TEXT(pp_hello, boot_id), PP_F_U64(pp_hello, uptime_ns),
	PP_F_U64(pp_hello, agent_ns), PP_F_TEXT(pp_hello, kernel), PP_F_TEXT(pp_hello, os),
	PP_F_TEXT(pp_hello, machine), PP_F_TEXT(pp_hello, sha256), PP_F_TEXT(pp_hello, allow),
};

void pp_hello_put(struct pp_buf *buf, const struct pp_hello *hello)
{
	pp_fields_put(buf, "", PP_FIELDS(hello_fields), hello);
}

/* The boot id is what proves a cut (M5.2): nothing but its exact form will do. */
int pp_hello_get(const struct pp_kv *kv, struct pp_hello *hello, struct pp_error *err)
{
	memset(hello, 0, sizeof(*hello));
	if (pp_fields_get(kv, "", PP_FIELDS(hello_fields), hello, err) != 0)
		return pp_fail_within(err, "the agent's greeting");
	if (strlen(hello->boot_id) != 36 || strspn(hello->boot_id, "0123456789abcdef-") != 36)
		return pp_fail(err, PP_ERR_PEER, "the agent's greeting: 'boot_id' is '%s'",
			hello->boot_id);
	return 0;
}

/* ---- drives -------------------------------------------------------------------------------- */

static const struct pp_field drive_fields[] = {
	PP_F_TEXT(pp_drive_info, name), PP_F_TEXT(pp_drive_info, node),
	PP_F_U32(pp_drive_info, dev_major), PP_F_U32(pp_drive_info, dev_minor),
	PP_F_TEXT(pp_drive_info, serial), PP_F_BOOL(pp_drive_info, serial_of_bridge),
	PP_F_TEXT(pp_drive_info, wwn), PP_F_TEXT(pp_drive_info, model),
	PP_F_TEXT(pp_drive_info, firmware),
	PP_F_ENUM(pp_drive_info, transport, transport_name, PP_TRANSPORT_RAM + 1),
	PP_F_U64(pp_drive_info, size_bytes), PP_F_U32(pp_drive_info, logical_block_bytes),
	PP_F_U32(pp_drive_info, physical_block_bytes), PP_F_TEXT(pp_drive_info, write_cache),
	PP_F_BOOL(pp_drive_info, fua),
	PP_F_ENUM(pp_drive_info, drive_cache, cache_name, PP_CACHE_ON + 1),
	PP_F_BOOL(pp_drive_info, rotational), PP_F_BOOL(pp_drive_info, removable),
	PP_F_BOOL(pp_drive_info, read_only), PP_F_BOOL(pp_drive_info, has_partitions),
	PP_F_U32(pp_drive_info, stripe_bytes), PP_F_BOOL(pp_drive_info, no_volatile_cache),
	PP_F_TEXT(pp_drive_info, raid_controller), PP_F_U32(pp_drive_info, scsi_host),
	PP_F_TEXT(pp_drive_info, backing_file),
};

static const struct pp_field policy_fields[] = { PP_F_TEXT(pp_drive_answer, policy) };

void pp_drive_put(struct pp_buf *buf, const char *prefix, const struct pp_drive_info *info)
{
	struct pp_drive_answer answer;

	pp_drive_policy(info, answer.policy, sizeof(answer.policy));
	pp_fields_put(buf, prefix, PP_FIELDS(drive_fields), info);
	pp_fields_put(buf, prefix, PP_FIELDS(policy_fields), &answer);
}

int pp_drive_get(const struct pp_kv *kv, const char *prefix, struct pp_drive_answer *drive,
	struct pp_error *err)
{
	memset(drive, 0, sizeof(*drive));
	if (pp_fields_get(kv, prefix, PP_FIELDS(drive_fields), &drive->info, err) != 0)
		return -1;
	return pp_fields_get(kv, prefix, PP_FIELDS(policy_fields), drive, err);
}

int pp_block_next(const char **at, const char *end, struct pp_kv *kv, struct pp_error *err)
{
	const char *start = *at, *p;

	memset(kv, 0, sizeof(*kv));
	if (start == end)
		return 0;
	for (p = start; p < end; p++) {
		if (*p != '\n' || (p != start && p[-1] != '\n'))
			continue;
		if (pp_kv_parse(kv, start, (size_t)(p - start), err) != 0)
			return -1;
		*at = p + 1;
		return 1;
	}
	return pp_fail(err, PP_ERR_PEER, "an answer ends in the middle of a block");
}

static const struct pp_field share_fields[] = {
	PP_F_BOOL(pp_share, shared), PP_F_TEXT(pp_share, why),
};

void pp_share_put(struct pp_buf *buf, const struct pp_share *share)
{
	pp_fields_put(buf, "", PP_FIELDS(share_fields), share);
}

int pp_share_get(const struct pp_kv *kv, struct pp_share *share, struct pp_error *err)
{
	memset(share, 0, sizeof(*share));
	return pp_fields_get(kv, "", PP_FIELDS(share_fields), share, err);
}

/* ---- targets ------------------------------------------------------------------------------- */

static const struct pp_field formatted_fields[] = {
	PP_F_ENUM(pp_formatted, state, state_name, PP_TARGET_FAILED + 1),
	PP_F_TEXT(pp_formatted, error), PP_F_TEXT(pp_formatted, fs_uuid),
	PP_F_TEXT(pp_formatted, fs_type),
	PP_F_INT(pp_formatted, fs_partition, PP_PARTITION_UNKNOWN, 1024),
	PP_F_U64(pp_formatted, drive_size_bytes),
};

void pp_formatted_put(struct pp_buf *buf, const struct pp_formatted *formatted)
{
	pp_fields_put(buf, "", PP_FIELDS(formatted_fields), formatted);
}

int pp_formatted_get(const struct pp_kv *kv, struct pp_formatted *formatted, struct pp_error *err)
{
	memset(formatted, 0, sizeof(*formatted));
	return pp_fields_get(kv, "", PP_FIELDS(formatted_fields), formatted, err);
}

static const struct pp_field proof_fields[] = {
	PP_F_ENUM(pp_proof, state, state_name, PP_TARGET_FAILED + 1), PP_F_TEXT(pp_proof, error),
	PP_F_ENUM(pp_proof, kind, kind_name, 2), PP_F_TEXT(pp_proof, path),
	PP_F_U32(pp_proof, unit_bytes), PP_F_U64(pp_proof, size_bytes),
	PP_F_TEXT(pp_proof, fs_type), PP_F_TEXT(pp_proof, fs_uuid), PP_F_TEXT(pp_proof, fs_node),
	PP_F_INT(pp_proof, fs_partition, PP_PARTITION_UNKNOWN, 1024),
	PP_F_TEXT(pp_proof, mount_options), PP_F_BOOL(pp_proof, no_barrier),
	PP_F_TEXT(pp_proof, complaints), PP_F_TEXT(pp_proof, kernel),
};

void pp_proof_of(struct pp_proof *proof, const struct pp_target *target, const struct pp_error *why)
{
	memset(proof, 0, sizeof(*proof));
	proof->state = target->state;
	if (target->state != PP_TARGET_OK)
		snprintf(proof->error, sizeof(proof->error), "%s", why ? why->text : "");
	proof->drive.info = target->drive;
	pp_drive_policy(&target->drive, proof->drive.policy, sizeof(proof->drive.policy));
	proof->kind = target->kind;
	snprintf(proof->path, sizeof(proof->path), "%s", target->path);
	proof->unit_bytes = target->unit_bytes;
	proof->size_bytes = target->size_bytes;
	snprintf(proof->fs_type, sizeof(proof->fs_type), "%s", target->fs_type);
	snprintf(proof->fs_uuid, sizeof(proof->fs_uuid), "%s", target->fs_uuid);
	snprintf(proof->fs_node, sizeof(proof->fs_node), "%s", target->fs_node);
	proof->fs_partition = target->fs_partition;
	snprintf(proof->mount_options, sizeof(proof->mount_options), "%s", target->mount_options);
	proof->no_barrier = target->no_barrier;
	snprintf(proof->complaints, sizeof(proof->complaints), "%s", target->complaints);
}

void pp_proof_put(struct pp_buf *buf, const struct pp_proof *proof)
{
	pp_fields_put(buf, "", PP_FIELDS(proof_fields), proof);
	pp_drive_put(buf, "drive_", &proof->drive.info);
}

int pp_proof_get(const struct pp_kv *kv, struct pp_proof *proof, struct pp_error *err)
{
	memset(proof, 0, sizeof(*proof));
	if (pp_fields_get(kv, "", PP_FIELDS(proof_fields), proof, err) != 0)
		return -1;
	return pp_drive_get(kv, "drive_", &proof->drive, err);
}

static const char *policy_state_name(int state)
{
	static const char *const names[] = {
		[PP_POLICY_MADE] = "made", [PP_POLICY_UNSUPPORTED] = "unsupported",
		[PP_POLICY_REFUSED] = "refused", [PP_POLICY_FAILED] = "failed",
	};

	return names[state];
}

static const struct pp_field policy_answer_fields[] = {
	PP_F_ENUM(pp_policy_answer, state, policy_state_name, PP_POLICY_FAILED + 1),
	PP_F_TEXT(pp_policy_answer, error), PP_F_BOOL(pp_policy_answer, has_saved),
};

void pp_policy_answer_put(struct pp_buf *buf, const struct pp_policy_answer *answer)
{
	pp_policy_put(buf, "now_", &answer->policy);
	pp_fields_put(buf, "", PP_FIELDS(policy_answer_fields), answer);
	if (answer->has_saved)
		pp_policy_saved_put(buf, &answer->saved);
}

int pp_policy_answer_get(const struct pp_kv *kv, struct pp_policy_answer *answer,
	struct pp_error *err)
{
	memset(answer, 0, sizeof(*answer));
	if (pp_policy_get(kv, "now_", &answer->policy, err) != 0 ||
		pp_fields_get(kv, "", PP_FIELDS(policy_answer_fields), answer, err) != 0)
		return -1;
	return answer->has_saved ? pp_policy_saved_get(kv, &answer->saved, err) : 0;
}

static const struct pp_field check_fields[] = {
	PP_F_ENUM(pp_target_check, result, check_name, PP_CHECK_UNAVAILABLE + 1),
	PP_F_TEXT(pp_target_check, program), PP_F_TEXT(pp_target_check, text),
};

void pp_checked_put(struct pp_buf *buf, const struct pp_checked *checked)
{
	pp_fields_put(buf, "", PP_FIELDS(check_fields), &checked->check);
}

int pp_checked_get(const struct pp_kv *kv, struct pp_checked *checked, struct pp_error *err)
{
	memset(checked, 0, sizeof(*checked));
	return pp_fields_get(kv, "", PP_FIELDS(check_fields), &checked->check, err);
}

/* "1234" for a file that is there, "gone" for one that is not. */
void pp_sizes_put(struct pp_buf *buf, const struct pp_sizes *sizes)
{
	char key[32];
	uint32_t i;

	pp_kv_add_u64(buf, "files", sizes->files);
	for (i = 0; i < sizes->files; i++) {
		snprintf(key, sizeof(key), "file.%u", i);
		if (sizes->present[i])
			pp_kv_add_u64(buf, key, sizes->bytes[i]);
		else
			pp_kv_add(buf, key, "gone");
	}
}

int pp_sizes_get(const struct pp_kv *kv, struct pp_sizes *sizes, struct pp_error *err)
{
	const char *text;
	uint64_t files;
	char key[32];
	uint32_t i;

	memset(sizes, 0, sizeof(*sizes));
	if (pp_kv_u64(kv, "files", 1, PP_LANES_MAX, &files, err) != 0)
		return -1;
	for (i = 0; i < files; i++) {
		snprintf(key, sizeof(key), "file.%u", i);
		if (pp_kv_str(kv, key, &text, err) != 0)
			return -1;
		sizes->present[i] = strcmp(text, "gone") != 0;
		if (sizes->present[i] && pp_kv_u64(kv, key, 0, UINT64_MAX, &sizes->bytes[i], err) != 0)
			return -1;
	}
	sizes->files = (uint32_t)files;
	return 0;
}

/* ---- runs ---------------------------------------------------------------------------------- */

static const struct pp_field started_fields[] = {
	PP_F_U64(pp_started, agent_ns), PP_F_TEXT(pp_started, disk),
	PP_F_BOOL(pp_started, log_watched), PP_F_TEXT(pp_started, log_error),
};

void pp_started_put(struct pp_buf *buf, const struct pp_started *started)
{
	pp_fields_put(buf, "", PP_FIELDS(started_fields), started);
}

int pp_started_get(const struct pp_kv *kv, struct pp_started *started, struct pp_error *err)
{
	memset(started, 0, sizeof(*started));
	return pp_fields_get(kv, "", PP_FIELDS(started_fields), started, err);
}

static const struct pp_field stopped_fields[] = {
	PP_F_U64(pp_stopped, issued), PP_F_U64(pp_stopped, acked), PP_F_BOOL(pp_stopped, failed),
	PP_F_TEXT(pp_stopped, error), PP_F_U32(pp_stopped, lanes_full),
	PP_F_U32(pp_stopped, lanes_left_behind), PP_F_I64(pp_stopped, latency_ns_p50),
	PP_F_I64(pp_stopped, latency_ns_p99), PP_F_I64(pp_stopped, latency_ns_max),
	PP_F_U64(pp_stopped, latency_count),
};

void pp_stopped_put(struct pp_buf *buf, const struct pp_stopped *stopped)
{
	pp_fields_put(buf, "", PP_FIELDS(stopped_fields), stopped);
}

int pp_stopped_get(const struct pp_kv *kv, struct pp_stopped *stopped, struct pp_error *err)
{
	memset(stopped, 0, sizeof(*stopped));
	return pp_fields_get(kv, "", PP_FIELDS(stopped_fields), stopped, err);
}

static const struct pp_field scanned_fields[] = {
	PP_F_U64(pp_scanned, bytes), PP_F_BOOL(pp_scanned, direct),
};

void pp_scanned_put(struct pp_buf *buf, const struct pp_scanned *scanned)
{
	pp_fields_put(buf, "", PP_FIELDS(scanned_fields), scanned);
}

int pp_scanned_get(const struct pp_kv *kv, struct pp_scanned *scanned, struct pp_error *err)
{
	memset(scanned, 0, sizeof(*scanned));
	return pp_fields_get(kv, "", PP_FIELDS(scanned_fields), scanned, err);
}

static const struct pp_field note_fields[] = {
	PP_F_ENUM(pp_note, event, event_name, PP_NOTE_LOG + 1),
	PP_F_U32_IN(pp_note, index, 0, PP_RUN_INDEX_MAX),
	PP_F_U32_IN(pp_note, lane, 0, PP_LANES_MAX - 1), PP_F_U64(pp_note, seq),
	PP_F_TEXT(pp_note, call), PP_F_I64(pp_note, os_code), PP_F_TEXT(pp_note, text),
};

void pp_note_put(struct pp_buf *buf, const struct pp_note *note)
{
	pp_fields_put(buf, "", PP_FIELDS(note_fields), note);
}

int pp_note_get(const struct pp_kv *kv, struct pp_note *note, struct pp_error *err)
{
	memset(note, 0, sizeof(*note));
	return pp_fields_get(kv, "", PP_FIELDS(note_fields), note, err);
}
