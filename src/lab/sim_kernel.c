/* SPDX-License-Identifier: MIT */
#include "sim_kernel_parts.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"

#define RETRY_NS     3000
#define ALL_FILES    UINT32_MAX

/* The slot whose byte offset the lane named. */
static uint64_t slot_at(const struct pp_sim_kernel *k, uint32_t lane, uint64_t offset)
{
	return (offset - pp_layout_offset(k->layout, lane, 0)) / k->layout->record_bytes;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* A drive that ignores a request answers as fast as its cache: what gives many a lie away. */
static int64_t time_of(struct pp_sim_kernel *k, enum stage stage, uint32_t writes)
{
	if ((stage == STAGE_FLUSH || stage == STAGE_JOURNAL) &&
		pp_sim_drive_ignores(k->drive, PP_DRIVE_IGNORES_FLUSH))
		return (int64_t)between(&k->random, 3000, 15000);
	if ((stage == STAGE_FUA || stage == STAGE_COMMIT) &&
		pp_sim_drive_ignores(k->drive, PP_DRIVE_IGNORES_FUA))
		stage = STAGE_RECORD;
	switch (stage) {
	case STAGE_TIME: return (int64_t)between(&k->random, 800, 4000);
	case STAGE_RECORD: return (int64_t)between(&k->random, 12000, 50000);
	case STAGE_FUA: return (int64_t)between(&k->random, 40000, 160000);
	case STAGE_DATA:
	case STAGE_OWN: return (int64_t)between(&k->random, 12000, 40000) + 3000 * writes;
	case STAGE_FLUSH:
	case STAGE_JOURNAL: return (int64_t)between(&k->random, 50000, 300000);
	case STAGE_COMMIT: return (int64_t)between(&k->random, 30000, 120000);
	case STAGE_SETTLED: return 0;
	}
	return 0;
}

static void add_stage(struct actor *a, enum stage stage)
{
	assert(a->stages < STAGES_MAX);
	a->stage[a->stages++] = stage;
}

static bool sends_flushes(const struct pp_sim_kernel *k)
{
	return k->cache && (k->barriers || k->kind == PP_TARGET_RAW);
}

static void add_flush(struct actor *a)
{
	if (sends_flushes(a->kernel))
		add_stage(a, STAGE_FLUSH);
}

/* Data is written; makes it durable, and what the metadata say of it. */
static void add_sync(struct actor *a)
{
	const struct pp_sim_kernel *k = a->kernel;

	if (!k->journal) {
		add_flush(a);
		return;
	}
	add_stage(a, STAGE_JOURNAL);
	add_stage(a, STAGE_COMMIT);
	if (!k->fua)
		add_flush(a);
	add_stage(a, STAGE_SETTLED);
}

static int reserve(struct actor *a)
{
	uint32_t room = a->room ? 2 * a->room : 64;
	struct extent *extent;
	struct pp_sim_drive_write *write;

	if (a->writes < a->room)
		return 0;
	extent = realloc(a->extent, room * sizeof(*extent));
	if (extent)
		a->extent = extent;
	write = realloc(a->write, room * sizeof(*write));
	if (write)
		a->write = write;
	if (!extent || !write)
		return -1;
	a->room = room;
	return 0;
}

static void take_extent(struct actor *a, const struct extent *e)
{
	struct pp_sim_kernel *k = a->kernel;

	if (reserve(a) != 0) {
		k->ok = false;
		return;
	}
	a->extent[a->writes++] = *e;
}

/* The dirty pages of the actor's file leave the list; they are under way now. */
static void take_dirty(struct actor *a)
{
	struct pp_sim_kernel *k = a->kernel;
	uint32_t i, kept = 0;

	for (i = 0; i < k->dirty_count; i++) {
		struct extent *e = &k->dirty[i];

		if (a->file != ALL_FILES && e->file != a->file) {
			k->dirty[kept++] = *e;
			continue;
		}
		k->dirty_map[e->at / SECTOR] = 0;
		take_extent(a, e);
	}
	k->dirty_count = kept;
}

/* A sync waits also for pages of its file that somebody else is writing. */
static int64_t others_end_ns(const struct actor *a, int64_t end_ns)
{
	const struct pp_sim_kernel *k = a->kernel;
	uint32_t i, j;

	for (i = 0; i <= k->layout->lanes; i++) {
		const struct actor *o = &k->actor[i];

		if (o == a || !o->begun || o->at >= o->stages || o->end_ns < end_ns ||
			(o->stage[o->at] != STAGE_DATA && o->stage[o->at] != STAGE_OWN))
			continue;
		for (j = 0; j < o->writes; j++)
			if (a->file == ALL_FILES || o->extent[j].file == a->file) {
				end_ns = o->end_ns + 1;
				break;
			}
	}
	return end_ns;
}

static void submit(struct actor *a, const void *direct, bool fua)
{
	struct pp_sim_kernel *k = a->kernel;
	uint32_t i;

	for (i = 0; i < a->writes; i++) {
		struct pp_sim_drive_write *w = &a->write[i];

		*w = (struct pp_sim_drive_write){ .data = direct ? direct : k->page + a->extent[i].at,
			.bytes = k->layout->record_bytes, .offset = a->extent[i].at, .fua = fua,
			.atomic = direct && k->method->untorn };
		k->ok &= pp_sim_drive_submit(k->drive, k->now_ns, w) == 0;
	}
}

static bool begin_journal(struct actor *a)
{
	struct pp_sim_kernel *k = a->kernel;

	if (k->journal_busy)
		return false;
	k->journal_busy = true;
	pp_sim_begin_commit(k);
	a->flush_mark = pp_sim_drive_flush_begin(k->drive);
	return true;
}

static void begin_commit_write(struct pp_sim_kernel *k)
{
	pp_sim_put_commit(k->commit_record, k->committed);
	k->commit_write = (struct pp_sim_drive_write){ .data = k->commit_record, .bytes = SECTOR,
		.offset = k->committed % 2 * COMMIT_STEP, .fua = sends_flushes(k) && k->fua };
	k->ok &= pp_sim_drive_submit(k->drive, k->now_ns, &k->commit_write) == 0;
}

static void begin_stage(struct actor *a)
{
	struct pp_sim_kernel *k = a->kernel;
	enum stage stage = a->stage[a->at];
	bool begun = true;

	a->writes = 0;
	switch (stage) {
	case STAGE_RECORD:
	case STAGE_FUA:
		take_extent(a, &a->own);
		submit(a, a->data, stage == STAGE_FUA);
		break;
	case STAGE_OWN:
		take_extent(a, &a->own);
		submit(a, NULL, false);
		break;
	case STAGE_DATA:
		take_dirty(a);
		submit(a, NULL, false);
		break;
	case STAGE_FLUSH:
		a->flush_mark = pp_sim_drive_flush_begin(k->drive);
		break;
	case STAGE_JOURNAL:
		begun = begin_journal(a);
		break;
	case STAGE_COMMIT:
		begin_commit_write(k);
		break;
	case STAGE_TIME:
	case STAGE_SETTLED:
		break;
	}
	a->begun = begun;
	a->end_ns = k->now_ns + (begun ? time_of(k, stage, a->writes) : RETRY_NS);
	if (begun && stage == STAGE_DATA)
		a->end_ns = others_end_ns(a, a->end_ns);
}

static void end_writes(struct actor *a)
{
	struct pp_sim_kernel *k = a->kernel;
	uint32_t i;

	for (i = 0; i < a->writes; i++) {
		k->ok &= pp_sim_drive_complete(k->drive, k->now_ns, &a->write[i]) == 0;
		pp_sim_written(k, &a->extent[i]);
	}
	a->writes = 0;
}

static void end_stage(struct actor *a)
{
	struct pp_sim_kernel *k = a->kernel;

	switch (a->stage[a->at]) {
	case STAGE_RECORD:
	case STAGE_FUA:
	case STAGE_OWN:
	case STAGE_DATA:
		end_writes(a);
		break;
	case STAGE_JOURNAL:
		if (!sends_flushes(k))
			break;
		/* fall through */
	case STAGE_FLUSH:
		k->ok &= pp_sim_drive_flush_end(k->drive, k->now_ns, a->flush_mark) == 0;
		break;
	case STAGE_COMMIT:
		k->ok &= pp_sim_drive_complete(k->drive, k->now_ns, &k->commit_write) == 0;
		break;
	case STAGE_SETTLED:
		k->journal_busy = false;
		break;
	case STAGE_TIME:
		break;
	}
}

static bool has_stage(const struct actor *a)
{
	return a->at < a->stages;
}

int64_t pp_sim_kernel_due_ns(const struct pp_sim_kernel *k)
{
	int64_t due = PP_SIM_NEVER;
	uint32_t i;

	for (i = 0; i <= k->layout->lanes; i++)
		if (has_stage(&k->actor[i]) && k->actor[i].end_ns < due)
			due = k->actor[i].end_ns;
	return due;
}

/* The flusher begins its round anew. */
static void wake_flusher(struct actor *a)
{
	struct pp_sim_kernel *k = a->kernel;

	if (!k->flusher_ns)
		return;
	a->stages = a->at = 0;
	add_stage(a, STAGE_TIME);
	add_stage(a, STAGE_DATA);
	if (k->journal && below(&k->random, 4) == 0)
		add_sync(a);
	a->begun = true;
	a->end_ns = k->now_ns + k->flusher_ns;
}

static void advance_actor(struct actor *a)
{
	struct pp_sim_kernel *k = a->kernel;

	while (has_stage(a) && a->end_ns <= k->now_ns) {
		if (a->begun) {
			end_stage(a);
			a->at++;
		}
		if (has_stage(a))
			begin_stage(a);
		else if (a->number == k->layout->lanes)
			wake_flusher(a);
	}
}

void pp_sim_kernel_advance(struct pp_sim_kernel *k, int64_t now_ns)
{
	uint32_t i;

	k->now_ns = now_ns;
	for (i = 0; i <= k->layout->lanes; i++)
		advance_actor(&k->actor[i]);
}

bool pp_sim_kernel_lane_busy(const struct pp_sim_kernel *k, uint32_t lane)
{
	return has_stage(&k->actor[lane]);
}

bool pp_sim_kernel_ok(const struct pp_sim_kernel *k)
{
	return k->ok;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void begin_call(struct actor *a)
{
	assert(!has_stage(a));
	a->stages = a->at = 0;
	add_stage(a, STAGE_TIME);
	a->begun = true;
	a->end_ns = a->kernel->now_ns + time_of(a->kernel, STAGE_TIME, 0);
}

/* M2.3: this is the call that fails. */
static bool call_fails(struct pp_sim_kernel *k)
{
	return !k->ok || (k->fails_in && --k->fails_in == 0);
}

void pp_sim_kernel_fail(struct pp_sim_kernel *k, uint64_t calls)
{
	k->fails_in = calls;
}

/* A new file takes its slot's first place, a temporary one the place that the name does not have. */
static uint8_t new_place(struct pp_sim_kernel *k, uint32_t lane, uint64_t slot)
{
	uint64_t entry = pp_sim_slot_entry(k, lane, slot);
	bool renames = pp_workload_renames(k->layout->workload);
	uint8_t place = renames && k->now.name[entry] == 1 ? 2 : 1;

	*(renames ? &k->now.temporary[entry] : &k->now.name[entry]) = place;
	k->now.full[2 * entry + place - 1] = 0;
	return place;
}

static void make_dirty(struct pp_sim_kernel *k, const struct extent *e, const void *buf)
{
	memcpy(k->page + e->at, buf, k->layout->record_bytes);
	if (k->dirty_map[e->at / SECTOR])
		return;
	if (k->dirty_count == k->dirty_room) {
		uint32_t room = k->dirty_room ? 2 * k->dirty_room : 256;
		struct extent *grown = realloc(k->dirty, room * sizeof(*grown));

		if (!grown) {
			k->ok = false;
			return;
		}
		k->dirty = grown;
		k->dirty_room = room;
	}
	k->dirty_map[e->at / SECTOR] = 1;
	k->dirty[k->dirty_count++] = *e;
}

/* The stages of a direct write that is its own sync. */
static void add_direct_sync(struct actor *a)
{
	const struct pp_sim_kernel *k = a->kernel;
	bool fua = k->fua && k->cache && k->method->o_dsync && !k->method->o_sync && !k->journal;

	if (k->kind == PP_TARGET_RAW)
		fua = k->fua && k->cache;
	if (k->method->passthrough) {
		add_stage(a, STAGE_FUA);
		return;
	}
	add_stage(a, fua ? STAGE_FUA : STAGE_RECORD);
	/* On a device the synchronous path adds a flush to its FUA write; io_uring's does not. */
	if (!fua || (k->kind == PP_TARGET_RAW && k->method->write != PP_WRITE_URING))
		add_sync(a);
}

static int64_t call_write(void *ctx, const void *buf, uint32_t bytes, uint64_t offset,
	int64_t *os_code)
{
	struct actor *a = ctx;
	struct pp_sim_kernel *k = a->kernel;
	bool syncs = k->method->o_dsync || k->method->o_sync;

	*os_code = EIO;
	if (call_fails(k)) {
		*os_code = below(&k->random, 2) ? EIO : 0;
		return *os_code ? -1 : (int64_t)bytes - SECTOR;
	}
	a->own = (struct extent){ .lane = a->number, .slot = slot_at(k, a->number, offset) };
	a->own.file = k->files ? pp_layout_file_at(k->layout, a->number, a->own.slot)
		: pp_layout_file_of(k->layout, a->number);
	if (k->files)
		a->own.place = new_place(k, a->number, a->own.slot);
	a->own.at = pp_sim_place_at(k, a->number, a->own.slot, a->own.place);
	begin_call(a);
	a->data = buf;
	if (k->method->direct && syncs) {
		add_direct_sync(a);
	} else if (k->method->direct) {
		add_stage(a, STAGE_RECORD);
	} else if (syncs) {
		memcpy(k->page + a->own.at, buf, bytes);
		add_stage(a, STAGE_OWN);
		add_sync(a);
	} else {
		make_dirty(k, &a->own, buf);
	}
	return bytes;
}

/* What a sync call makes the kernel do, beyond the dirty pages that it always writes. */
static void add_call(struct actor *a, enum pp_sync_call call)
{
	switch (call) {
	case PP_SYNC_NONE:
	case PP_SYNC_FILE_RANGE: /* no flush, no metadata */
		break;
	case PP_SYNC_NVME_FLUSH: /* past the block layer, whatever the drive says of its cache */
	case PP_SYNC_SCSI_CACHE:
		add_stage(a, STAGE_FLUSH);
		break;
	default:
		add_sync(a);
	}
}

/* What could not be written is clean now, and nobody will write it (fsync(2) on Linux). */
static void fail_sync(struct actor *a, uint32_t file)
{
	a->file = file;
	a->writes = 0;
	take_dirty(a);
	a->writes = 0;
}

static int sync_file(struct actor *a, enum pp_sync_call call, uint32_t file, int64_t *os_code)
{
	*os_code = EIO;
	if (call_fails(a->kernel)) {
		fail_sync(a, file);
		return -1;
	}
	begin_call(a);
	a->file = a->kernel->method->coverage == PP_COVERS_FS ? ALL_FILES : file;
	add_stage(a, STAGE_DATA);
	add_call(a, call);
	return 0;
}

static int call_sync(void *ctx, enum pp_sync_call call, int64_t *os_code)
{
	struct actor *a = ctx;

	return sync_file(a, call, pp_layout_file_of(a->kernel->layout, a->number), os_code);
}

static int call_sync_record(void *ctx, enum pp_sync_call call, uint64_t offset, int64_t *os_code)
{
	struct actor *a = ctx;

	return sync_file(a, call, pp_layout_file_at(a->kernel->layout, a->number,
		slot_at(a->kernel, a->number, offset)), os_code);
}

static int call_rename_record(void *ctx, uint64_t offset, int64_t *os_code)
{
	struct actor *a = ctx;
	struct pp_sim_kernel *k = a->kernel;
	uint64_t entry = pp_sim_slot_entry(k, a->number, slot_at(k, a->number, offset));

	*os_code = EIO;
	if (call_fails(k))
		return -1;
	begin_call(a);
	k->now.name[entry] = k->now.temporary[entry];
	k->now.temporary[entry] = 0;
	return 0;
}

static int call_sync_folder(void *ctx, int64_t *os_code)
{
	struct actor *a = ctx;

	*os_code = EIO;
	if (call_fails(a->kernel))
		return -1;
	begin_call(a);
	add_sync(a);
	return 0;
}

static int64_t call_now(void *ctx)
{
	return ((struct actor *)ctx)->kernel->now_ns;
}

void pp_sim_kernel_io(struct pp_sim_kernel *k, uint32_t lane, struct pp_lane_io *io)
{
	*io = (struct pp_lane_io){ .ctx = &k->actor[lane], .write = call_write, .sync = call_sync,
		.now_ns = call_now, .sync_record = call_sync_record,
		.rename_record = call_rename_record, .sync_folder = call_sync_folder };
}

/* ---- life ------------------------------------------------------------------------------------ */

struct pp_sim_kernel *pp_sim_kernel_new(struct pp_sim_drive *drive, struct pp_sim_disk *disk,
	const struct pp_layout *layout, enum pp_target_kind kind, bool fua, bool barriers,
	struct pp_error *err)
{
	struct pp_sim_kernel *k = calloc(1, sizeof(*k));
	bool good = k != NULL;
	unsigned i;

	if (!k)
		goto no_memory;
	k->drive = drive;
	k->disk = disk;
	k->layout = layout;
	k->kind = kind;
	k->fua = fua;
	k->barriers = barriers;
	k->cache = pp_sim_drive_has_cache(drive);
	k->files = pp_workload_record_files(layout->workload);
	k->grows = pp_workload_grows(layout->workload);
	k->journal = k->files || k->grows;
	k->entries = k->files ? layout->lanes * layout->slots : 0;
	for (i = 0; i < PP_LANES_MAX + 1; i++) {
		k->actor[i].kernel = k;
		k->actor[i].number = i;
	}
	k->page = calloc(1, disk->bytes);
	k->dirty_map = calloc(1, disk->bytes / SECTOR);
	good = k->page && k->dirty_map && pp_sim_meta_init(&k->now, k->entries) == 0 &&
		pp_sim_meta_init(&k->first, k->entries) == 0;
	for (i = 0; good && k->journal && i < SNAPSHOTS; i++)
		good = pp_sim_meta_init(&k->snapshot[i], k->entries) == 0;
	if (good)
		return k;
no_memory:
	pp_sim_kernel_free(k);
	pp_fail_os(err, ENOMEM, "cannot make a simulated kernel");
	return NULL;
}

void pp_sim_kernel_free(struct pp_sim_kernel *k)
{
	unsigned i;

	if (!k)
		return;
	for (i = 0; i < PP_LANES_MAX + 1; i++) {
		free(k->actor[i].extent);
		free(k->actor[i].write);
	}
	for (i = 0; i < SNAPSHOTS; i++)
		free(k->snapshot[i].name);
	free(k->now.name);
	free(k->first.name);
	free(k->page);
	free(k->dirty_map);
	free(k->dirty);
	free(k);
}

void pp_sim_kernel_stop(struct pp_sim_kernel *k)
{
	uint32_t i;

	for (i = 0; i <= k->layout->lanes; i++)
		k->actor[i].stages = k->actor[i].at = k->actor[i].writes = 0;
	for (i = 0; i < k->dirty_count; i++)
		k->dirty_map[k->dirty[i].at / SECTOR] = 0;
	k->dirty_count = 0;
	k->journal_busy = false;
	k->mounted = false;
}

void pp_sim_kernel_start(struct pp_sim_kernel *k, const struct pp_method *method, int64_t now_ns,
	uint64_t seed)
{
	static const int64_t periods_ns[] = { 0, 0, 3000000, 20000000 };

	k->method = method;
	k->now_ns = now_ns;
	k->random = seed;
	k->ok = true;
	k->fails_in = 0;
	k->flusher_ns = periods_ns[below(&k->random, 4)];
	k->actor[k->layout->lanes].file = ALL_FILES;
	wake_flusher(&k->actor[k->layout->lanes]);
}
