// Design note. A process:
//
//   STARTING --ready frame--> READY --prestarted_retire, superseded, idle, stop--> LEAVING
//
// and in each of them it may be asked or not. Whatever it writes when it is not asked, or beyond
// its answer, ends it: what comes after cannot be told from the next answer. Its end is told to who
// asked, else it is logged; a process that is leaving and asked by nobody goes silently.
//
// A group other than "" has one idle process at most: a newer one (asked for as fresh) supersedes
// it. When a kind has more groups than it may, the one that was used longest ago leaves.
//
// A unused process that does not become ready (no driver, no memory) is not started again at once but after
// one second, then two, four, …
#include "daemon/run/prestarted.h"
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
    size_t wanted;     // unused processes
    size_t asked;      // processes that owe an answer
    unsigned failures; // processes in a row that ended before they were ready
    uint64_t retry_ns; // no unused process is started before
    struct kind *next;
};

enum prestarted_state { PRESTARTED_STARTING, PRESTARTED_READY, PRESTARTED_LEAVING };

struct prestarted {
    struct prestarted_set *prestarted_set;
    struct kind *kind;
    struct child *child;
    enum prestarted_state state;
    char *group;   // NULL: a unused process
    bool asked;    // question counts
    bool answered; // asked, and the answer has been given
    struct prestarted_question question;
    struct bytes plan;       // until it is ready for it
    struct strbuf answer;    // the frame so far
    uint64_t idle_ns;        // when it was given back
    struct prestarted *prev; // list of all, the least recently used first
    struct prestarted *next;
};

struct prestarted_set {
    struct children *children;
    struct kind *kinds;
    struct prestarted *all; // list
    bool stopping;
};

struct prestarted_set *prestarted_set_create(struct children *children)
{
    struct prestarted_set *prestarted_set = xcalloc(1, sizeof(*prestarted_set));

    prestarted_set->children = children;
    return prestarted_set;
}

void prestarted_set_free(struct prestarted_set *prestarted_set)
{
    if (!prestarted_set) {
        return;
    }
    struct kind *kind;
    while ((kind = prestarted_set->kinds)) {
        prestarted_set->kinds = kind->next;
        free(kind->mode);
        free(kind->argument);
        free(kind);
    }
    free(prestarted_set);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct kind *kind_of(struct prestarted_set *prestarted_set,
                            const struct prestarted_config *config)
{
    struct kind *kind = prestarted_set->kinds;

    while (kind &&
           !(same_text(kind->mode, config->mode) && same_text(kind->argument, config->argument))) {
        kind = kind->next;
    }
    if (!kind) {
        kind = xcalloc(1, sizeof(*kind));
        kind->mode = xstrdup(config->mode);
        kind->argument = config->argument ? xstrdup(config->argument) : NULL;
        kind->next = prestarted_set->kinds;
        prestarted_set->kinds = kind;
    }
    kind->limits = config->limits;
    kind->grace_ms = config->grace_ms;
    return kind;
}

static bool is_idle(const struct prestarted *prestarted)
{
    return !prestarted->asked && prestarted->state != PRESTARTED_LEAVING;
}

// Nobody's answer is lost by it.
static void leave(struct prestarted *prestarted)
{
    prestarted->state = PRESTARTED_LEAVING;
    child_close_input(prestarted->child);
    child_limit(prestarted->child, prestarted->kind->grace_ms > 0 ? prestarted->kind->grace_ms : 1,
                "did not end");
}

// --- what it writes

static void send_plan(struct prestarted *prestarted)
{
    size_t len = prestarted->plan.len;
    unsigned char head[HEAD_LEN] = {(unsigned char)len, (unsigned char)(len >> 8),
                                    (unsigned char)(len >> 16), (unsigned char)(len >> 24)};

    strbuf_release(&prestarted->answer);
    strbuf_init(&prestarted->answer, HEAD_LEN + prestarted->question.outcome_max);
    child_limit(prestarted->child, prestarted->question.deadline_ms,
                "did not answer within its deadline");
    child_write(prestarted->child, head, sizeof(head), &prestarted->plan, false);
}

static void take_ready(struct prestarted *prestarted, size_t frame_len)
{
    if (frame_len != 0 || prestarted->answer.len != HEAD_LEN) {
        child_kill(prestarted->child, "did not begin with an empty frame");
        return;
    }
    strbuf_reset(&prestarted->answer);
    prestarted->state = PRESTARTED_READY;
    prestarted->kind->failures = 0;
    child_limit(prestarted->child, 0, NULL);
    if (prestarted->asked) {
        send_plan(prestarted);
    }
}

static void take_answer(struct prestarted *prestarted, size_t frame_len)
{
    struct bytes outcome;
    char what[96];

    if (frame_len > prestarted->question.outcome_max) {
        (void)snprintf(what, sizeof(what), "printed more than the %zu bytes a report may have",
                       prestarted->question.outcome_max);
        child_kill(prestarted->child, what);
    } else if (prestarted->answer.truncated || prestarted->answer.len > HEAD_LEN + frame_len) {
        child_kill(prestarted->child, "went on after its report");
    } else if (prestarted->answer.len == HEAD_LEN + frame_len) {
        if (child_is_writing(prestarted->child)) {
            child_kill(prestarted->child, "answered before it had read its plan");
            return;
        }
        child_limit(prestarted->child, 0, NULL);
        prestarted->answered = true;
        outcome = strbuf_detach_bytes(&prestarted->answer);
        memmove(outcome.data, outcome.data + HEAD_LEN, frame_len);
        outcome.len = frame_len;
        prestarted->question.on_outcome(prestarted->question.owner, &outcome);
        bytes_clear(&outcome);
    }
}

static void on_output(void *owner, const char *data, size_t len)
{
    struct prestarted *prestarted = owner;

    if (prestarted->state == PRESTARTED_LEAVING || child_is_ending(prestarted->child)) {
        return;
    }
    if (prestarted->state == PRESTARTED_READY && !prestarted->asked) {
        child_kill(prestarted->child, "wrote something that nobody had asked for");
        return;
    }
    if (prestarted->answered) {
        child_kill(prestarted->child, "went on after its report");
        return;
    }
    strbuf_add(&prestarted->answer, data, len);
    const unsigned char *head;
    size_t frame_len;
    if (prestarted->state == PRESTARTED_STARTING && prestarted->answer.truncated) {
        child_kill(prestarted->child, "did not begin with an empty frame");
    } else if (prestarted->answer.len >= HEAD_LEN) {
        head = (const unsigned char *)prestarted->answer.data;
        frame_len =
            (size_t)head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
        if (prestarted->state == PRESTARTED_STARTING) {
            take_ready(prestarted, frame_len);
        } else {
            take_answer(prestarted, frame_len);
        }
    }
}

// --- begin and end

static void refill(struct prestarted_set *prestarted_set, struct kind *kind);

static void start_failed(struct kind *kind)
{
    uint64_t pause_ns = NS_PER_S << (kind->failures < 16 ? kind->failures : 16);

    kind->failures++;
    kind->retry_ns = clock_now_ns(&clock_system) +
                     (pause_ns < PRESTARTED_RETRY_MAX_NS ? pause_ns : PRESTARTED_RETRY_MAX_NS);
}

static void on_child_end(void *owner, const struct child_end *end)
{
    struct prestarted *prestarted = owner;
    struct prestarted_set *prestarted_set = prestarted->prestarted_set;
    struct kind *kind = prestarted->kind;
    struct prestarted_question question = prestarted->question;
    bool asked = prestarted->asked;
    bool silent = prestarted->state == PRESTARTED_LEAVING && !end->stuck;
    struct child_end told = *end;

    if (prestarted->state == PRESTARTED_STARTING && !prestarted_set->stopping) {
        start_failed(kind);
    }
    kind->asked -= asked;
    if (told.ok) {
        told.ok = false;
        (void)snprintf(told.reason, sizeof(told.reason), "kcast-exec %s ended without a report",
                       kind->mode);
    }
    DL_DELETE(prestarted_set->all, prestarted);
    bytes_clear(&prestarted->plan);
    strbuf_release(&prestarted->answer);
    free(prestarted->group);
    free(prestarted);
    if (asked) {
        question.on_end(question.owner, &told);
    } else if (!silent) {
        log_event(LOG_WARNING, "executor-lost mode=%s argument=%s reason=\"%s\"", kind->mode,
                  kind->argument ? kind->argument : "none", told.reason);
    }
    refill(prestarted_set, kind);
}

static int start(struct prestarted **ret, struct prestarted_set *prestarted_set, struct kind *kind,
                 struct err *err)
{
    struct prestarted *prestarted = xcalloc(1, sizeof(*prestarted));
    struct child_config config = {
        .mode = kind->mode,
        .argument = kind->argument,
        .grace_ms = kind->grace_ms,
        .limits = kind->limits,
        .on_output = on_output,
        .on_end = on_child_end,
        .owner = prestarted,
    };
    int rc = child_start(&prestarted->child, prestarted_set->children, &config, err);

    if (rc != 0) {
        free(prestarted);
        return rc;
    }
    prestarted->prestarted_set = prestarted_set;
    prestarted->kind = kind;
    strbuf_init(&prestarted->answer, START_MAX);
    child_limit(prestarted->child, PRESTARTED_START_MS, "was not ready in time");
    DL_APPEND(prestarted_set->all, prestarted);
    *ret = prestarted;
    return 0;
}

static size_t unused_of(const struct prestarted_set *prestarted_set, const struct kind *kind)
{
    const struct prestarted *prestarted;
    size_t count = 0;

    DL_FOREACH (prestarted_set->all, prestarted) {
        count += prestarted->kind == kind && prestarted->state != PRESTARTED_LEAVING &&
                 (!prestarted->group || prestarted->group[0] == '\0');
    }
    return count;
}

static void refill(struct prestarted_set *prestarted_set, struct kind *kind)
{
    if (prestarted_set->stopping || (kind->argument && kind->asked > 0) ||
        clock_now_ns(&clock_system) < kind->retry_ns) {
        return;
    }
    struct err err = ERR_INIT;
    struct prestarted *prestarted;
    for (size_t have = unused_of(prestarted_set, kind); have < kind->wanted; have++) {
        if (start(&prestarted, prestarted_set, kind, &err) != 0) {
            start_failed(kind);
            log_event(LOG_WARNING, "executor-lost mode=%s reason=\"%s\"", kind->mode, err.text);
            return;
        }
    }
}

void prestarted_set_fill(struct prestarted_set *prestarted_set,
                         const struct prestarted_config *config, size_t count)
{
    struct kind *kind = kind_of(prestarted_set, config);

    kind->wanted = count;
    refill(prestarted_set, kind);
}

void prestarted_set_tick(struct prestarted_set *prestarted_set)
{
    uint64_t now_ns = clock_now_ns(&clock_system);
    struct kind *kind;
    struct prestarted *prestarted;

    DL_FOREACH (prestarted_set->all, prestarted) {
        if (is_idle(prestarted) && prestarted->group && prestarted->group[0] != '\0' &&
            now_ns - prestarted->idle_ns > PRESTARTED_IDLE_NS) {
            leave(prestarted);
        }
    }
    for (kind = prestarted_set->kinds; kind; kind = kind->next) {
        refill(prestarted_set, kind);
    }
}

void prestarted_set_stop(struct prestarted_set *prestarted_set)
{
    struct prestarted *prestarted;

    prestarted_set->stopping = true;
    DL_FOREACH (prestarted_set->all, prestarted) {
        if (!prestarted->asked) {
            prestarted->state = PRESTARTED_LEAVING;
            child_terminate(prestarted->child, "was stopped");
        }
    }
}

// --- one question

// One process per group, and no more groups than allowed.
static void make_room(struct prestarted_set *prestarted_set, const struct kind *kind,
                      const char *group)
{
    struct prestarted *oldest = NULL;
    struct prestarted *prestarted;
    size_t others = 0;

    DL_FOREACH (prestarted_set->all, prestarted) {
        if (prestarted->kind != kind || !is_idle(prestarted) || !prestarted->group ||
            prestarted->group[0] == '\0') {
            continue;
        }
        if (strcmp(prestarted->group, group) == 0) {
            leave(prestarted);
        } else {
            oldest = oldest ? oldest : prestarted;
            others++;
        }
    }
    if (others >= PRESTARTED_GROUPS_MAX) {
        leave(oldest);
    }
}

// The most recently used of the group; for NULL a unused process, one that is ready if there is one.
static struct prestarted *find(const struct prestarted_set *prestarted_set, const struct kind *kind,
                               const char *group)
{
    struct prestarted *found = NULL;
    struct prestarted *prestarted;

    DL_FOREACH (prestarted_set->all, prestarted) {
        if (prestarted->kind == kind && is_idle(prestarted) &&
            !child_is_ending(prestarted->child) && same_text(prestarted->group, group) &&
            !(found && prestarted->state == PRESTARTED_STARTING)) {
            found = prestarted;
        }
    }
    return found;
}

int prestarted_set_take(struct prestarted **ret, struct prestarted_set *prestarted_set,
                        const struct prestarted_config *config, struct err *err)
{
    struct kind *kind = kind_of(prestarted_set, config);
    struct prestarted *prestarted =
        config->fresh ? NULL : find(prestarted_set, kind, config->group);
    int rc = 0;

    if (!prestarted) {
        make_room(prestarted_set, kind, config->group);
        prestarted = find(prestarted_set, kind, NULL);
        if (!prestarted) {
            rc = start(&prestarted, prestarted_set, kind, err);
        }
        if (rc != 0) {
            return rc;
        }
        prestarted->group = xstrdup(config->group);
    }
    *ret = prestarted;
    return 0;
}

void prestarted_ask(struct prestarted *prestarted, const struct prestarted_question *question,
                    struct bytes *plan_taken)
{
    prestarted->question = *question;
    prestarted->asked = true;
    prestarted->kind->asked++;
    prestarted->plan = *plan_taken;
    *plan_taken = (struct bytes){0};
    if (prestarted->state == PRESTARTED_READY) {
        send_plan(prestarted);
    }
}

static void forget_question(struct prestarted *prestarted)
{
    prestarted->asked = false;
    prestarted->answered = false;
    prestarted->kind->asked--;
}

void prestarted_give_back(struct prestarted *prestarted)
{
    struct prestarted_set *prestarted_set = prestarted->prestarted_set;

    forget_question(prestarted);
    prestarted->idle_ns = clock_now_ns(&clock_system);
    DL_DELETE(prestarted_set->all, prestarted);
    DL_APPEND(prestarted_set->all, prestarted);
    if (prestarted_set->stopping) {
        leave(prestarted);
    }
    refill(prestarted_set, prestarted->kind);
}

void prestarted_retire(struct prestarted *prestarted)
{
    leave(prestarted);
}

void prestarted_stop(struct prestarted *prestarted)
{
    child_terminate(prestarted->child, "was stopped");
}
