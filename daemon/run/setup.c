// Design note. A measurement setup goes through three stages, each entered when somebody first waits for it:
// read (the blob is loaded and parsed on libuv's threads' time and ours), reference compiled,
// baseline compiled. A stage ends as done, as impossible (defect, refusal: facts, which stay), or
// as lost (the jail failed, a blob has gone), which is told to those who wait and forgotten, so
// that the next one tries again.
//
// Subjects without users stay for a while, because a client that sends its jobs one after another
// would otherwise have its problem read for each.
#include "daemon/run/setup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "problem/problem.h"
#include "proto/verdict.h"
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define IDLE_MAX 64

struct setups {
    struct blob_store *blobs;
    struct compiler *compiler;
    const struct devices *devices;
    const struct secret *secret;
    struct setup *by_identity;
    struct setup *idle; // list
    size_t idle_count;
};

struct setups *setups_create(struct blob_store *blobs, struct compiler *compiler,
                             const struct devices *devices, const struct secret *secret)
{
    struct setups *setups = xcalloc(1, sizeof(*setups));

    setups->blobs = blobs;
    setups->compiler = compiler;
    setups->devices = devices;
    setups->secret = secret;
    return setups;
}

static void setup_free(struct setup *setup)
{
    HASH_DEL(setup->table->by_identity, setup);
    free(setup->class_name);
    free(setup->homeless);
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
    struct setup *setup;
    struct setup *next;

    if (!setups) {
        return;
    }
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

static bool part_is_known(const struct setup_part *part)
{
    return part->compiled || part->refusal || digest_is_zero(&part->source);
}

static bool is_known(const struct setup *setup, bool parts)
{
    return is_read(setup) &&
           (!parts || setup->defect || setup->homeless ||
            (part_is_known(&setup->reference) && part_is_known(&setup->baseline)));
}

// The oldest wait of an earlier round that can be told something now.
static struct setup_wait *next_to_tell(const struct setup *setup, bool lost)
{
    struct setup_wait *wait;

    DL_FOREACH (setup->waits, wait) {
        if (wait->round < setup->round && (lost || is_known(setup, wait->parts))) {
            return wait;
        }
    }
    return NULL;
}

// Tells those who wait for what is known now, or everybody when it is lost. Callbacks may cancel
// other waits, and may wait anew: those are of the new round and are not told the old news.
static void wake(struct setup *setup, const char *lost)
{
    setup->users++; // callbacks may release it
    setup->round++;
    struct setup_wait *wait;
    while ((wait = next_to_tell(setup, lost))) {
        DL_DELETE(setup->waits, wait);
        wait->setup = NULL;
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
    if (problem->cuda) { // sealed sources have nothing put in front of them
        setup->header = xstrdup("");
        setup->glue = xstrdup("");
        setup->reference_header = xstrdup("");
        setup->reference_glue = xstrdup("");
    } else {
        take_texts(setup, problem);
    }
    struct err err = ERR_INIT;
    if (devices_choose(&setup->device_class, setup->table->devices, setup->class_name,
                       problem->language, &err) != 0) {
        setup->homeless = xstrdup(err.text);
    }
    setup->name = xstrdup(problem->name);
}

static bool is_cuda(const struct setup *setup)
{
    return strcmp(setup->device_class->language, "cuda") == 0;
}

// How messages call a part.
static const char *part_name(const struct setup *setup, bool reference)
{
    if (is_cuda(setup)) {
        return reference ? "reference.cu" : "baseline.cu";
    }
    return reference ? "reference.c" : "baseline.c";
}

static void compile_parts(struct setup *setup);

static void on_problem(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                       size_t count)
{
    struct setup *setup = owner;

    (void)failed;
    (void)count;
    setup->reading = false;
    struct problem *problem = NULL;
    struct err err = ERR_INIT;
    if (error) {
        wake(setup, error->text);
    } else if (problem_parse(&problem, (const char *)blobs[0].data, blobs[0].len, "problem.json",
                             &err) != 0) {
        setup->defect = xstrdup(err.text);
        wake(setup, NULL);
    } else {
        take_problem(setup, problem);
        problem_free(problem);
        wake(setup, NULL);
        compile_parts(setup);
    }
    setup_release(setup);
}

static void start_reading(struct setup *setup)
{
    if (!setup->reading) {
        setup->reading = true;
        setup->users++;
        blob_load(setup->table->blobs, &setup->problem, 1, on_problem, setup);
    }
}

static void on_part_miss(struct compile_request *request)
{
    struct setup *setup = request->owner;
    struct setup_wait *wait;
    struct setup_wait *next;

    DL_FOREACH_SAFE (setup->waits, wait, next) {
        if (wait->on_miss) {
            wait->on_miss(wait);
        }
    }
}

static void on_part_done(struct compile_request *request, const struct compile_answer *outcome)
{
    struct setup *setup = request->owner;
    bool reference = request == &setup->reference.request;
    struct setup_part *part = reference ? &setup->reference : &setup->baseline;
    char *lost = NULL;

    if (!outcome->compiled) {
        lost = xasprintf("%s: %s", part_name(setup, reference), outcome->reason);
    } else if (outcome->compiled->verdict == VERDICT_NONE) {
        part->compiled = true;
        part->object = outcome->compiled->object;
    } else {
        part->refusal = xasprintf(
            "%s of problem %s does not compile: %s", part_name(setup, reference), setup->name,
            outcome->compiled->reason ? outcome->compiled->reason
                                      : verdict_name(outcome->compiled->verdict));
        log_event(LOG_WARNING, "problem-defect problem=%s reason=\"%s\"", setup->name,
                  part->refusal);
    }
    wake(setup, lost);
    free(lost);
    setup_release(setup);
}

static struct compile_input part_input(const struct setup *setup, bool reference)
{
    return (struct compile_input){
        .source = reference ? setup->reference.source : setup->baseline.source,
        .header = reference ? setup->reference_header : setup->header,
        .glue = reference ? setup->reference_glue : setup->glue,
        .name = part_name(setup, reference),
        .device_class = setup->device_class,
        .problem = setup->problem,
        .role = reference ? COMPILE_REFERENCE : COMPILE_BASELINE,
    };
}

static void compile_part(struct setup *setup, struct setup_part *part, bool reference)
{
    struct compile_input input = part_input(setup, reference);

    if (part_is_known(part) || part->request.task) {
        return;
    }
    part->request = (struct compile_request){
        .on_miss = on_part_miss,
        .on_done = on_part_done,
        .owner = setup,
    };
    setup->users++;
    compiler_request(setup->table->compiler, &part->request, &input);
}

// Starts the parts' compilations if somebody waits for them.
static void compile_parts(struct setup *setup)
{
    const struct setup_wait *wait;

    if (setup->homeless) {
        return;
    }
    DL_FOREACH (setup->waits, wait) {
        if (wait->parts) {
            compile_part(setup, &setup->reference, true);
            compile_part(setup, &setup->baseline, false);
            return;
        }
    }
}

static bool wait_for(struct setup *setup, struct setup_wait *wait, bool parts)
{
    if (is_known(setup, parts)) {
        return true;
    }
    wait->setup = setup;
    wait->parts = parts;
    wait->round = setup->round;
    DL_APPEND(setup->waits, wait);
    if (is_read(setup)) {
        compile_parts(setup);
    } else {
        start_reading(setup);
    }
    return false;
}

bool setup_read(struct setup *setup, struct setup_wait *wait)
{
    return wait_for(setup, wait, false);
}

bool setup_compile(struct setup *setup, struct setup_wait *wait)
{
    return wait_for(setup, wait, true);
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
    return secret_hidden_seed(setup->table->secret, &setup->problem, source);
}

struct compile_input setup_candidate(const struct setup *setup, const struct digest *source)
{
    return (struct compile_input){
        .source = *source,
        .header = setup->header,
        .glue = setup->glue,
        .name = is_cuda(setup) ? "candidate.cu" : "candidate.c",
        .device_class = setup->device_class,
        .problem = setup->problem,
        .role = COMPILE_CANDIDATE,
        .hidden_seed = setup_hidden_seed(setup, source),
    };
}

static void forget_part(struct setup *setup, struct setup_part *part, bool reference)
{
    struct compile_input input = part_input(setup, reference);

    if (part->compiled) {
        part->compiled = false;
        compiler_forget(setup->table->compiler, &input);
    }
}

void setup_forget_objects(struct setup *setup)
{
    if (is_read(setup) && !setup->defect && !setup->homeless) {
        forget_part(setup, &setup->reference, true);
        forget_part(setup, &setup->baseline, false);
    }
}
