/* SPDX-License-Identifier: MIT
 *
 * One thread a drive, started by its first order, does its orders one after another; at the end of
 * the session it stops what runs and releases the target.
 */
#include <stdlib.h>
#include <string.h>

#include "agent_parts.h"

static agent_order_fn *const order_functions[PP_ORDER_KINDS] = {
	[PP_ORDER_IDENTIFY] = agent_identify,
	[PP_ORDER_SMART] = agent_smart,
	[PP_ORDER_SHARE] = agent_share,
	[PP_ORDER_FORMAT] = agent_format,
	[PP_ORDER_PROVE] = agent_prove,
	[PP_ORDER_RELEASE] = agent_release,
	[PP_ORDER_CHECK] = agent_check,
	[PP_ORDER_PREWRITE] = agent_prewrite,
	[PP_ORDER_SIZES] = agent_sizes,
	[PP_ORDER_WATCH] = agent_watch,
	[PP_ORDER_RUN] = agent_run,
	[PP_ORDER_NOISE] = agent_noise,
	[PP_ORDER_STOP] = agent_stop,
	[PP_ORDER_SCAN] = agent_scan,
	[PP_ORDER_MATRIX] = agent_matrix,
	[PP_ORDER_POLICY] = agent_policy,
	[PP_ORDER_POLICY_SET] = agent_policy_set,
	[PP_ORDER_POLICY_RESTORE] = agent_policy_restore,
};

static void do_order(struct agent_slot *slot, struct agent_request *r)
{
	struct agent_session *s = slot->session;
	struct pp_error why = { 0 };
	struct pp_buf kv;

	pp_buf_init(&kv, PP_KV_BYTES_MAX);
	if (order_functions[r->order.kind](slot, r, &kv, &why) == 0)
		agent_answer(s, r->id, &kv);
	else
		agent_answer_error(s, r->id, &why);
	pp_buf_release(&kv);
}

/* The next order; NULL when the session ends. */
static struct agent_request *next_order(struct agent_slot *slot)
{
	struct agent_request *r;

	pthread_mutex_lock(&slot->lock);
	while (!slot->head && !atomic_load(&slot->session->ending))
		pthread_cond_wait(&slot->changed, &slot->lock);
	r = atomic_load(&slot->session->ending) ? NULL : slot->head;
	if (r) {
		slot->head = r->next;
		slot->queued--;
	}
	pthread_mutex_unlock(&slot->lock);
	return r;
}

static void drop_orders(struct agent_slot *slot)
{
	struct agent_request *r, *next;

	pthread_mutex_lock(&slot->lock);
	r = slot->head;
	slot->head = NULL;
	slot->queued = 0;
	pthread_mutex_unlock(&slot->lock);
	for (; r; r = next) {
		next = r->next;
		pp_order_release(&r->order);
		free(r);
	}
}

static void *worker_main(void *arg)
{
	struct agent_slot *slot = arg;
	struct agent_request *r;
	bool lazy;

	while ((r = next_order(slot))) {
		do_order(slot, r);
		pp_order_release(&r->order);
		free(r);
	}
	drop_orders(slot);
	agent_slot_release(slot, &lazy);
	agent_session_let_go(slot->session);
	return NULL;
}

int agent_slot_queue(struct agent_slot *slot, struct agent_request *request, struct pp_error *err)
{
	struct agent_request **end;
	int rc = 0;

	pthread_mutex_lock(&slot->lock);
	if (slot->queued >= AGENT_QUEUE) {
		rc = pp_fail(err, PP_ERR_REFUSED, "%u orders for this drive wait already", slot->queued);
	} else if (!slot->has_worker) {
		rc = agent_thread(slot->session, worker_main, slot, err);
		slot->has_worker = rc == 0;
	}
	if (rc == 0) {
		for (end = &slot->head; *end; end = &(*end)->next)
			;
		*end = request;
		slot->queued++;
		pthread_cond_broadcast(&slot->changed);
	}
	pthread_mutex_unlock(&slot->lock);
	return rc;
}

void agent_slot_own_writer(struct agent_slot *slot)
{
	while (slot->borrowed)
		pthread_cond_wait(&slot->changed, &slot->lock);
}
