// Design note. The jobs stay in the queue, so shares, budgets and classes hold as they would
// without this. Twice as many jobs are kept as are looked for: a job that was expected and
// overtaken is likely to go soon. The one that was expected longest ago makes room.
//
// Looking for n jobs takes n times as long as taking one, so it is not done anew for every job that
// begins, but when a quarter of them have gone; only the very next one is compared each time.
#include "daemon/jobs/lookahead.h"
#include <string.h>

// Returns the job's place, `count` when it is not there.
static size_t place_of(const struct lookahead *lookahead, const struct job *job)
{
    size_t i = 0;

    while (i < lookahead->count && lookahead->job[i] != job) {
        i++;
    }
    return i;
}

static void take_out(struct lookahead *lookahead, size_t place)
{
    lookahead->count--;
    memmove(&lookahead->job[place], &lookahead->job[place + 1],
            (lookahead->count - place) * sizeof(struct job *));
}

void lookahead_remove(struct lookahead *lookahead, const struct job *job)
{
    size_t place = place_of(lookahead, job);

    if (place < lookahead->count) {
        take_out(lookahead, place);
    }
}

// The job goes next. It becomes the one that was told last.
static void expect(struct lookahead *lookahead, struct job *job, size_t kept,
                   const struct lookahead_events *events)
{
    size_t place = place_of(lookahead, job);
    bool is_new = place == lookahead->count;

    if (!is_new) {
        take_out(lookahead, place);
    }
    while (lookahead->count >= kept) {
        struct job *oldest = lookahead->job[0];

        take_out(lookahead, 0);
        events->behind(events->owner, oldest);
    }
    lookahead->job[lookahead->count++] = job;
    if (is_new) {
        events->ahead(events->owner, job);
    }
}

static bool is_enough(const struct lookahead *lookahead, struct queue_entry *next, size_t wanted)
{
    return place_of(lookahead, job_of_entry(next)) < lookahead->count &&
           (lookahead->count >= wanted - wanted / 4 ||
            lookahead->count >= queue_count(lookahead->device_class->queue));
}

void lookahead_fill(struct lookahead *lookahead, const struct fair_terms *terms, double now_s,
                    const struct lookahead_events *events)
{
    struct queue *queue = lookahead->device_class->queue;
    struct queue_entry *entry[LOOKAHEAD_MAX];
    struct fair_terms any = *terms;
    size_t each = LOOKAHEAD_EACH * (size_t)terms->devices;
    size_t wanted = each < LOOKAHEAD_MAX ? each : LOOKAHEAD_MAX;

    any.sole = 0; // the device that is free next is not known
    any.fresh_waits = false;
    if (wanted == 0 || queue_preview(queue, &any, now_s, entry, 1) == 0 ||
        is_enough(lookahead, entry[0], wanted)) {
        return;
    }
    size_t count = queue_preview(queue, &any, now_s, entry, wanted);
    for (size_t i = 0; i < count; i++) {
        expect(lookahead, job_of_entry(entry[i]), 2 * wanted, events);
    }
}
