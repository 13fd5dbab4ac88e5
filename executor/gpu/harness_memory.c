// Design note. The open arena, as it is while no launch runs:
//
//   | pattern | stamps and result words | pattern | zeros that flush the cache | pattern |
//   | tensor | pattern | … |
//   | scratch memory, which holds the pattern too | pattern … to the end of what is mapped |
//
// Memory of recordings lies in arenas of its own. While none runs they hold the pattern, but for
// what has to be there before each run, which is given back after each.
//
// The pattern of a byte follows from its address and a key, which is new in each measurement. A
// candidate can read the pattern, and so put it back, but then it has kept nothing. When another
// case is placed, all that was looked at still holds the pattern, so only memory that areas had
// before or have now is filled, and memory that is new. Recordings have theirs filled anew.
#include "executor/gpu/harness_handover.h"
#include "executor/gpu/harness_words.h"
#include <stdlib.h>

// ---- zones ----

static int no_room(struct err *err)
{
    return err_set(err, ERR_LIMIT, "more tensors and scratch areas than can be guarded");
}

// Appends where outputs are kept.
static bool add_kept(const struct gpu_harness *harness, struct gpu_zones *zones)
{
    bool room = true;

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct guarded_buffer *kept = &harness->kept[t];

        room = room && (kept->bytes == 0 || gpu_zones_add(zones, kept->tensor, kept->bytes));
    }
    return room;
}

int gpu_harness_zones(const struct gpu_harness *harness, enum arm_index arm,
                      struct gpu_zones *zones, struct err *err)
{
    bool room = true;

    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        room = room && guarded_buffer_guards(&harness->live[t], zones);
    }
    room = room && program_zones(harness->arm[arm], true, zones);
    // Those that wait for the oracle are known by their digest.
    room = room && (arm == ARM_BASELINE || harness->kept_waits || add_kept(harness, zones));
    for (enum arm_index other = 0; other < ARM_COUNT; other++) {
        const struct program *program = harness->arm[other];
        bool shares = program && program->memory && program->memory == harness->arm[arm]->memory;

        if (other != arm && (harness->arms & 1u << other) != 0 && !shares) {
            room = room && program_zones(program, false, zones);
        }
    }
    return room ? 0 : no_room(err);
}

int gpu_harness_list_elsewhere(struct gpu_harness *harness, struct err *err)
{
    const struct gpu *gpu = harness->gpu;
    struct gpu_zones *zones = &harness->elsewhere;
    cu_pointer at = gpu->open.base;

    *zones = (struct gpu_zones){.count = 0};
    bool room = gpu_zones_add_gap(zones, &at, gpu->words, GPU_WORDS_BYTES);

    room = room && gpu_zones_add_gap(zones, &at, gpu->flush, gpu->flush_bytes);
    for (size_t t = 0; t < harness->problem->tensor_count; t++) { // in the order of their addresses
        room =
            room && gpu_zones_add_gap(zones, &at, harness->live[t].tensor, harness->live[t].bytes);
    }
    for (size_t t = 0; t < harness->problem->tensor_count; t++) {
        const struct guarded_buffer *kept = &harness->kept[t];

        room =
            room && (kept->bytes == 0 || gpu_zones_add_gap(zones, &at, kept->tensor, kept->bytes));
    }
    room = room && gpu_zones_add_gap(zones, &at, gpu->open.base + gpu->open.mapped, 0);
    for (enum arm_index arm = 0; arm < ARM_COUNT; arm++) {
        if ((harness->arms & 1u << arm) != 0 && arm != ARM_CONTROL) { // which has the baseline's
            room = room && program_gaps(harness->arm[arm], false, zones);
        }
    }
    return room ? 0 : no_room(err);
}

// ---- inspection ----

static int look(struct gpu_harness *harness, struct err *err)
{
    struct gpu *gpu = harness->gpu;
    cu_pointer flush = gpu->flush, differ = gpu_word(gpu, WORD_FLUSH);
    uint64_t words = gpu->flush_bytes / sizeof(uint64_t);
    int rc = gpu_clear_words(gpu, WORD_GUARD, WORD_COUNT - WORD_GUARD, err);

    if (rc != 0) {
        return rc;
    }
    rc = gpu_pattern_check(gpu, &harness->elsewhere, harness->pattern_key, WORD_GUARD, err);
    if (rc != 0) {
        return rc;
    }
    rc = harness->handover ? gpu_handover_check(harness, err) : 0;
    if (rc != 0) {
        return rc;
    }
    rc = gpu_run(gpu, GPU_ZERO_CHECK, words, (void *[]){&flush, &words, &differ}, err);
    if (rc != 0) {
        return rc;
    }
    rc = gpu_read_words(gpu, WORD_GUARD, WORD_COUNT - WORD_GUARD, err);
    return rc == 0 ? gpu_finish(gpu, "inspecting the GPU's memory", err) : rc;
}

int gpu_harness_inspect(struct gpu_harness *harness, struct err *err)
{
    const uint64_t *words = harness->gpu->host_words;

    if (harness->inspected) {
        return 0;
    }
    int rc = look(harness, err);
    if (rc != 0) {
        return rc;
    }
    harness->inspected = true;
    if (words[WORD_HANDOVER] != 0) { // which nobody else can write to
        return measurement_stop(harness->measurement, VERDICT_WRONG,
                                "it wrote outside its tensors");
    }
    if (words[WORD_GUARD] == 0 && words[WORD_FLUSH] == 0) {
        return 0;
    }
    if (!harness->candidate_here) { // on which content the baseline did so is not known
        return harness->placed
                   ? gpu_harness_wrote_outside(harness, harness->placed, ARM_BASELINE, 0, err)
                   : err_set(err, ERR_INVALID, "the baseline wrote outside its tensors");
    }
    harness->retire = true;
    return measurement_stop(harness->measurement, VERDICT_WRONG, "it wrote outside its tensors");
}

int gpu_harness_forget_kept(struct gpu_harness *harness, struct err *err)
{
    struct gpu_zones kept = {.count = 0};

    return add_kept(harness, &kept)
               ? gpu_pattern_fill(harness->gpu, &kept, harness->pattern_key, err)
               : no_room(err);
}

static bool has_recording(const struct gpu_harness *harness)
{
    bool found = false;

    for (enum arm_index arm = 0; arm < ARM_COUNT; arm++) {
        found = found || (harness->arm[arm] && harness->arm[arm]->memory);
    }
    return found;
}

// Appends what of `elsewhere` lies in these bytes of the open arena.
static bool add_part(const struct gpu_harness *harness, size_t from, size_t to,
                     struct gpu_zones *zones)
{
    cu_pointer low = harness->gpu->open.base + from, high = harness->gpu->open.base + to;
    bool room = true;

    for (uint64_t i = 0; i < harness->elsewhere.count; i++) {
        cu_pointer at = harness->elsewhere.at[i], end = at + harness->elsewhere.bytes[i];

        at = at > low ? at : low;
        end = end < high ? end : high;
        room = room && (at >= end || gpu_zones_add(zones, at, end - at));
    }
    return room;
}

// Queues filling all with the pattern of a new key, and clearing what flushes the cache.
static int fill_all(struct gpu_harness *harness, struct err *err)
{
    harness->pattern_key = stats_rng_u64(&harness->measurement->rng);
    int rc = gpu_pattern_fill(harness->gpu, &harness->elsewhere, harness->pattern_key, err);
    return rc == 0 ? gpu_flush(harness->gpu, err) : rc;
}

// Queues filling what has changed since the pattern was filled.
static int fill_changed(struct gpu_harness *harness, struct err *err)
{
    const struct gpu *gpu = harness->gpu;
    struct gpu_zones changed = {.count = 0};
    size_t end = harness->used > gpu->open.placed ? harness->used : gpu->open.placed;

    end = end < harness->patterned ? end : harness->patterned;
    return add_part(harness, gpu->open_mark, end, &changed) &&
                   add_part(harness, harness->patterned, gpu->open.mapped, &changed)
               ? gpu_pattern_fill(harness->gpu, &changed, harness->pattern_key, err)
               : no_room(err);
}

int gpu_harness_refill(struct gpu_harness *harness, struct err *err)
{
    const struct arena *open = &harness->gpu->open;

    harness->candidate_here = false;
    harness->inspected = true;
    harness->pair = 0;
    // The oracle's check of an output may have kept the device busy, but nothing of a candidate.
    int rc = harness->patterned == 0 || has_recording(harness) ? fill_all(harness, err)
                                                               : fill_changed(harness, err);
    rc = rc == 0 ? gpu_harness_forget_kept(harness, err) : rc;
    rc = rc == 0 && harness->handover ? gpu_handover_fill(harness, err) : rc;
    harness->patterned = open->mapped;
    harness->used = open->placed;
    return rc;
}
