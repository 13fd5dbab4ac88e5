// Design note. A process goes through these states:
//
//   STARTING --ready frame--> READY --prestarted_retire, superseded, idle, stop--> LEAVING
//
// In each of them it may owe an answer (`asked`). When it writes although it owes none, or more
// than its answer, it is ended, because what comes after could not be told from the next answer.
// Its end is told to the one who asked, or logged if nobody did. The end of a process that is
// leaving and owes no answer is neither told nor logged.
//
// A group other than "" has at most one idle process: a newer one, asked for as fresh, supersedes
// it. When a mode and argument have more groups than allowed, the process of the least recently
// used group leaves.
#include "common/log.h"
#include "daemon/run/prestarted_inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define HEAD_LEN 4  // bytes of a frame's length
#define START_MAX 8 // bytes; a starting process writes nothing but its ready frame

struct prestarted_set *prestarted_set_create(struct children *children, const struct clock *clock)
{
    struct prestarted_set *set = xcalloc(1, sizeof(*set));

    set->children = children;
    set->clock = clock;
    return set;
}

void prestarted_set_free(struct prestarted_set *set)
{
    if (!set) {
        return;
    }
    struct prestarted_kind *kind;
    while ((kind = set->kinds)) {
        set->kinds = kind->next;
        free(kind->mode);
        free(kind->argument);
        free(kind);
    }
    free(set);
}

static bool is_idle(const struct prestarted *prestarted)
{
    return !prestarted->asked && prestarted->state != PRESTARTED_LEAVING;
}

// Lets a process end that owes no answer: its stdin is closed, and it is terminated after the grace
// period.
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
    if (prestarted->question.on_plan) {
        prestarted->question.on_plan(prestarted->question.owner);
    }
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
    prestarted_tell_first(prestarted->set, prestarted->kind, NULL);
    prestarted_refill(prestarted->set);
    prestarted_tell_started(prestarted->set);
}

static void take_answer(struct prestarted *prestarted, size_t frame_len)
{
    struct bytes outcome;
    char what[96];

    if (frame_len > prestarted->question.outcome_max) {
        (void)snprintf(what, sizeof(what), "printed more than the %zu bytes an outcome may have",
                       prestarted->question.outcome_max);
        child_kill(prestarted->child, what);
    } else if (prestarted->answer.truncated || prestarted->answer.len > HEAD_LEN + frame_len) {
        child_kill(prestarted->child, "went on after its outcome");
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
        child_kill(prestarted->child, "went on after its outcome");
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

// --- start and end

static void on_child_end(void *owner, const struct child_end *end)
{
    struct prestarted *prestarted = owner;
    struct prestarted_set *set = prestarted->set;
    struct prestarted_kind *kind = prestarted->kind;
    struct prestarted_question question = prestarted->question;
    bool asked = prestarted->asked;
    bool silent = prestarted->state == PRESTARTED_LEAVING && !end->stuck;
    bool started = prestarted->state != PRESTARTED_STARTING;
    struct child_end told = *end;

    if (!started && !set->stopping) {
        prestarted_start_failed(set, kind);
    }
    if (asked) {
        prestarted_count_answered(set, kind);
    }
    if (told.ok) {
        told.ok = false;
        (void)snprintf(told.reason, sizeof(told.reason), "kcast-exec %s ended without an outcome",
                       kind->mode);
    }
    DL_DELETE(set->all, prestarted);
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
    if (!started) {
        prestarted_tell_first(set, kind, told.reason);
    }
    prestarted_refill(set);
    if (!started) {
        prestarted_tell_started(set);
    }
}

int prestarted_start(struct prestarted **ret, struct prestarted_set *set,
                     struct prestarted_kind *kind, struct err *err)
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
    int rc = child_start(&prestarted->child, set->children, &config, err);

    if (rc != 0) {
        free(prestarted);
        return rc;
    }
    prestarted->set = set;
    prestarted->kind = kind;
    prestarted->started_ns = clock_now_ns(set->clock);
    strbuf_init(&prestarted->answer, START_MAX);
    child_limit(prestarted->child, PRESTARTED_START_MS, "was not ready in time");
    DL_APPEND(set->all, prestarted);
    *ret = prestarted;
    return 0;
}

void prestarted_set_tick(struct prestarted_set *set)
{
    uint64_t now_ns = clock_now_ns(set->clock);
    struct prestarted *prestarted;

    DL_FOREACH (set->all, prestarted) {
        if (is_idle(prestarted) && prestarted->group && prestarted->group[0] != '\0' &&
            now_ns - prestarted->idle_ns > PRESTARTED_IDLE_NS) {
            leave(prestarted);
        }
    }
    prestarted_refill(set);
}

void prestarted_set_stop(struct prestarted_set *set)
{
    struct prestarted *prestarted;

    set->stopping = true;
    DL_FOREACH (set->all, prestarted) {
        if (!prestarted->asked) {
            prestarted->state = PRESTARTED_LEAVING;
            child_terminate(prestarted->child, "was stopped");
        }
    }
}

// --- one question

// Ends the idle process of this group, and that of the least recently used group when there are too
// many.
static void make_room(struct prestarted_set *set, const struct prestarted_kind *kind,
                      const char *group)
{
    struct prestarted *oldest = NULL;
    struct prestarted *prestarted;
    size_t others = 0;

    DL_FOREACH (set->all, prestarted) {
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

// Returns the most recently used idle process of the group. For group NULL it is an unused process,
// if possible one that is ready. NULL when there is none.
static struct prestarted *find(const struct prestarted_set *set, const struct prestarted_kind *kind,
                               const char *group)
{
    struct prestarted *found = NULL;
    struct prestarted *prestarted;

    DL_FOREACH (set->all, prestarted) {
        if (prestarted->kind == kind && is_idle(prestarted) &&
            !child_is_ending(prestarted->child) && prestarted_same(prestarted->group, group) &&
            !(found && prestarted->state == PRESTARTED_STARTING)) {
            found = prestarted;
        }
    }
    return found;
}

int prestarted_set_take(struct prestarted **ret, struct prestarted_set *set,
                        const struct prestarted_config *config, struct err *err)
{
    struct prestarted_kind *kind = prestarted_kind_of(set, config);
    struct prestarted *prestarted = config->fresh ? NULL : find(set, kind, config->group);
    int rc = 0;

    if (!prestarted) {
        make_room(set, kind, config->group);
        prestarted = find(set, kind, NULL);
        if (!prestarted) {
            rc = prestarted_start(&prestarted, set, kind, err);
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
    prestarted_count_answered(prestarted->set, prestarted->kind);
}

void prestarted_give_back(struct prestarted *prestarted)
{
    struct prestarted_set *set = prestarted->set;

    forget_question(prestarted);
    prestarted->idle_ns = clock_now_ns(set->clock);
    DL_DELETE(set->all, prestarted);
    DL_APPEND(set->all, prestarted);
    if (set->stopping) {
        leave(prestarted);
    }
}

void prestarted_retire(struct prestarted *prestarted)
{
    leave(prestarted);
}

void prestarted_stop(struct prestarted *prestarted)
{
    child_terminate(prestarted->child, "was stopped");
}
