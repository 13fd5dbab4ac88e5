// Design note. A setup is read when somebody first waits for it: the blob is loaded on a thread of
// libuv and parsed on the loop thread. That ends in one of four ways:
//
//   read      name is set, and it stays so
//   defect    the blob is no valid problem, and it stays so
//   lost      the blob is missing: told to those who wait and forgotten; the next one tries again
//   held      the host has no descriptor left: those who wait go on waiting, and it is read again
//             when the executors may start again (setups_tick); not while the daemon stops
//
// With the problem its reference and baseline are loaded, if it has them, to see which of them are
// Python. They are compiled by the preparation that needs them first. It tells the setup what came
// of it: an object, or a refusal. Where there are hidden cases, a reference in Python is recorded
// by each preparation.
//
// Setups without users stay for a while, because a client that sends its jobs one after another
// would otherwise have its problem read for each.
#include "daemon/run/setup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/candidate_form.h"
#include "problem/problem.h"
#include "proto/verdict.h"
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define IDLE_MAX 64 // setups without users that are kept

enum { BLOB_PROBLEM, BLOB_REFERENCE, BLOB_BASELINE, BLOB_COUNT }; // that are read

struct setups {
    const struct daemon_parts *parts;
    struct setup *by_identity;
    struct setup *idle; // list of those without users, oldest first
    size_t idle_count;
    bool held;     // some problems are to be read again by setups_tick
    bool stopping; // nothing is held any more
};

struct setups *setups_create(const struct daemon_parts *parts)
{
    struct setups *setups = xcalloc(1, sizeof(*setups));

    setups->parts = parts;
    return setups;
}

static void setup_free(struct setup *setup)
{
    HASH_DEL(setup->table->by_identity, setup);
    free(setup->class_name);
    free(setup->no_class);
    free(setup->name);
    free(setup->header);
    free(setup->glue);
    free(setup->reference_header);
    free(setup->reference_glue);
    free(setup->reference.refusal);
    free(setup->baseline.refusal);
    free(setup->defect);
    free(setup);
}

static void leave_idle(struct setup *setup)
{
    DL_DELETE2(setup->table->idle, setup, idle_prev, idle_next);
    setup->table->idle_count--;
}

void setups_free(struct setups *setups)
{
    if (!setups) {
        return;
    }
    struct setup *setup;
    struct setup *next;
    HASH_ITER (hh, setups->by_identity, setup, next) {
        setup_free(setup);
    }
    free(setups);
}

void setups_visit_blobs(const struct setups *setups,
                        void (*visit)(void *owner, const struct digest *digest), void *owner)
{
    const struct setup *setup;
    const struct setup *next;

    HASH_ITER (hh, setups->by_identity, setup, next) {
        visit(owner, &setup->problem);
        visit(owner, &setup->reference.source);
        visit(owner, &setup->reference.object);
        visit(owner, &setup->baseline.source);
        visit(owner, &setup->baseline.object);
    }
}

struct setup *setup_acquire(struct setups *setups, const struct digest *problem,
                            const struct digest *reference, const struct digest *baseline,
                            const char *class_name)
{
    struct digest_state *state = digest_begin();

    digest_add(state, problem->byte, DIGEST_LEN);
    digest_add(state, reference->byte, DIGEST_LEN);
    digest_add(state, baseline->byte, DIGEST_LEN);
    digest_add_text(state, class_name ? class_name : "");
    struct digest identity = digest_end(state);
    struct setup *setup;
    HASH_FIND(hh, setups->by_identity, &identity, sizeof(identity), setup);
    if (setup) {
        if (setup->users++ == 0) {
            leave_idle(setup);
        }
        return setup;
    }
    setup = xcalloc(1, sizeof(*setup));
    setup->table = setups;
    setup->identity = identity;
    setup->problem = *problem;
    setup->class_name = class_name ? xstrdup(class_name) : NULL;
    setup->reference.source = *reference;
    setup->baseline.source = *baseline;
    setup->users = 1;
    HASH_ADD(hh, setups->by_identity, identity, sizeof(identity), setup);
    return setup;
}

void setup_release(struct setup *setup)
{
    if (!setup || --setup->users > 0) {
        return;
    }
    struct setups *setups = setup->table;
    DL_APPEND2(setups->idle, setup, idle_prev, idle_next);
    setups->idle_count++;
    while (setups->idle_count > IDLE_MAX) {
        struct setup *oldest = setups->idle;

        leave_idle(oldest);
        setup_free(oldest);
    }
}

static bool is_read(const struct setup *setup)
{
    return setup->name || setup->defect;
}

// Tells those who wait that the problem has been read, or why not this time. Their callbacks may
// cancel other waits.
static void wake(struct setup *setup, enum job_cause cause, const char *lost)
{
    setup->users++; // a callback may release it
    struct setup_wait *wait;
    while ((wait = setup->waits)) {
        DL_DELETE(setup->waits, wait);
        wait->setup = NULL;
        wait->cause = cause;
        wait->on_done(wait, lost);
    }
    setup_release(setup);
}

static void take_texts(struct setup *setup, const struct problem *problem)
{
    struct strbuf text = STRBUF_INIT;

    problem_header(problem, false, &text);
    setup->header = strbuf_detach(&text);
    problem_glue(problem, false, &text);
    setup->glue = strbuf_detach(&text);
    problem_header(problem, true, &text);
    setup->reference_header = strbuf_detach(&text);
    problem_glue(problem, true, &text);
    setup->reference_glue = strbuf_detach(&text);
    strbuf_release(&text);
}

static void take_problem(struct setup *setup, const struct problem *problem)
{
    if (problem->cuda) { // nothing is put in front of a cuda source
        setup->header = xstrdup("");
        setup->glue = xstrdup("");
        setup->reference_header = xstrdup("");
        setup->reference_glue = xstrdup("");
    } else {
        take_texts(setup, problem);
    }
    struct err err = ERR_INIT;
    if (devices_choose(&setup->device_class, setup->table->parts->devices, setup->class_name,
                       problem->language, &err) != 0) {
        setup->no_class = xstrdup(err.text);
    }
    setup->has_hidden = problem->has_hidden;
    setup->name = xstrdup(problem->name);
}

static bool is_cuda(const struct setup *setup)
{
    return strcmp(setup->device_class->language, "cuda") == 0;
}

// The host could not open the blob. Those who wait go on waiting.
static void hold(struct setups *setups, const char *reason)
{
    struct executors *executors = setups->parts->executors;

    executors_hold(executors);
    setups->held = true;
    log_event(LOG_WARNING, "problem-waits seconds=%u reason=\"%s\"", executors_held(executors),
              reason);
}

static void take_form(struct setup_part *part, const struct problem *problem,
                      const struct bytes *source)
{
    part->python =
        problem->cuda && candidate_form((const char *)source->data, source->len) == FORM_PYTHON;
}

static void on_read(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                    size_t count)
{
    struct setup *setup = owner;

    (void)failed;
    setup->reading = false;
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    if (error && error->code == ERR_BUSY && !setup->table->stopping) {
        hold(setup->table, error->text);
    } else if (error) {
        wake(setup, JOB_CAUSE_MISSING_BLOB, error->text);
    } else if (problem_parse(&problem, (const char *)blobs[0].data, blobs[0].len, "problem.json",
                             &err) != 0) {
        setup->defect = xstrdup(err.text);
        wake(setup, JOB_CAUSE_NONE, NULL);
    } else {
        if (count == BLOB_COUNT) {
            take_form(&setup->reference, problem, &blobs[BLOB_REFERENCE]);
            take_form(&setup->baseline, problem, &blobs[BLOB_BASELINE]);
        }
        take_problem(setup, problem);
        problem_free(problem);
        wake(setup, JOB_CAUSE_NONE, NULL);
    }
    setup_release(setup);
}

static void start_reading(struct setup *setup)
{
    const struct digest blob[BLOB_COUNT] = {[BLOB_PROBLEM] = setup->problem,
                                            [BLOB_REFERENCE] = setup->reference.source,
                                            [BLOB_BASELINE] = setup->baseline.source};
    bool all =
        !digest_is_zero(&setup->reference.source) && !digest_is_zero(&setup->baseline.source);

    if (!setup->reading) {
        setup->reading = true;
        setup->users++;
        blob_load(setup->table->parts->blobs, blob, all ? BLOB_COUNT : 1, on_read, setup);
    }
}

static void read_held(struct setups *setups)
{
    setups->held = false;
    struct setup *setup;
    struct setup *next;
    HASH_ITER (hh, setups->by_identity, setup, next) {
        if (setup->waits) {
            start_reading(setup);
        }
    }
}

void setups_tick(struct setups *setups)
{
    if (setups->held && executors_held(setups->parts->executors) == 0) {
        read_held(setups);
    }
}

void setups_stop(struct setups *setups)
{
    setups->stopping = true;
    read_held(setups);
}

bool setup_read(struct setup *setup, struct setup_wait *wait)
{
    if (is_read(setup)) {
        return true;
    }
    wait->setup = setup;
    DL_APPEND(setup->waits, wait);
    start_reading(setup);
    return false;
}

void setup_cancel(struct setup_wait *wait)
{
    if (wait->setup) {
        DL_DELETE(wait->setup->waits, wait);
        wait->setup = NULL;
    }
}

uint64_t setup_hidden_seed(const struct setup *setup, const struct digest *source)
{
    return secret_hidden_seed(setup->table->parts->secret, &setup->problem, source);
}

// --- what is compiled

// The name of a source in messages of the compiler.
static const char *source_name(const struct setup *setup, enum compile_role role)
{
    static const char *const name[][3] = {
        [COMPILE_CANDIDATE] = {"candidate.c", "candidate.cu"},
        [COMPILE_BASELINE] = {"baseline.c", "baseline.cu", "baseline.py"},
        [COMPILE_REFERENCE] = {"reference.c", "reference.cu", "reference.py"},
    };
    bool python = (role == COMPILE_BASELINE && setup->baseline.python) ||
                  (role == COMPILE_REFERENCE && setup->reference.python);

    return name[role][python ? 2 : is_cuda(setup)];
}

static struct setup_part *part_of(struct setup *setup, enum compile_role role)
{
    return role == COMPILE_REFERENCE ? &setup->reference : &setup->baseline;
}

struct compile_input setup_input(const struct setup *setup, enum compile_role role,
                                 const struct digest *candidate)
{
    bool reference = role == COMPILE_REFERENCE;
    bool hidden = role == COMPILE_CANDIDATE || (reference && setup_records_reference(setup));

    return (struct compile_input){
        .source = role == COMPILE_CANDIDATE ? *candidate
                  : reference               ? setup->reference.source
                                            : setup->baseline.source,
        .header = reference ? setup->reference_header : setup->header,
        .glue = reference ? setup->reference_glue : setup->glue,
        .name = source_name(setup, role),
        .device_class = setup->device_class,
        .problem = setup->problem,
        .role = role,
        .hidden_seed = hidden ? setup_hidden_seed(setup, candidate) : 0,
    };
}

bool setup_records_reference(const struct setup *setup)
{
    return setup->reference.python && setup->has_hidden;
}

bool setup_knows(const struct setup *setup, enum compile_role role)
{
    const struct setup_part *part =
        role == COMPILE_REFERENCE ? &setup->reference : &setup->baseline;

    return part->compiled || part->refusal || digest_is_zero(&part->source);
}

void setup_learn(struct setup *setup, enum compile_role role, const struct compiled *compiled)
{
    struct setup_part *part = part_of(setup, role);

    if (compiled->verdict == VERDICT_NONE) {
        part->compiled = role != COMPILE_REFERENCE || !setup_records_reference(setup);
        part->object = part->compiled ? compiled->object : (struct digest){{0}};
    } else if (!part->refusal) {
        part->refusal =
            xasprintf("%s of problem %s %s: %s", source_name(setup, role), setup->name,
                      part->python ? "cannot be recorded" : "does not compile",
                      compiled->reason ? compiled->reason : verdict_name(compiled->verdict));
        log_event(LOG_WARNING, "problem-defect problem=%s reason=\"%s\"", setup->name,
                  part->refusal);
    }
}

const char *setup_refusal(const struct setup *setup)
{
    return setup->reference.refusal ? setup->reference.refusal : setup->baseline.refusal;
}

static void forget_object(struct setup *setup, enum compile_role role,
                          const struct digest *candidate)
{
    struct setup_part *part = part_of(setup, role);
    struct compile_input input = setup_input(setup, role, candidate);

    if (part->compiled || (role == COMPILE_REFERENCE && setup_records_reference(setup))) {
        part->compiled = false;
        compiler_forget(setup->table->parts->compiler, &input);
    }
}

void setup_forget_objects(struct setup *setup, const struct digest *candidate)
{
    if (is_read(setup) && !setup->defect && !setup->no_class) {
        forget_object(setup, COMPILE_REFERENCE, candidate);
        forget_object(setup, COMPILE_BASELINE, candidate);
    }
}
