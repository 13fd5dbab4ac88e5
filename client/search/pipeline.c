// The rules by which batches go through a search.
//
// Candidates 1, 2, 3 … form batches of consecutive numbers. The first PIPELINE_EARLY batches have
// started.batch candidates each, the later ones started.wide: once forecasts are worth something,
// more candidates are considered per measurement. After RUN_BATCHES_NARROW of them they may be
// larger still, started.widest, so that comparing points before each does not hold up the devices.
// A decision depends on the seed and on a part of the log that is fixed beforehand, never on what
// happens to have arrived:
//
//   seen(k)      The last batch whose outcomes the stages of batch k see: k - 2 at first. Later the
//                lag grows with k, up to started.lag, but to a part of k at most
//                (PIPELINE_LAG_PART): while there are few outcomes, each of them is worth more than
//                a busy pool. Of the widest batches as many are unseen as have no more candidates
//                than started.lag batches of started.wide.
//   propose(k)   One transaction. Sees the proposals of all earlier batches and the outcomes of
//                batches up to seen(k), so it waits until batch seen(k) is settled; batches from
//                which a model first learns see none, and wait for nothing. Those that see none are
//                proposed before the baseline has compiled; all other stages wait for that. With
//                several generators, these outcomes decide which one is next. Candidates that the
//                worker writes are asked for at this point, round by round, and proposed when the
//                batch is full. The requests follow from the same outcomes, so a search that was
//                killed asks the same again, and the worker, which remembers, answers the same.
//   compiled     Recorded in the order of candidates, in whatever order the answers come, so that
//                "the same object as candidate 17" always names the earlier one. On several devices
//                one that takes much longer than those behind it is put off instead
//                (pipeline_put_off.c).
//   forecast(k)  One request and one transaction. Waits until batch k is compiled, batch k - 1 has
//                its forecasts, and the worker has been told the outcomes of batches up to seen(k)
//                and of no others: telling batch j waits for the forecasts of all batches that do
//                not see it.
//   decide(k)    One transaction. First the threshold of a policy that certifies one, if it has
//                changed, then the decisions in the order of candidates. Sees the forecasts, the
//                incumbent after batch seen(k), and for the limits the device seconds of batches up
//                to seen(k), so it waits until those are settled. With the first measurement that
//                would exceed a limit nothing more is decided, and compilations for later batches
//                are dropped; what is known of those candidates counts for nothing. Where both are
//                possible it comes before propose, so that a resumed search stops where it did.
//   settled(k)   Every candidate of the batch that is to be measured has its outcome, batch k - 1 is
//                settled, and no candidate of the batch is left that looks better than the
//                incumbent. The best such candidate is measured again (key r<id>), and becomes the
//                incumbent when the two measurements agree and the second one is better, too.
//
// Compilations are for what a forecast needs (job_spec.features_only); the daemon compiles the rest
// of a candidate that is measured. Where nobody forecasts everything is compiled at once, since it
// will be measured. Features of machine code cost as much as a compilation and made no forecast
// better (docs/measuring.md), so they are left out unless the search was started with them.
//
// A measurement begins before the decision is recorded where it is certain (pipeline_ahead.c).
//
// With a lag of 2 the compiling and forecasting of one batch overlaps with the measuring of the one
// before. With a larger one the stages of as many batches overlap: a batch is measured from its
// decision on, whatever is still missing of earlier ones, and the slowest compilation, measurement
// or replication of a batch holds up only the batch that is to see it. A kill at any point loses at
// most what was not recorded: the same stage then sees the same log, sends the same keys, and gets
// the same jobs. Only a time limit and a user's interruption do not follow from the log; both
// prevent further decisions and change none.
#include "client/search/pipeline.h"

#include "client/search/job_times.h"
#include "client/search/pipeline_put_off.h"
#include "client/search/pipeline_state.h"
#include "common/mem.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t pipeline_find_first(const struct first_seen *table, const struct digest *digest)
{
    struct first_seen *first;
    HASH_FIND(hh, table, digest->byte, DIGEST_LEN, first);
    return first ? first->candidate : 0;
}

void pipeline_add_first(struct first_seen **table, const struct digest *digest, uint64_t candidate)
{
    if (digest_is_zero(digest) || pipeline_find_first(*table, digest) != 0) {
        return;
    }
    struct first_seen *first = xcalloc(1, sizeof(*first));
    first->digest = *digest;
    first->candidate = candidate;
    HASH_ADD(hh, *table, digest.byte, DIGEST_LEN, first);
}

static void free_first_seen(struct first_seen **table)
{
    struct first_seen *first, *next;
    HASH_ITER (hh, *table, first, next) {
        HASH_DEL(*table, first);
        free(first);
    }
}

int pipeline_record(struct run *run, struct run_state *run_state, enum run_event_kind kind,
                    void *body, struct err *err)
{
    struct timespec now;
    struct run_event event = {.kind = kind, .body = body};
    clock_gettime(CLOCK_REALTIME, &now);
    event.at = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    int rc = run_append(run, kind, body, &event.sequence, err);
    if (rc == 0) {
        rc = run_state_apply(run_state, &event, err);
    }
    message_clear(run_event_message(kind), body);
    return rc;
}

int pipeline_append(struct pipeline *p, enum run_event_kind kind, void *body, struct err *err)
{
    return pipeline_record(p->run, p->run_state, kind, body, err);
}

int pipeline_commit(struct pipeline *p, int code, struct err *err)
{
    if (code == 0) {
        return run_commit(p->run, err);
    }
    run_rollback(p->run);
    return code;
}

// ---- jobs ----

void pipeline_job_spec(const struct pipeline *p, uint64_t id, enum job_kind kind,
                       struct job_spec *ret)
{
    const struct run_started *started = &p->run_state->started;
    *ret = (struct job_spec){
        .kind = kind,
        .problem = started->problem_json,
        .candidate = candidate_of(p, id)->proposed.source,
        .anchor_log2 = NAN,
        .max_seconds = NAN,
        .precision_log2 = NAN,
        // What a forecast needs comes first, and the rest with the measurement, if there is one.
        .features_only = kind == JOB_COMPILE && !p->forecasts->absent,
        .unsealed = started->unsealed,
        .no_machine_code = kind == JOB_MEASURE || !started->machine_code,
    };
    if (kind == JOB_MEASURE) {
        ret->max_seconds = started->timing_seconds > 0 ? started->timing_seconds : NAN;
        ret->reference = started->reference;
        ret->baseline = started->baseline;
        ret->device_class = p->run_state->session.device_class;
    }
}

void pipeline_key(char letter, uint64_t id, char ret[static PIPELINE_KEY_MAX])
{
    snprintf(ret, PIPELINE_KEY_MAX, "%c%llu", letter, (unsigned long long)id);
}

void pipeline_submit(struct pipeline *p, char letter, uint64_t id, const struct job_spec *spec,
                     uint64_t priority, job_service_callback *callback)
{
    char key[PIPELINE_KEY_MAX];
    pipeline_key(letter, id, key);
    p->candidate_jobs[id - 1].submitted_at = pipeline_now(p);
    p->jobs->submit(p->jobs, key, spec, priority, callback, p, id);
}

// Simulated searches record no times: theirs are not those of this clock.
double pipeline_now(const struct pipeline *p)
{
    return p->run_state->session.began_at > 0 ? job_times_now() : NAN;
}

struct job_times *pipeline_times(const struct pipeline *p, uint64_t id, const struct job_info *info)
{
    return p->run_state->session.began_at > 0
               ? job_times_of(p->candidate_jobs[id - 1].submitted_at, info)
               : NULL;
}

void pipeline_job_failed(struct pipeline *p, char letter, uint64_t id, const struct err *error)
{
    err_set(&p->failure, error->code, "job %c%llu: %s", letter, (unsigned long long)id,
            error->text);
}

// ---- tell the worker ----

// Whether no more decisions will be made.
static bool is_ending(const struct pipeline *p)
{
    return p->stop || (p->exhausted && p->decided == batch_count(p));
}

// Whether one of candidates after + 1 … last has an outcome.
static bool has_outcomes(const struct run_state *run_state, uint64_t after, uint64_t last)
{
    for (uint64_t id = after + 1; id <= last; id++) {
        if (forecast_teaches(&run_state->candidate[id - 1])) {
            return true;
        }
    }
    return false;
}

static void on_told(void *owner, bool ok, uint64_t rows)
{
    struct pipeline *p = owner;
    if (!ok) {
        return; // the next message includes these outcomes
    }
    p->told = p->telling;
    if (has_outcomes(p->run_state, p->run_state->observed_candidates, p->told)) {
        struct run_observed event = {.up_to_event = p->run_state->last_sequence,
                                     .rows = rows,
                                     .up_to_candidate = p->told,
                                     .told_at = p->told_at};
        if (pipeline_append(p, RUN_OBSERVED, &event, &p->failure) != 0) {
            return;
        }
    }
}

static void tell(struct pipeline *p)
{
    uint64_t batch = p->settled;
    // Forecasts that are still to be made must not profit from later outcomes than they may see.
    uint64_t seen = seen_by(p, p->forecast + 1);
    if (!is_ending(p) && batch > seen) {
        batch = seen;
    }
    if (batch <= p->told_batch || p->forecasts->busy) {
        return;
    }
    p->told_batch = batch;
    p->telling = batch_last(p, batch);
    p->told_at = pipeline_now(p);
    p->forecasts->tell(p->forecasts, p->run_state, p->told, p->telling, on_told, p);
}

// ---- interface ----

// The problem of the run, for facts about sources; NULL where it cannot be read, as in replays.
static struct problem *read_problem(struct run *run, const struct digest *json)
{
    struct problem *problem = NULL;
    struct bytes text;
    struct err err = ERR_INIT;
    if (run_get_blob(run, json, &text, &err) == 0) {
        (void)!problem_parse(&problem, (const char *)text.data, text.len, "problem.json", &err);
        bytes_clear(&text);
    }
    return problem;
}

static int read_warm(struct pipeline *p, struct err *err)
{
    const struct digest *digest = &p->run_state->started.warm;
    struct bytes text;
    p->warm_generator = warm_generator(p->generator, p->generator_count);
    if (digest_is_zero(digest) || p->warm_generator == p->generator_count) {
        return 0;
    }
    int rc = run_get_blob(p->run, digest, &text, err);
    if (rc == 0) {
        rc = warm_create(&p->warm, &text, "--warm", p->generator[p->warm_generator], err);
        bytes_clear(&text);
    }
    return rc;
}

int pipeline_create(struct pipeline **ret, struct run *run, struct run_state *run_state,
                    struct job_service *jobs, struct forecast_service *forecasts,
                    struct proposer *const *proposers, const struct generator *const *generators,
                    size_t generator_count, struct err *err)
{
    const struct run_started *started = &run_state->started;
    const struct strategy *strategy = strategy_find(started->strategy);
    const struct policy *policy = policy_find(started->policy);
    if (!strategy) {
        return err_set(err, ERR_VERSION, "this kcast does not know the strategy \"%s\"",
                       started->strategy);
    }
    if (!policy) {
        return err_set(err, ERR_VERSION, "this kcast does not know the policy \"%s\"",
                       started->policy);
    }
    struct pipeline *p = xcalloc(1, sizeof(*p));
    p->novelty = novelty_create();
    p->run = run;
    p->run_state = run_state;
    p->jobs = jobs;
    p->forecasts = forecasts;
    for (size_t i = 0; i < generator_count; i++) {
        p->generator[i] = generators[i];
        p->proposer[i] = proposers ? proposers[i] : NULL;
        p->asks |= generators[i]->asks;
    }
    p->generator_count = generator_count;
    p->strategy = strategy;
    p->policy = policy;
    p->problem = policy->screens ? read_problem(run, &started->problem_json) : NULL;
    p->risk = policy->certifies ? risk_create(started) : NULL;
    bool fast = policy->screens && started->pool_devices > 1 && (started->rules & RUN_RULE_AHEAD);
    p->batches = batches_of(started, fast);
    for (uint64_t i = 0; i < run_state->extensions; i++) {
        batches_extend(&p->batches, run_state->extended_after[i]);
    }
    if (run_state->surveys > 0) { // it has come to its end before
        p->exhausted = xstrdup(run_state->surveyed.reason ? run_state->surveyed.reason : "");
        p->stop = run_state->surveyed.stopped ? xstrdup(p->exhausted) : NULL;
    }
    pipeline_track_candidates(p);
    for (uint64_t id = 1; id <= run_state->candidate_count; id++) {
        const struct run_state_candidate *candidate = candidate_of(p, id);
        pipeline_add_first(&p->source, &candidate->proposed.source, id);
        if (!candidate->compiled && candidate->proposed.duplicate_of == 0) {
            p->candidate_jobs[id - 1].dropped = p->stop && candidate->proposed.draw == 0;
            if (!p->candidate_jobs[id - 1].dropped) {
                pipeline_submit_compile(p, id);
            }
        }
        if (candidate->compiled && candidate->compiled->verdict == VERDICT_NONE) {
            pipeline_add_first(&p->object, &candidate->compiled->object, id);
        }
        if (is_measuring(candidate) && !candidate->result && !candidate->given_up) {
            pipeline_submit_measure(p, id);
        }
    }
    pipeline_remember_late(p);
    *ret = p;
    int rc = p->asks ? pipeline_remember_sources(p, err) : 0;
    return rc == 0 ? read_warm(p, err) : rc;
}

bool pipeline_asking(const struct pipeline *p)
{
    return p->asked.under_way && !p->asked.complete;
}

void pipeline_free(struct pipeline *p)
{
    if (!p) {
        return;
    }
    for (size_t i = 0; i < p->candidate_jobs_count; i++) {
        if (p->candidate_jobs[i].answer) {
            message_clear(&compiled_message, p->candidate_jobs[i].answer);
            free(p->candidate_jobs[i].answer);
        }
        free(p->candidate_jobs[i].times);
    }
    pipeline_clear_ahead(p);
    free(p->candidate_jobs);
    free_first_seen(&p->source);
    free_first_seen(&p->object);
    free_first_seen(&p->normal);
    novelty_free(p->novelty);
    pipeline_clear_asked(p);
    pipeline_clear_screening(p);
    for (size_t i = 0; i < p->generator_count; i++) {
        compile_times_free(p->compile_times[i]);
    }
    pipeline_clear_look_back(p);
    pipeline_clear_survey(p);
    pipeline_clear_play_off(p);
    risk_free(p->risk);
    problem_free(p->problem);
    warm_free(p->warm);
    batches_clear(&p->batches);
    free(p->late);
    free(p->exhausted);
    free(p->stop);
    free(p);
}

// Whether all batches are measured, replicated and told, and no more come.
static bool is_settled(const struct pipeline *p)
{
    return is_ending(p) && p->settled >= p->decided && p->told_batch >= p->settled &&
           (p->run_state->surveys > 0 || !p->forecasts->busy);
}

// Has each stage do what is possible now. A batch is proposed only when nothing can be decided or
// settled any more: a search whose log has the last decision before a limit, and which is resumed,
// comes to that decision before it proposes anything.
static int advance_stages(struct pipeline *p, bool *progress, struct err *err)
{
    int rc = pipeline_record_compiled(p, progress, err);
    if (rc != 0) {
        return rc;
    }
    pipeline_ask_forecasts(p, progress);
    rc = pipeline_decide(p, progress, err);
    if (rc != 0) {
        return rc;
    }
    pipeline_measure_ahead(p);
    pipeline_settle(p, progress);
    rc = *progress ? 0 : pipeline_propose(p, progress, err);
    if (rc != 0) {
        return rc;
    }
    tell(p);
    return is_settled(p) ? pipeline_close(p, progress, err) : 0;
}

int pipeline_begin(struct pipeline *p, struct err *err)
{
    int rc = 0;

    // Whoever is asked for candidates is told of the baseline's features.
    for (bool progress = !p->asks; progress && rc == 0;) {
        progress = false;
        rc = pipeline_propose(p, &progress, err);
    }
    return rc;
}

int pipeline_advance(struct pipeline *p, struct err *err)
{
    for (bool progress = true; progress;) {
        progress = false;
        if (p->failure.code != ERR_NONE) {
            return err_set(err, p->failure.code, "%s", p->failure.text);
        }
        int rc = advance_stages(p, &progress, err);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

void pipeline_stop(struct pipeline *p, const char *reason)
{
    p->cut = true;
    if (!p->stop) {
        p->stop = xstrdup(reason);
    }
    pipeline_drop_ahead(p, 1, p->run_state->candidate_count);
}

bool pipeline_done(const struct pipeline *p, const char **ret_reason)
{
    if (!is_settled(p) || !p->closed || p->forecasts->busy) {
        return false;
    }
    *ret_reason = p->stop ? p->stop : p->exhausted;
    return true;
}
