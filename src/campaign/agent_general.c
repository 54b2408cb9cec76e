/* SPDX-License-Identifier: MIT
 *
 * Orders that only look, and at any drive: they need no entry on the allow list.
 */
#include <stdlib.h>
#include <string.h>

#include "agent_parts.h"

#define SMART_BYTES_MAX (4u << 20)

static int identify_all(struct agent_slot *slot, const struct agent_request *r,
	struct pp_error *err)
{
	struct pp_drive_info *infos;
	struct pp_buf block;
	size_t count, i;
	int rc = 0;

	if (pp_drive_list(NULL, &infos, &count, err) != 0)
		return -1;
	pp_buf_init(&block, 1 << 16);
	for (i = 0; i < count && rc == 0; i++) {
		pp_buf_clear(&block);
		pp_drive_put(&block, "", &infos[i]);
		pp_buf_add(&block, "\n", 1);
		rc = block.failed ? pp_fail(err, PP_ERR_SYSTEM, "no memory for a list of drives")
			: agent_data(slot->session, r->id, block.data, block.bytes, err);
	}
	pp_buf_release(&block);
	free(infos);
	return rc;
}

int agent_identify(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_drive_info info;

	if (strcmp(r->order.serial, "*") == 0)
		return identify_all(slot, r, err);
	if (pp_drive_find(NULL, r->order.serial, &info, err) != 0)
		return -1;
	pp_drive_put(kv, "", &info);
	return 0;
}

int agent_smart(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_drive_info info;
	struct pp_buf json;
	int rc;

	(void)kv;
	if (pp_drive_find(NULL, r->order.serial, &info, err) != 0)
		return -1;
	pp_buf_init(&json, SMART_BYTES_MAX);
	rc = pp_drive_smart_raw(&info, &json, err);
	if (rc == 0)
		rc = agent_data(slot->session, r->id, json.data, json.bytes, err);
	pp_buf_release(&json);
	return rc;
}

int agent_share(struct agent_slot *slot, const struct agent_request *r, struct pp_buf *kv,
	struct pp_error *err)
{
	struct pp_drive_info a, b;
	struct pp_share share = { 0 };
	int rc;

	(void)slot;
	if (pp_drive_find(NULL, r->order.serial, &a, err) != 0 ||
		pp_drive_find(NULL, r->order.other, &b, err) != 0)
		return -1;
	rc = pp_drives_share(NULL, a.name, b.name, share.why, sizeof(share.why), err);
	if (rc < 0)
		return -1;
	share.shared = rc == 1;
	pp_share_put(kv, &share);
	return 0;
}
