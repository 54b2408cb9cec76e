/* SPDX-License-Identifier: MIT */
#include "agent_parts.h"

void agent_answer(struct agent_session *s, uint32_t id, const struct pp_buf *kv)
{
	struct pp_error why = { 0 };

	if (kv && kv->failed) {
		pp_fail(&why, PP_ERR_SYSTEM, "the answer is too long");
		agent_answer_error(s, id, &why);
		return;
	}
	pp_client_respond(s->client, id, PP_ANSWER_DONE, kv, NULL);
}

void agent_answer_error(struct agent_session *s, uint32_t id, const struct pp_error *why)
{
	struct pp_buf kv;

	pp_buf_init(&kv, 4096);
	pp_kv_add(&kv, "error", why->text);
	pp_client_respond(s->client, id,
		why->class == PP_ERR_REFUSED ? PP_ANSWER_REFUSED : PP_ANSWER_FAILED, &kv, NULL);
	pp_buf_release(&kv);
}

int agent_data(struct agent_session *s, uint32_t id, const void *data, size_t bytes,
	struct pp_error *err)
{
	const char *at = data;
	size_t now;

	while (bytes > 0) {
		now = bytes < PP_ORDER_DATA_BYTES ? bytes : PP_ORDER_DATA_BYTES;
		if (atomic_load(&s->ending))
			return pp_fail(err, PP_ERR_PEER, "the connection is over");
		if (pp_client_send_data(s->client, id, at, now, err) != 0)
			return -1;
		at += now;
		bytes -= now;
	}
	return 0;
}
