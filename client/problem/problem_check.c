// Design. The check consists of ordinary jobs, so that it tests the verification that candidates
// will meet. Every job is one that no cache knows, because an old verdict would say nothing about
// new seeds. Timing is limited to almost nothing. An honest variant may therefore end as
// INCONCLUSIVE, which counts as correct. TIMEOUT and COMPILE_ERROR of a mutant prove nothing about
// the tolerance, so they count as undecided, and a problem with an undecided mutant is not
// admitted.
#include "client/problem/problem_check.h"
#include "client/problem/mutant.h"
#include "client/problem/problem_blobs.h"
#include "common/mem.h"
#include "common/stats.h"
#include "problem/candidate_form.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_STREAM 0x6368656b // separates the draws of points from other uses of the seed

static struct check_candidate *add_candidate(struct problem_check *check, enum check_kind kind)
{
    check->candidate =
        xrealloc(check->candidate, check->candidate_count + 1, sizeof *check->candidate);
    struct check_candidate *candidate = &check->candidate[check->candidate_count++];
    *candidate = (struct check_candidate){
        .kind = kind, .max_error = NAN, .error_bound = NAN, .log2_speedup = NAN};
    return candidate;
}

static void add_honest(struct problem_check *check, const char *baseline)
{
    for (size_t i = 0; i < HONEST_COUNT; i++) {
        const enum honest honest = (enum honest)i;
        struct check_candidate *candidate = add_candidate(check, CHECK_HONEST);
        struct strbuf source = STRBUF_INIT, reason = STRBUF_INIT;
        candidate->name = honest_name(honest);
        candidate->what = honest_what(honest);
        if (honest_applicable(honest, check->dir->problem, &reason)) {
            honest_source(honest, baseline, &source);
            candidate->source = strbuf_detach(&source);
        } else {
            candidate->outcome = CHECK_NOT_APPLICABLE;
            candidate->reason = strbuf_detach(&reason);
        }
        strbuf_release(&reason);
    }
}

static void add_mutants(struct problem_check *check, const char *baseline)
{
    for (size_t i = 0; i < MUTANT_COUNT; i++) {
        const enum mutant mutant = (enum mutant)i;
        struct check_candidate *candidate = add_candidate(check, CHECK_MUTANT);
        struct strbuf source = STRBUF_INIT, reason = STRBUF_INIT;
        candidate->name = mutant_name(mutant);
        candidate->what = mutant_what(mutant);
        candidate->meaning = mutant_meaning(mutant);
        if (mutant_applicable(mutant, check->dir->problem, &reason)) {
            mutant_source(mutant, check->dir->problem, baseline, &source);
            candidate->source = strbuf_detach(&source);
        } else {
            candidate->outcome = CHECK_NOT_APPLICABLE;
            candidate->reason = strbuf_detach(&reason);
        }
        strbuf_release(&reason);
    }
}

// Adds CHECK_SAMPLE different points of the template at random, or all when there are no more.
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
        struct check_candidate *candidate = add_candidate(check, CHECK_TEMPLATE);
        struct strbuf source = STRBUF_INIT, name = STRBUF_INIT;
        template_source(template, point, &source);
        template_point_name(template, point, &name);
        candidate->source = strbuf_detach(&source);
        candidate->point_name = strbuf_detach(&name);
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
        return err_set(err, ERR_INVALID, "%s/%s: empty, or not a text", dir->path,
                       dir->baseline_name);
    }
    if (dir->problem->cuda && candidate_form(baseline, dir->baseline.len) == FORM_LAUNCHER) {
        return err_set(err, ERR_INVALID,
                       "%s/%s launches by code of the host, of which no mutants can be made; write "
                       "it with launch lines, or as baseline.py",
                       dir->path, dir->baseline_name);
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
    for (size_t i = 0; i < check->candidate_count; i++) {
        free(check->candidate[i].source);
        free(check->candidate[i].reason);
        free(check->candidate[i].point_name);
    }
    free(check->candidate);
    *check = (struct problem_check){0};
}

static void set_reason(struct check_candidate *candidate, const char *reason)
{
    free(candidate->reason);
    candidate->reason = reason ? xstrdup(reason) : NULL;
}

void check_candidate_judge(struct check_candidate *candidate, const struct result *result)
{
    candidate->verdict = result->verdict;
    candidate->max_error = result->max_error;
    candidate->error_bound = result->error_bound;
    set_reason(candidate, result->reason);
    switch (result->verdict) {
    case VERDICT_WRONG:
    case VERDICT_CRASH:
    case VERDICT_REJECTED:
    case VERDICT_QUARANTINED:
        candidate->outcome = CHECK_CAUGHT;
        break;
    default:
        candidate->outcome = verdict_is_ratio(result->verdict) ? CHECK_CORRECT : CHECK_UNDECIDED;
        break;
    }
    if (candidate->outcome == CHECK_CORRECT && result->speedup) {
        candidate->log2_speedup = result->speedup->log2;
    }
}

bool check_candidate_as_expected(const struct check_candidate *candidate)
{
    switch (candidate->kind) {
    case CHECK_HONEST:
        return candidate->outcome == CHECK_CORRECT || candidate->outcome == CHECK_NOT_APPLICABLE;
    case CHECK_MUTANT:
        return candidate->outcome == CHECK_CAUGHT || candidate->outcome == CHECK_NOT_APPLICABLE;
    case CHECK_TEMPLATE:
        break;
    }
    return candidate->outcome != CHECK_WAITING;
}

// ---- running ----

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
    struct check_candidate *candidate = &running->check->candidate[tag];
    if (info && info->result) {
        check_candidate_judge(candidate, info->result);
    } else {
        candidate->outcome = CHECK_UNDECIDED;
        set_reason(candidate, error ? error->text : info ? info->reason : NULL);
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
    for (size_t i = 0; i < check->candidate_count; i++) {
        running.total += check->candidate[i].source ? 1 : 0;
    }
    for (size_t i = 0; i < check->candidate_count; i++) {
        const struct check_candidate *candidate = &check->candidate[i];
        if (!candidate->source) {
            continue;
        }
        struct digest digest;
        daemon_pool_add_blob(daemon_pool, candidate->source, strlen(candidate->source), &digest);
        struct job_spec spec;
        problem_dir_spec(check->dir, JOB_MEASURE, &digest, &spec);
        // The cast drops const; the job is only packed.
        spec.device_class = (char *)(uintptr_t)daemon_pool_class(daemon_pool);
        spec.max_seconds = CHECK_TIMING_SECONDS;
        spec.repeat = stats_entropy() | 1; // makes it a job that no cache knows
        char key[32];
        snprintf(key, sizeof key, "trial-%zu", i);
        jobs->submit(jobs, key, &spec, 0, on_answer, &running, i);
    }
    if (on_progress) {
        on_progress(owner, 0, running.total);
    }
    int rc = daemon_pool_drain(daemon_pool, err);
    if (rc != 0) {
        daemon_pool_cancel_all(daemon_pool);
    }
    return rc;
}

// ---- judgement ----

size_t problem_check_points(const struct problem_check *check, enum check_outcome outcome)
{
    size_t count = 0;
    for (size_t i = 0; i < check->candidate_count; i++) {
        count +=
            check->candidate[i].kind == CHECK_TEMPLATE && check->candidate[i].outcome == outcome;
    }
    return count;
}

static void add_objection(const struct check_candidate *candidate, struct strbuf *out)
{
    const char *reason = candidate->reason ? candidate->reason : "no reason is known";
    if (candidate->outcome == CHECK_WAITING) {
        strbuf_addf(out, "\"%s\" was not tried to its end.\n", candidate->name);
    } else if (candidate->outcome == CHECK_UNDECIDED) {
        strbuf_addf(out, "\"%s\" could not be tried (%s): %s.\n", candidate->name,
                    verdict_name(candidate->verdict), reason);
    } else if (candidate->kind == CHECK_MUTANT) {
        strbuf_addf(out, "The mutant \"%s\", which %s, was taken for correct: %s.\n",
                    candidate->name, candidate->what, candidate->meaning);
    } else if (strcmp(candidate->name, honest_name(HONEST_BASELINE)) == 0) {
        strbuf_addf(out, "The baseline does not agree with the reference (%s): %s.\n",
                    verdict_name(candidate->verdict), reason);
    } else {
        strbuf_addf(out,
                    "The honest variant \"%s\", %s, was not taken for correct (%s): the tolerance "
                    "is too tight.\n",
                    candidate->name, candidate->what, verdict_name(candidate->verdict));
    }
}

// The candidate whose reason is that of all: none could be tried, because of the problem itself.
// NULL when there is no such reason.
static const struct check_candidate *find_common(const struct problem_check *check)
{
    const struct check_candidate *common = NULL;
    size_t count = 0;

    for (size_t i = 0; i < check->candidate_count; i++) {
        const struct check_candidate *candidate = &check->candidate[i];

        if (!candidate->source) {
            continue;
        }
        common = common ? common : candidate;
        if (candidate->outcome != CHECK_UNDECIDED || !candidate->reason ||
            strcmp(candidate->reason, common->reason) != 0) {
            return NULL;
        }
        count++;
    }
    return count > 1 ? common : NULL;
}

bool problem_check_admits(const struct problem_check *check, struct strbuf *reasons)
{
    const struct check_candidate *common = find_common(check);
    bool admitted = true, tried = false;

    if (common) {
        strbuf_addf(reasons, "Nothing could be tried: %s.\n", common->reason);
        return false;
    }
    for (size_t i = 0; i < check->candidate_count; i++) {
        const struct check_candidate *candidate = &check->candidate[i];
        tried |= candidate->kind == CHECK_TEMPLATE;
        if (candidate->kind == CHECK_TEMPLATE || check_candidate_as_expected(candidate)) {
            continue;
        }
        admitted = false;
        add_objection(candidate, reasons);
    }
    if (check->has_template && check->points == 0) {
        admitted = false;
        strbuf_adds(reasons, "The template has no point that meets all its conditions.\n");
    } else if (tried && problem_check_points(check, CHECK_CORRECT) == 0) {
        admitted = false;
        strbuf_adds(reasons, "None of the template's points that were tried is correct.\n");
    }
    return admitted;
}
