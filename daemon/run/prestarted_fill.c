// Which unused processes are kept, and when they are started.
//
// Design note. A missing unused process is started in three cases: none is left, so that whoever
// asks next would have to wait for a start; nothing has been asked of the device for
// STARTED_QUIET_NS; or it has been missing for PRESTARTED_STARVED_NS, because a device that is used
// well is never quiet, and a search that finds one incumbent after the other needs an unused
// process for each. Those on a device make a context of it: one at a time for each, and
// over the whole set until the first is ready, which the daemon's start waits for. One that takes
// longer than START_TURN_NS does not keep the others waiting.
//
// An unused process that does not become ready (no driver, no memory) is started again after one
// second, then two, four, and so on.
#include "common/log.h"
#include "daemon/run/prestarted_inside.h"
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define STARTED_QUIET_NS (50 * NS_PER_MS) // without a plan: the device is not between two of them
#define START_TURN_NS (10 * NS_PER_S)     // for which a starting process keeps others waiting

bool prestarted_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

struct prestarted_kind *prestarted_kind_of(struct prestarted_set *set,
                                           const struct prestarted_config *config)
{
    struct prestarted_kind **at = &set->kinds;

    while (*at && !(prestarted_same((*at)->mode, config->mode) &&
                    prestarted_same((*at)->argument, config->argument))) {
        at = &(*at)->next;
    }
    if (!*at) {
        *at = xcalloc(1, sizeof(**at));
        (*at)->mode = xstrdup(config->mode);
        (*at)->argument = config->argument ? xstrdup(config->argument) : NULL;
    }
    struct prestarted_kind *kind = *at;
    kind->on_device = config->on_device;
    kind->limits = config->limits;
    kind->grace_ms = config->grace_ms;
    return kind;
}

void prestarted_tell_first(const struct prestarted_set *set, struct prestarted_kind *kind,
                           const char *failure)
{
    prestarted_first *on_first = set->stopping ? NULL : kind->on_first;

    kind->on_first = NULL;
    if (on_first) {
        on_first(kind->owner, failure);
    }
}

bool prestarted_set_is_starting(const struct prestarted_set *set,
                                const struct prestarted_config *config)
{
    const struct prestarted *prestarted;
    bool starting = false;

    DL_FOREACH (set->all, prestarted) {
        const struct prestarted_kind *kind = prestarted->kind;

        if (prestarted->group || child_is_ending(prestarted->child) ||
            !prestarted_same(kind->mode, config->mode) ||
            !prestarted_same(kind->argument, config->argument)) {
            continue;
        }
        if (prestarted->state == PRESTARTED_READY) {
            return false;
        }
        starting |= prestarted->state == PRESTARTED_STARTING;
    }
    return starting;
}

void prestarted_set_watch(struct prestarted_set *set, void (*on_started)(void *owner), void *owner)
{
    set->on_started = on_started;
    set->owner = owner;
}

void prestarted_tell_started(const struct prestarted_set *set)
{
    if (set->on_started && !set->stopping) {
        set->on_started(set->owner);
    }
}

void prestarted_start_failed(const struct prestarted_set *set, struct prestarted_kind *kind)
{
    uint64_t pause_ns = NS_PER_S << (kind->failures < 16 ? kind->failures : 16);

    kind->failures++;
    kind->retry_ns = clock_now_ns(set->clock) +
                     (pause_ns < PRESTARTED_RETRY_MAX_NS ? pause_ns : PRESTARTED_RETRY_MAX_NS);
}

void prestarted_count_answered(const struct prestarted_set *set, struct prestarted_kind *kind)
{
    kind->asked--;
    kind->quiet_ns = clock_now_ns(set->clock);
}

static size_t unused_of(const struct prestarted_set *set, const struct prestarted_kind *kind)
{
    const struct prestarted *prestarted;
    size_t count = 0;

    DL_FOREACH (set->all, prestarted) {
        count += prestarted->kind == kind && prestarted->state != PRESTARTED_LEAVING &&
                 (!prestarted->group || prestarted->group[0] == '\0');
    }
    return count;
}

// Whether an unused process is missing that may be started now.
static bool is_due(const struct prestarted_set *set, struct prestarted_kind *kind)
{
    uint64_t now_ns = clock_now_ns(set->clock);
    size_t unused = unused_of(set, kind);

    if (unused >= kind->wanted) {
        kind->missing_ns = 0;
        return false;
    }
    kind->missing_ns = kind->missing_ns != 0 ? kind->missing_ns : now_ns;
    if (now_ns < kind->retry_ns) {
        return false;
    }
    return !kind->on_device || unused == 0 ||
           (kind->asked == 0 && now_ns - kind->quiet_ns >= STARTED_QUIET_NS) ||
           now_ns - kind->missing_ns >= PRESTARTED_STARVED_NS;
}

static void start_unused(struct prestarted_set *set, struct prestarted_kind *kind)
{
    struct err err = ERR_INIT;
    struct prestarted *prestarted;

    if (prestarted_start(&prestarted, set, kind, &err) != 0) {
        prestarted_start_failed(set, kind);
        log_event(LOG_WARNING, "executor-lost mode=%s reason=\"%s\"", kind->mode, err.text);
        prestarted_tell_first(set, kind, err.text);
    }
}

static bool is_making_context(const struct prestarted_set *set, const struct prestarted *prestarted)
{
    return prestarted->kind->on_device && prestarted->state == PRESTARTED_STARTING &&
           clock_now_ns(set->clock) - prestarted->started_ns < START_TURN_NS;
}

// Whether a process of this kind, which makes a context, has to wait until another has made one.
static bool has_to_wait(const struct prestarted_set *set, const struct prestarted_kind *kind)
{
    const struct prestarted *prestarted;
    bool own = false, any = false, ready = false;

    DL_FOREACH (set->all, prestarted) {
        bool making = is_making_context(set, prestarted);

        own = own || (making && prestarted->kind == kind);
        any = any || making;
        ready = ready || (prestarted->kind->on_device && prestarted->state != PRESTARTED_STARTING);
    }
    return own || (any && !ready);
}

void prestarted_refill(struct prestarted_set *set)
{
    for (struct prestarted_kind *kind = set->kinds; kind; kind = kind->next) {
        while (!set->stopping && is_due(set, kind) &&
               !(kind->on_device && has_to_wait(set, kind))) {
            start_unused(set, kind);
        }
    }
}

void prestarted_set_fill(struct prestarted_set *set, const struct prestarted_config *config,
                         size_t count, prestarted_first *on_first, void *owner)
{
    struct prestarted_kind *kind = prestarted_kind_of(set, config);

    kind->wanted = count;
    kind->on_first = on_first;
    kind->owner = owner;
    prestarted_refill(set);
}
