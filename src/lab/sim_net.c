/* SPDX-License-Identifier: MIT */
#include "sim_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "verifier/ledger_format.h"

void pp_sim_net_start(struct pp_sim_net *net, uint64_t seed, int64_t delay_ns_max)
{
	net->random = seed;
	net->delay_ns_max = delay_ns_max;
	net->dark_ns = INT64_MAX;
	net->count = net->arrived = net->echoes = net->echoed = net->entries = 0;
	net->failed = false;
}

void pp_sim_net_release(struct pp_sim_net *net)
{
	free(net->sent);
	free(net->echo);
	free(net->ledger);
	*net = (struct pp_sim_net){ 0 };
}

static void *grow(struct pp_sim_net *net, void *list, size_t count, size_t *room, size_t each)
{
	void *grown;

	if (count < *room)
		return list;
	grown = realloc(list, (*room ? 2 * *room : 256) * each);
	if (!grown) {
		net->failed = true;
		return NULL;
	}
	*room = *room ? 2 * *room : 256;
	return grown;
}

/* A stream: nothing overtakes. */
static int64_t arrival(struct pp_sim_net *net, int64_t now_ns, int64_t before_ns)
{
	int64_t due_ns = now_ns + (int64_t)below(&net->random, (uint64_t)net->delay_ns_max + 1);

	return due_ns > before_ns ? due_ns : before_ns;
}

void pp_sim_net_send(struct pp_sim_net *net, int64_t now_ns, const struct pp_ledger_entry *entry)
{
	int64_t before_ns = net->count ? net->sent[net->count - 1].due_ns : 0;
	struct pp_sim_message *list;

	if (now_ns >= net->dark_ns)
		return;
	list = grow(net, net->sent, net->count, &net->room, sizeof(*list));
	if (!list)
		return;
	net->sent = list;
	net->sent[net->count++] = (struct pp_sim_message){ .sent_ns = now_ns,
		.due_ns = arrival(net, now_ns, before_ns), .entry = *entry };
}

int64_t pp_sim_net_due_ns(const struct pp_sim_net *net)
{
	int64_t due_ns = INT64_MAX;

	if (net->arrived < net->count)
		due_ns = net->sent[net->arrived].due_ns;
	if (net->echoed < net->echoes && net->echo[net->echoed].due_ns < due_ns)
		due_ns = net->echo[net->echoed].due_ns;
	return due_ns;
}

void pp_sim_net_note(struct pp_sim_net *net, const struct pp_ledger_entry *entry)
{
	struct pp_ledger_entry *list = grow(net, net->ledger, net->entries, &net->entry_room,
		sizeof(*list));

	if (!list)
		return;
	net->ledger = list;
	net->ledger[net->entries++] = *entry;
}

const struct pp_ledger_entry *pp_sim_net_hear(struct pp_sim_net *net, int64_t now_ns)
{
	int64_t before_ns = net->echoes ? net->echo[net->echoes - 1].due_ns : 0;
	struct pp_sim_message *m, *list;

	if (net->arrived == net->count || net->sent[net->arrived].due_ns > now_ns)
		return NULL;
	m = &net->sent[net->arrived++];
	m->entry.t_ns = m->due_ns;
	pp_sim_net_note(net, &m->entry);
	if (m->entry.type != PP_LEDGER_ACK || m->due_ns >= net->dark_ns)
		return &m->entry;
	list = grow(net, net->echo, net->echoes, &net->echo_room, sizeof(*list));
	if (!list)
		return &m->entry;
	net->echo = list;
	net->echo[net->echoes++] = (struct pp_sim_message){ .sent_ns = m->due_ns,
		.due_ns = arrival(net, m->due_ns, before_ns), .entry = m->entry };
	return &m->entry;
}

const struct pp_ledger_entry *pp_sim_net_echoed(struct pp_sim_net *net, int64_t now_ns)
{
	if (net->echoed == net->echoes || net->echo[net->echoed].due_ns > now_ns)
		return NULL;
	return &net->echo[net->echoed++].entry;
}

void pp_sim_net_cut(struct pp_sim_net *net)
{
	net->count -= below(&net->random, net->count - net->arrived + 1);
}

int pp_sim_net_ledger(const struct pp_sim_net *net, const struct pp_run_id *run, uint32_t lanes,
	struct pp_ledger_data *data, struct pp_error *err)
{
	size_t bytes = PP_LEDGER_HEADER_BYTES + net->entries * PP_LEDGER_ENTRY_BYTES, i;
	uint64_t seed = pp_ledger_seed(run);
	uint8_t *file = malloc(bytes);
	int rc;

	if (!file || net->failed) {
		free(file);
		return pp_fail_os(err, ENOMEM, "cannot keep a ledger");
	}
	pp_ledger_header_put(run, lanes, file);
	for (i = 0; i < net->entries; i++)
		pp_ledger_entry_put(&net->ledger[i], seed, i,
			file + PP_LEDGER_HEADER_BYTES + i * PP_LEDGER_ENTRY_BYTES);
	rc = pp_ledger_read(file, bytes, data, err);
	free(file);
	return rc;
}
