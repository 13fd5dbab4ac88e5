// Design note. A process:
//
//   STARTING --ready frame--> READY --warm_retire, superseded, idle, stop--> LEAVING
//
// and in each of them it may be asked or not. Whatever it writes when it is not asked, or beyond
// its answer, ends it: what comes after cannot be told from the next answer. Its end is told to who
// asked, else it is logged; a process that is leaving and asked by nobody goes silently.
//
// A group other than "" has one idle process at most: a newer one (asked for as fresh) supersedes
// it. When a kind has more groups than it may, the one that was used longest ago leaves.
//
// A spare that does not become ready (no driver, no memory) is not started again at once but after
// one second, then two, four, …
#include "daemon/warm.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strbuf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define HEAD_LEN 4  // of a frame
#define START_MAX 8 // bytes; a process that starts has only its ready frame to say

// What processes have in common that may stand in for each other.
struct kind {
    char *mode;
    char *argument; // NULL: none
    struct cgroup_limits limits;
    uint64_t grace_ms;
    size_t wanted;     // spares
    size_t asked;      // processes that owe an answer
    unsigned failures; // processes in a row that ended before they were ready
    uint64_t retry_ns; // no spare is started before
    struct kind *next;
};

enum warm_state { WARM_STARTING, WARM_READY, WARM_LEAVING };

struct warm {
    struct warms *warms;
    struct kind *kind;
    struct child *child;
    enum warm_state state;
    char *group; // NULL: a spare
    bool asked;  // question counts
    struct warm_question question;
    struct bytes plan;    // until it is ready for it
    struct strbuf answer; // the frame so far
    uint64_t idle_ns;     // when it was given back
    struct warm *prev;    // list of all, the least recently used first
    struct warm *next;
};

struct warms {
    struct children *children;
    struct kind *kinds;
    struct warm *all; // list
    bool stopping;
};

struct warms *warms_create(struct children *children)
{
    struct warms *warms = xcalloc(1, sizeof(*warms));

    warms->children = children;
    return warms;
}

void warms_free(struct warms *warms)
{
    struct kind *kind;

    if (!warms) {
        return;
    }
    while ((kind = warms->kinds) != NULL) {
        warms->kinds = kind->next;
        free(kind->mode);
        free(kind->argument);
        free(kind);
    }
    free(warms);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct kind *kind_of(struct warms *warms, const struct warm_config *config)
{
    struct kind *kind = warms->kinds;

    while (kind &&
           !(same_text(kind->mode, config->mode) && same_text(kind->argument, config->argument))) {
        kind = kind->next;
    }
    if (!kind) {
        kind = xcalloc(1, sizeof(*kind));
        kind->mode = xstrdup(config->mode);
        kind->argument = config->argument ? xstrdup(config->argument) : NULL;
        kind->next = warms->kinds;
        warms->kinds = kind;
    }
    kind->limits = config->limits;
    kind->grace_ms = config->grace_ms;
    return kind;
}

static bool is_idle(const struct warm *warm)
{
    return !warm->asked && warm->state != WARM_LEAVING;
}

// Nobody's answer is lost by it.
static void leave(struct warm *warm)
{
    warm->state = WARM_LEAVING;
    child_close_input(warm->child);
    child_limit(warm->child, warm->kind->grace_ms > 0 ? warm->kind->grace_ms : 1, "did not end");
}

// --- what it writes

static void send_plan(struct warm *warm)
{
    size_t len = warm->plan.len;
    unsigned char head[HEAD_LEN] = {(unsigned char)len, (unsigned char)(len >> 8),
                                    (unsigned char)(len >> 16), (unsigned char)(len >> 24)};

    strbuf_release(&warm->answer);
    strbuf_init(&warm->answer, HEAD_LEN + warm->question.report_max);
    child_limit(warm->child, warm->question.deadline_ms, "did not answer within its deadline");
    child_write(warm->child, head, sizeof(head), &warm->plan, false);
}

static void take_ready(struct warm *warm, size_t frame_len)
{
    if (frame_len != 0 || warm->answer.len != HEAD_LEN) {
        child_kill(warm->child, "did not begin with an empty frame");
        return;
    }
    strbuf_reset(&warm->answer);
    warm->state = WARM_READY;
    warm->kind->failures = 0;
    child_limit(warm->child, 0, NULL);
    if (warm->asked) {
        send_plan(warm);
    }
}

static void take_answer(struct warm *warm, size_t frame_len)
{
    struct bytes report;
    char what[96];

    if (frame_len > warm->question.report_max) {
        (void)snprintf(what, sizeof(what), "printed more than the %zu bytes a report may have",
                       warm->question.report_max);
        child_kill(warm->child, what);
    } else if (warm->answer.truncated || warm->answer.len > HEAD_LEN + frame_len) {
        child_kill(warm->child, "went on after its report");
    } else if (warm->answer.len == HEAD_LEN + frame_len) {
        if (child_is_writing(warm->child)) {
            child_kill(warm->child, "answered before it had read its plan");
            return;
        }
        child_limit(warm->child, 0, NULL);
        report = strbuf_detach_bytes(&warm->answer);
        memmove(report.data, report.data + HEAD_LEN, frame_len);
        report.len = frame_len;
        warm->question.on_report(warm->question.owner, &report);
        bytes_clear(&report);
    }
}

static void on_output(void *owner, const char *data, size_t len)
{
    struct warm *warm = owner;
    const unsigned char *head;
    size_t frame_len;

    if (warm->state == WARM_LEAVING || child_is_ending(warm->child)) {
        return;
    }
    if (warm->state == WARM_READY && !warm->asked) {
        child_kill(warm->child, "wrote something that nobody had asked for");
        return;
    }
    strbuf_add(&warm->answer, data, len);
    if (warm->state == WARM_STARTING && warm->answer.truncated) {
        child_kill(warm->child, "did not begin with an empty frame");
    } else if (warm->answer.len >= HEAD_LEN) {
        head = (const unsigned char *)warm->answer.data;
        frame_len =
            (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        if (warm->state == WARM_STARTING) {
            take_ready(warm, frame_len);
        } else {
            take_answer(warm, frame_len);
        }
    }
}

// --- begin and end

static void refill(struct warms *warms, struct kind *kind);

static void start_failed(struct kind *kind)
{
    uint64_t pause_ns = NS_PER_S << (kind->failures < 16 ? kind->failures : 16);

    kind->failures++;
    kind->retry_ns =
        clock_now_ns(&clock_system) + (pause_ns < WARM_RETRY_MAX_NS ? pause_ns : WARM_RETRY_MAX_NS);
}

static void on_child_end(void *owner, const struct child_end *end)
{
    struct warm *warm = owner;
    struct warms *warms = warm->warms;
    struct kind *kind = warm->kind;
    struct warm_question question = warm->question;
    bool asked = warm->asked;
    bool silent = warm->state == WARM_LEAVING && !end->stuck;
    struct child_end told = *end;

    if (warm->state == WARM_STARTING && !warms->stopping) {
        start_failed(kind);
    }
    kind->asked -= asked;
    if (told.ok) {
        told.ok = false;
        (void)snprintf(told.reason, sizeof(told.reason), "kcast-exec %s ended without a report",
                       kind->mode);
    }
    DL_DELETE(warms->all, warm);
    bytes_clear(&warm->plan);
    strbuf_release(&warm->answer);
    free(warm->group);
    free(warm);
    if (asked) {
        question.on_end(question.owner, &told);
    } else if (!silent) {
        log_event(LOG_WARNING, "executor-lost mode=%s argument=%s reason=\"%s\"", kind->mode,
                  kind->argument ? kind->argument : "none", told.reason);
    }
    refill(warms, kind);
}

static int start(struct warm **ret, struct warms *warms, struct kind *kind, struct err *err)
{
    struct warm *warm = xcalloc(1, sizeof(*warm));
    struct child_config config = {
        .mode = kind->mode,
        .argument = kind->argument,
        .grace_ms = kind->grace_ms,
        .limits = kind->limits,
        .on_output = on_output,
        .on_end = on_child_end,
        .owner = warm,
    };
    int rc = child_start(&warm->child, warms->children, &config, err);

    if (rc != 0) {
        free(warm);
        return rc;
    }
    warm->warms = warms;
    warm->kind = kind;
    strbuf_init(&warm->answer, START_MAX);
    child_limit(warm->child, WARM_START_MS, "was not ready in time");
    DL_APPEND(warms->all, warm);
    *ret = warm;
    return 0;
}

static size_t spares_of(const struct warms *warms, const struct kind *kind)
{
    const struct warm *warm;
    size_t count = 0;

    DL_FOREACH (warms->all, warm) {
        count += warm->kind == kind && warm->state != WARM_LEAVING &&
                 (!warm->group || warm->group[0] == '\0');
    }
    return count;
}

static void refill(struct warms *warms, struct kind *kind)
{
    struct err err = ERR_INIT;
    struct warm *warm;

    if (warms->stopping || (kind->argument && kind->asked > 0) ||
        clock_now_ns(&clock_system) < kind->retry_ns) {
        return;
    }
    for (size_t have = spares_of(warms, kind); have < kind->wanted; have++) {
        if (start(&warm, warms, kind, &err) != 0) {
            start_failed(kind);
            log_event(LOG_WARNING, "executor-lost mode=%s reason=\"%s\"", kind->mode, err.text);
            return;
        }
    }
}

void warms_keep_spares(struct warms *warms, const struct warm_config *config, size_t count)
{
    struct kind *kind = kind_of(warms, config);

    kind->wanted = count;
    refill(warms, kind);
}

void warms_tick(struct warms *warms)
{
    uint64_t now_ns = clock_now_ns(&clock_system);
    struct kind *kind;
    struct warm *warm;

    DL_FOREACH (warms->all, warm) {
        if (is_idle(warm) && warm->group && warm->group[0] != '\0' &&
            now_ns - warm->idle_ns > WARM_IDLE_NS) {
            leave(warm);
        }
    }
    for (kind = warms->kinds; kind; kind = kind->next) {
        refill(warms, kind);
    }
}

void warms_stop(struct warms *warms)
{
    struct warm *warm;

    warms->stopping = true;
    DL_FOREACH (warms->all, warm) {
        if (!warm->asked) {
            warm->state = WARM_LEAVING;
            child_terminate(warm->child, "was stopped");
        }
    }
}

// --- one question

// One process per group, and no more groups than allowed.
static void make_room(struct warms *warms, const struct kind *kind, const char *group)
{
    struct warm *oldest = NULL;
    struct warm *warm;
    size_t others = 0;

    DL_FOREACH (warms->all, warm) {
        if (warm->kind != kind || !is_idle(warm) || !warm->group || warm->group[0] == '\0') {
            continue;
        }
        if (strcmp(warm->group, group) == 0) {
            leave(warm);
        } else {
            oldest = oldest ? oldest : warm;
            others++;
        }
    }
    if (others >= WARM_GROUPS_MAX) {
        leave(oldest);
    }
}

// The most recently used of the group; for NULL a spare, one that is ready if there is one.
static struct warm *find(const struct warms *warms, const struct kind *kind, const char *group)
{
    struct warm *found = NULL;
    struct warm *warm;

    DL_FOREACH (warms->all, warm) {
        if (warm->kind == kind && is_idle(warm) && !child_is_ending(warm->child) &&
            same_text(warm->group, group) && !(found && warm->state == WARM_STARTING)) {
            found = warm;
        }
    }
    return found;
}

int warms_take(struct warm **ret, struct warms *warms, const struct warm_config *config,
               struct err *err)
{
    struct kind *kind = kind_of(warms, config);
    struct warm *warm = config->fresh ? NULL : find(warms, kind, config->group);
    int rc = 0;

    if (!warm) {
        make_room(warms, kind, config->group);
        warm = find(warms, kind, NULL);
        if (!warm) {
            rc = start(&warm, warms, kind, err);
        }
        if (rc != 0) {
            return rc;
        }
        warm->group = xstrdup(config->group);
    }
    *ret = warm;
    return 0;
}

void warm_ask(struct warm *warm, const struct warm_question *question, struct bytes *plan_taken)
{
    warm->question = *question;
    warm->asked = true;
    warm->kind->asked++;
    warm->plan = *plan_taken;
    *plan_taken = (struct bytes){0};
    if (warm->state == WARM_READY) {
        send_plan(warm);
    }
}

static void forget_question(struct warm *warm)
{
    warm->asked = false;
    warm->kind->asked--;
}

void warm_give_back(struct warm *warm)
{
    struct warms *warms = warm->warms;

    forget_question(warm);
    warm->idle_ns = clock_now_ns(&clock_system);
    DL_DELETE(warms->all, warm);
    DL_APPEND(warms->all, warm);
    if (warms->stopping) {
        leave(warm);
    }
    refill(warms, warm->kind);
}

void warm_retire(struct warm *warm)
{
    leave(warm);
}

void warm_stop(struct warm *warm)
{
    child_terminate(warm->child, "was stopped");
}
