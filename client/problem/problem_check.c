// Design. The battery is made of ordinary jobs, so that what is checked is the very verification
// that candidates will meet. Every job is one that no cache knows: an old verdict would say nothing of
// today's seeds. Timing is capped to almost nothing; an honest variant then ends as INCONCLUSIVE,
// which is correct. TIMEOUT and COMPILE_ERROR of an mutant prove nothing about the tolerance, so
// they count as untried, and a problem with an untried mutant is not admitted.
#include "client/problem/problem_check.h"
#include "client/problem/problem_blobs.h"
#include "client/problem/problem_mutant.h"
#include "common/mem.h"
#include "common/stats.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_STREAM 0x6368656b // of the seed, for drawing points

static struct trial *add_trial(struct problem_check *check, enum trial_kind kind)
{
    check->trial = xrealloc(check->trial, check->trial_count + 1, sizeof *check->trial);
    struct trial *trial = &check->trial[check->trial_count++];
    *trial =
        (struct trial){.kind = kind, .max_error = NAN, .error_bound = NAN, .log2_speedup = NAN};
    return trial;
}

static void add_honest(struct problem_check *check, const char *baseline)
{
    for (size_t i = 0; i < HONEST_COUNT; i++) {
        const enum honest honest = (enum honest)i;
        struct trial *trial = add_trial(check, TRIAL_HONEST);
        struct strbuf source = STRBUF_INIT, reason = STRBUF_INIT;
        trial->name = honest_name(honest);
        trial->what = honest_what(honest);
        if (honest_applies(honest, check->dir->problem, &reason)) {
            honest_source(honest, baseline, &source);
            trial->source = strbuf_detach(&source);
        } else {
            trial->outcome = TRIAL_NOT_APPLICABLE;
            trial->reason = strbuf_detach(&reason);
        }
        strbuf_release(&reason);
    }
}

static void add_mutants(struct problem_check *check, const char *baseline)
{
    for (size_t i = 0; i < MUTANT_COUNT; i++) {
        const enum mutant mutant = (enum mutant)i;
        struct trial *trial = add_trial(check, TRIAL_MUTANT);
        struct strbuf source = STRBUF_INIT, reason = STRBUF_INIT;
        trial->name = mutant_name(mutant);
        trial->what = mutant_what(mutant);
        trial->meaning = mutant_meaning(mutant);
        if (mutant_applies(mutant, check->dir->problem, &reason)) {
            mutant_source(mutant, check->dir->problem, baseline, &source);
            trial->source = strbuf_detach(&source);
        } else {
            trial->outcome = TRIAL_NOT_APPLICABLE;
            trial->reason = strbuf_detach(&reason);
        }
        strbuf_release(&reason);
    }
}

// Draws CHECK_SAMPLE different points, or takes all when there are no more.
static int add_points(struct problem_check *check, uint64_t seed, struct err *err)
{
    const struct bytes *text = &check->dir->template_source;
    if (!text->data) {
        return 0;
    }
    struct template *template = NULL;
    char *file = xasprintf("template.%s", problem_extension(check->dir->problem));
    int rc = template_parse(&template, (const char *)text->data, file, err);
    free(file);
    if (rc != 0) {
        return err_wrap(err, "%s", check->dir->path);
    }
    size_t chosen[CHECK_SAMPLE], count = 0;
    check->has_template = true;
    check->points = template_point_count(template);
    struct stats_rng rng;
    stats_rng_init(&rng, seed, SAMPLE_STREAM);
    while (count < CHECK_SAMPLE && count < check->points) {
        size_t point =
            check->points <= CHECK_SAMPLE ? count : (size_t)stats_rng_below(&rng, check->points);
        size_t i = 0;
        while (i < count && chosen[i] != point) {
            i++;
        }
        if (i < count) {
            continue;
        }
        chosen[count++] = point;
        struct trial *trial = add_trial(check, TRIAL_TEMPLATE);
        struct strbuf source = STRBUF_INIT, name = STRBUF_INIT;
        template_source(template, point, &source);
        template_point_name(template, point, &name);
        trial->source = strbuf_detach(&source);
        trial->point_name = strbuf_detach(&name);
    }
    template_free(template);
    return 0;
}

int problem_check_init(struct problem_check *check, const struct problem_dir *dir, uint64_t seed,
                       struct err *err)
{
    *check = (struct problem_check){.dir = dir};
    const char *baseline = (const char *)dir->baseline.data;
    if (!baseline || memchr(baseline, '\0', dir->baseline.len)) {
        return err_set(err, ERR_INVALID, "%s/baseline.%s: empty, or not a text", dir->path,
                       problem_extension(dir->problem));
    }
    add_honest(check, baseline);
    add_mutants(check, baseline);
    int rc = add_points(check, seed, err);
    if (rc != 0) {
        problem_check_release(check);
    }
    return rc;
}

void problem_check_release(struct problem_check *check)
{
    for (size_t i = 0; i < check->trial_count; i++) {
        free(check->trial[i].source);
        free(check->trial[i].reason);
        free(check->trial[i].point_name);
    }
    free(check->trial);
    *check = (struct problem_check){0};
}

static void set_reason(struct trial *trial, const char *reason)
{
    free(trial->reason);
    trial->reason = reason ? xstrdup(reason) : NULL;
}

void trial_judge(struct trial *trial, const struct result *result)
{
    trial->verdict = result->verdict;
    trial->max_error = result->max_error;
    trial->error_bound = result->error_bound;
    set_reason(trial, result->reason);
    switch (result->verdict) {
    case VERDICT_WRONG:
    case VERDICT_CRASH:
    case VERDICT_REJECTED:
    case VERDICT_QUARANTINED:
        trial->outcome = TRIAL_CAUGHT;
        break;
    default:
        trial->outcome = verdict_is_ratio(result->verdict) ? TRIAL_CORRECT : TRIAL_UNTRIED;
        break;
    }
    if (trial->outcome == TRIAL_CORRECT && result->speedup) {
        trial->log2_speedup = result->speedup->log2;
    }
}

bool trial_as_it_should(const struct trial *trial)
{
    switch (trial->kind) {
    case TRIAL_HONEST:
        return trial->outcome == TRIAL_CORRECT || trial->outcome == TRIAL_NOT_APPLICABLE;
    case TRIAL_MUTANT:
        return trial->outcome == TRIAL_CAUGHT || trial->outcome == TRIAL_NOT_APPLICABLE;
    case TRIAL_TEMPLATE:
        break;
    }
    return trial->outcome != TRIAL_WAITING;
}

// Running
// ------------------------------------------------------------------------------------------------------------------------

struct running {
    struct problem_check *check;
    struct daemon_pool *daemon_pool;
    void (*on_progress)(void *owner, size_t done, size_t total);
    void *owner;
    size_t done, total;
};

static void on_answer(void *owner, uint64_t tag, struct job_ref ref, struct job_info *info,
                      const struct err *error)
{
    struct running *running = owner;
    struct trial *trial = &running->check->trial[tag];
    if (info && info->result) {
        trial_judge(trial, info->result);
    } else {
        trial->outcome = TRIAL_UNTRIED;
        set_reason(trial, error ? error->text : info ? info->reason : NULL);
    }
    if (info) {
        daemon_pool_jobs(running->daemon_pool)->ack(daemon_pool_jobs(running->daemon_pool), ref);
    }
    running->done++;
    if (running->on_progress) {
        running->on_progress(running->owner, running->done, running->total);
    }
}

int problem_check_run(struct problem_check *check, struct daemon_pool *daemon_pool,
                      void (*on_progress)(void *owner, size_t done, size_t total), void *owner,
                      struct err *err)
{
    struct running running = {check, daemon_pool, on_progress, owner, 0, 0};
    struct job_service *jobs = daemon_pool_jobs(daemon_pool);
    problem_blobs_add(daemon_pool, check->dir);
    for (size_t i = 0; i < check->trial_count; i++) {
        running.total += check->trial[i].source ? 1 : 0;
    }
    for (size_t i = 0; i < check->trial_count; i++) {
        const struct trial *trial = &check->trial[i];
        if (!trial->source) {
            continue;
        }
        struct digest candidate;
        daemon_pool_add_blob(daemon_pool, trial->source, strlen(trial->source), &candidate);
        struct job_spec spec;
        problem_dir_spec(check->dir, JOB_MEASURE, &candidate, &spec);
        spec.device_class = (char *)(uintptr_t)daemon_pool_class(daemon_pool); // only packed
        spec.max_seconds = CHECK_TIMING_SECONDS;
        spec.repeat = stats_entropy() | 1; // no cache knows it
        char key[32];
        snprintf(key, sizeof key, "trial-%zu", i);
        jobs->submit(jobs, key, &spec, 0, on_answer, &running, i);
    }
    int rc = daemon_pool_drain(daemon_pool, err);
    if (rc != 0) {
        daemon_pool_cancel_all(daemon_pool);
    }
    return rc;
}

// Judgement
// ----------------------------------------------------------------------------------------------------------------------

size_t problem_check_points(const struct problem_check *check, enum trial_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < check->trial_count; i++) {
        count += check->trial[i].kind == TRIAL_TEMPLATE && check->trial[i].outcome == outcome;
    }
    return count;
}

static void add_objection(const struct trial *trial, struct strbuf *out)
{
    const char *reason = trial->reason ? trial->reason : "no reason is known";
    if (trial->outcome == TRIAL_WAITING) {
        strbuf_addf(out, "\"%s\" was not tried to its end.\n", trial->name);
    } else if (trial->outcome == TRIAL_UNTRIED) {
        strbuf_addf(out, "\"%s\" could not be tried (%s): %s.\n", trial->name,
                    verdict_name(trial->verdict), reason);
    } else if (trial->kind == TRIAL_MUTANT) {
        strbuf_addf(out, "The mutant \"%s\", which %s, was taken for correct: %s.\n", trial->name,
                    trial->what, trial->meaning);
    } else if (strcmp(trial->name, honest_name(HONEST_BASELINE)) == 0) {
        strbuf_addf(out, "The baseline does not agree with the reference (%s): %s.\n",
                    verdict_name(trial->verdict), reason);
    } else {
        strbuf_addf(out,
                    "The honest variant \"%s\", %s, was not taken for correct (%s): the tolerance "
                    "is too tight.\n",
                    trial->name, trial->what, verdict_name(trial->verdict));
    }
}

bool problem_check_admits(const struct problem_check *check, struct strbuf *reasons)
{
    bool admitted = true, tried = false;
    for (size_t i = 0; i < check->trial_count; i++) {
        const struct trial *trial = &check->trial[i];
        tried |= trial->kind == TRIAL_TEMPLATE;
        if (trial->kind == TRIAL_TEMPLATE || trial_as_it_should(trial)) {
            continue;
        }
        admitted = false;
        add_objection(trial, reasons);
    }
    if (check->has_template && check->points == 0) {
        admitted = false;
        strbuf_adds(reasons, "The template has no point that meets all its conditions.\n");
    } else if (tried && problem_check_points(check, TRIAL_CORRECT) == 0) {
        admitted = false;
        strbuf_adds(reasons, "None of the template's points that were tried is correct.\n");
    }
    return admitted;
}
