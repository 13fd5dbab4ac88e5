// Design note. A subject goes through three stages, each entered when somebody first waits for it:
// read (the blob is loaded and parsed on libuv's threads' time and ours), reference compiled,
// baseline compiled. A stage ends as done, as impossible (defect, refusal: facts, which stay), or
// as lost (the jail failed, a blob has gone), which is told to those who wait and forgotten, so
// that the next one tries again.
//
// Subjects without users stay for a while, because a client that sends its jobs one after another
// would otherwise have its problem read for each.
#include "daemon/subject.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "contract/problem.h"
#include "contract/verdict.h"
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define IDLE_MAX 64

struct subjects {
    struct blob_store *blobs;
    struct compiler *compiler;
    const struct devices *devices;
    const struct secret *secret;
    struct subject *by_identity;
    struct subject *idle; // list
    size_t idle_count;
};

struct subjects *subjects_create(struct blob_store *blobs, struct compiler *compiler,
                                 const struct devices *devices, const struct secret *secret)
{
    struct subjects *subjects = xcalloc(1, sizeof(*subjects));

    subjects->blobs = blobs;
    subjects->compiler = compiler;
    subjects->devices = devices;
    subjects->secret = secret;
    return subjects;
}

static void subject_free(struct subject *subject)
{
    HASH_DEL(subject->table->by_identity, subject);
    free(subject->class_name);
    free(subject->homeless);
    free(subject->name);
    free(subject->header);
    free(subject->glue);
    free(subject->reference_header);
    free(subject->reference_glue);
    free(subject->reference.refusal);
    free(subject->baseline.refusal);
    free(subject->defect);
    free(subject);
}

static void leave_idle(struct subject *subject)
{
    DL_DELETE2(subject->table->idle, subject, idle_prev, idle_next);
    subject->table->idle_count--;
}

void subjects_free(struct subjects *subjects)
{
    struct subject *subject;
    struct subject *next;

    if (!subjects) {
        return;
    }
    HASH_ITER (hh, subjects->by_identity, subject, next) {
        subject_free(subject);
    }
    free(subjects);
}

void subjects_visit_blobs(const struct subjects *subjects,
                          void (*visit)(void *owner, const struct digest *digest), void *owner)
{
    const struct subject *subject;
    const struct subject *next;

    HASH_ITER (hh, subjects->by_identity, subject, next) {
        visit(owner, &subject->problem);
        visit(owner, &subject->reference.source);
        visit(owner, &subject->reference.object);
        visit(owner, &subject->baseline.source);
        visit(owner, &subject->baseline.object);
    }
}

struct subject *subject_acquire(struct subjects *subjects, const struct digest *problem,
                                const struct digest *reference, const struct digest *baseline,
                                const char *class_name)
{
    struct digest_state *state = digest_begin();
    struct digest identity;
    struct subject *subject;

    digest_add(state, problem->byte, DIGEST_LEN);
    digest_add(state, reference->byte, DIGEST_LEN);
    digest_add(state, baseline->byte, DIGEST_LEN);
    digest_add_text(state, class_name ? class_name : "");
    identity = digest_end(state);
    HASH_FIND(hh, subjects->by_identity, &identity, sizeof(identity), subject);
    if (subject) {
        if (subject->users++ == 0) {
            leave_idle(subject);
        }
        return subject;
    }
    subject = xcalloc(1, sizeof(*subject));
    subject->table = subjects;
    subject->identity = identity;
    subject->problem = *problem;
    subject->class_name = class_name ? xstrdup(class_name) : NULL;
    subject->reference.source = *reference;
    subject->baseline.source = *baseline;
    subject->users = 1;
    HASH_ADD(hh, subjects->by_identity, identity, sizeof(identity), subject);
    return subject;
}

void subject_release(struct subject *subject)
{
    struct subjects *subjects;

    if (!subject || --subject->users > 0) {
        return;
    }
    subjects = subject->table;
    DL_APPEND2(subjects->idle, subject, idle_prev, idle_next);
    subjects->idle_count++;
    while (subjects->idle_count > IDLE_MAX) {
        struct subject *oldest = subjects->idle;

        leave_idle(oldest);
        subject_free(oldest);
    }
}

static bool is_read(const struct subject *subject)
{
    return subject->name || subject->defect;
}

static bool part_is_known(const struct subject_part *part)
{
    return part->compiled || part->refusal || digest_is_zero(&part->source);
}

static bool is_known(const struct subject *subject, bool parts)
{
    return is_read(subject) &&
           (!parts || subject->defect || subject->homeless ||
            (part_is_known(&subject->reference) && part_is_known(&subject->baseline)));
}

// The oldest wait of an earlier round that can be told something now.
static struct subject_wait *next_to_tell(const struct subject *subject, bool lost)
{
    struct subject_wait *wait;

    DL_FOREACH (subject->waits, wait) {
        if (wait->round < subject->round && (lost || is_known(subject, wait->parts))) {
            return wait;
        }
    }
    return NULL;
}

// Tells those who wait for what is known now, or everybody when it is lost. Callbacks may cancel
// other waits, and may wait anew: those are of the new round and are not told the old news.
static void wake(struct subject *subject, const char *lost)
{
    struct subject_wait *wait;

    subject->users++; // callbacks may release it
    subject->round++;
    while ((wait = next_to_tell(subject, lost != NULL)) != NULL) {
        DL_DELETE(subject->waits, wait);
        wait->subject = NULL;
        wait->on_done(wait, lost);
    }
    subject_release(subject);
}

static void take_texts(struct subject *subject, const struct problem *problem)
{
    struct strbuf text = STRBUF_INIT;

    problem_header(problem, false, &text);
    subject->header = strbuf_detach(&text);
    problem_glue(problem, false, &text);
    subject->glue = strbuf_detach(&text);
    problem_header(problem, true, &text);
    subject->reference_header = strbuf_detach(&text);
    problem_glue(problem, true, &text);
    subject->reference_glue = strbuf_detach(&text);
    strbuf_release(&text);
}

static void take_problem(struct subject *subject, const struct problem *problem)
{
    struct err err = ERR_INIT;

    if (problem->cuda) { // sealed sources have nothing put in front of them
        subject->header = xstrdup("");
        subject->glue = xstrdup("");
        subject->reference_header = xstrdup("");
        subject->reference_glue = xstrdup("");
    } else {
        take_texts(subject, problem);
    }
    if (devices_choose(&subject->device_class, subject->table->devices, subject->class_name,
                       problem->language, &err) != 0) {
        subject->homeless = xstrdup(err.text);
    }
    subject->name = xstrdup(problem->name);
}

static bool is_cuda(const struct subject *subject)
{
    return strcmp(subject->device_class->language, "cuda") == 0;
}

// How messages call a part.
static const char *part_name(const struct subject *subject, bool reference)
{
    if (is_cuda(subject)) {
        return reference ? "reference.cu" : "baseline.cu";
    }
    return reference ? "reference.c" : "baseline.c";
}

static void compile_parts(struct subject *subject);

static void on_problem(void *owner, const struct err *error, size_t failed, struct bytes *blobs,
                       size_t count)
{
    struct subject *subject = owner;
    struct problem *problem = NULL;
    struct err err = ERR_INIT;

    (void)failed;
    (void)count;
    subject->reading = false;
    if (error) {
        wake(subject, error->text);
    } else if (problem_parse(&problem, (const char *)blobs[0].data, blobs[0].len, "problem.json",
                             &err) != 0) {
        subject->defect = xstrdup(err.text);
        wake(subject, NULL);
    } else {
        take_problem(subject, problem);
        problem_free(problem);
        wake(subject, NULL);
        compile_parts(subject);
    }
    subject_release(subject);
}

static void start_reading(struct subject *subject)
{
    if (!subject->reading) {
        subject->reading = true;
        subject->users++;
        blob_load(subject->table->blobs, &subject->problem, 1, on_problem, subject);
    }
}

static void on_part_miss(struct compile_request *request)
{
    struct subject *subject = request->owner;
    struct subject_wait *wait;
    struct subject_wait *next;

    DL_FOREACH_SAFE (subject->waits, wait, next) {
        if (wait->on_miss) {
            wait->on_miss(wait);
        }
    }
}

static void on_part_done(struct compile_request *request, const struct compile_outcome *outcome)
{
    struct subject *subject = request->owner;
    bool reference = request == &subject->reference.request;
    struct subject_part *part = reference ? &subject->reference : &subject->baseline;
    char *lost = NULL;

    if (!outcome->compiled) {
        lost = xasprintf("%s: %s", part_name(subject, reference), outcome->reason);
    } else if (outcome->compiled->verdict == VERDICT_NONE) {
        part->compiled = true;
        part->object = outcome->compiled->object;
    } else {
        part->refusal = xasprintf(
            "%s of problem %s does not compile: %s", part_name(subject, reference), subject->name,
            outcome->compiled->reason ? outcome->compiled->reason
                                      : verdict_name(outcome->compiled->verdict));
        log_event(LOG_WARNING, "problem-defect problem=%s reason=\"%s\"", subject->name,
                  part->refusal);
    }
    wake(subject, lost);
    free(lost);
    subject_release(subject);
}

static struct compile_input part_input(const struct subject *subject, bool reference)
{
    return (struct compile_input){
        .source = reference ? subject->reference.source : subject->baseline.source,
        .header = reference ? subject->reference_header : subject->header,
        .glue = reference ? subject->reference_glue : subject->glue,
        .name = part_name(subject, reference),
        .device_class = subject->device_class,
        .problem = subject->problem,
        .role = reference ? COMPILE_REFERENCE : COMPILE_BASELINE,
    };
}

static void compile_part(struct subject *subject, struct subject_part *part, bool reference)
{
    struct compile_input input = part_input(subject, reference);

    if (part_is_known(part) || part->request.task) {
        return;
    }
    part->request = (struct compile_request){
        .on_miss = on_part_miss,
        .on_done = on_part_done,
        .owner = subject,
    };
    subject->users++;
    compiler_request(subject->table->compiler, &part->request, &input);
}

// Starts the parts' compilations if somebody waits for them.
static void compile_parts(struct subject *subject)
{
    const struct subject_wait *wait;

    if (subject->homeless) {
        return;
    }
    DL_FOREACH (subject->waits, wait) {
        if (wait->parts) {
            compile_part(subject, &subject->reference, true);
            compile_part(subject, &subject->baseline, false);
            return;
        }
    }
}

static bool wait_for(struct subject *subject, struct subject_wait *wait, bool parts)
{
    if (is_known(subject, parts)) {
        return true;
    }
    wait->subject = subject;
    wait->parts = parts;
    wait->round = subject->round;
    DL_APPEND(subject->waits, wait);
    if (is_read(subject)) {
        compile_parts(subject);
    } else {
        start_reading(subject);
    }
    return false;
}

bool subject_read(struct subject *subject, struct subject_wait *wait)
{
    return wait_for(subject, wait, false);
}

bool subject_compile(struct subject *subject, struct subject_wait *wait)
{
    return wait_for(subject, wait, true);
}

void subject_cancel(struct subject_wait *wait)
{
    if (wait->subject) {
        DL_DELETE(wait->subject->waits, wait);
        wait->subject = NULL;
    }
}

uint64_t subject_hidden_seed(const struct subject *subject, const struct digest *source)
{
    return secret_hidden_seed(subject->table->secret, &subject->problem, source);
}

struct compile_input subject_candidate(const struct subject *subject, const struct digest *source)
{
    return (struct compile_input){
        .source = *source,
        .header = subject->header,
        .glue = subject->glue,
        .name = is_cuda(subject) ? "candidate.cu" : "candidate.c",
        .device_class = subject->device_class,
        .problem = subject->problem,
        .role = COMPILE_CANDIDATE,
        .hidden_seed = subject_hidden_seed(subject, source),
    };
}

static void forget_part(struct subject *subject, struct subject_part *part, bool reference)
{
    struct compile_input input = part_input(subject, reference);

    if (part->compiled) {
        part->compiled = false;
        compiler_forget(subject->table->compiler, &input);
    }
}

void subject_forget_objects(struct subject *subject)
{
    if (is_read(subject) && !subject->defect && !subject->homeless) {
        forget_part(subject, &subject->reference, true);
        forget_part(subject, &subject->baseline, false);
    }
}
