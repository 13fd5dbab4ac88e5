// Which daemon has which job.
//
// A job is submitted to one member, and to another when the first stays away, rests or refuses it:
// each submission is a flight. The first flight that brings an outcome ends the job; the others
// stay without a job, are taken back from their daemons, and what they bring is acknowledged. A
// member is given the same job once only, so a job has at most as many flights as there are
// members, and one that all have refused ends with the last refusal.
#include "client/fleet_state.h"

#include "common/mem.h"
#include "contract/verdict.h"
#include <stdlib.h>
#include <string.h>

static pool_callback on_outcome;

static uint64_t bit(const struct member *member)
{
    return UINT64_C(1) << member->index;
}

// ---- places ----

static struct place *find_place(struct place **table, const char *name, bool add)
{
    struct place *place;
    HASH_FIND_STR(*table, name, place);
    if (place == NULL && add) {
        place = xcalloc(1, sizeof(*place));
        place->name = xstrdup(name);
        HASH_ADD_KEYPTR(hh, *table, place->name, strlen(place->name), place);
    }
    return place;
}

static void free_places(struct place **table)
{
    struct place *place, *next;
    HASH_ITER (hh, *table, place, next) {
        HASH_DEL(*table, place);
        free(place->name);
        free(place);
    }
}

void fleet_forget_places(struct fleet *fleet)
{
    free_places(&fleet->key);
    free_places(&fleet->compiled);
}

void fleet_learn_keys(struct member *member, const struct status *status)
{
    for (size_t i = 0; i < status->jobs_count; i++) {
        const struct job_info *job = &status->jobs[i];
        // One without a budget left is submitted again: there may be one now.
        if (job->key == NULL || pool_is_over_budget(job)) {
            continue;
        }
        struct place *place = find_place(&member->fleet->key, job->key, true);
        if (job->state == JOB_CANCELLED) {
            place->avoid |= bit(member);
        } else if (place->member == NULL || (job->state == JOB_DONE && !place->done)) {
            place->member = member;
            place->done = job->state == JOB_DONE;
        }
    }
}

// ---- choosing ----

static double load(const struct member *member)
{
    return (double)(member->flights + 1) / (double)(member->devices > 0 ? member->devices : 1);
}

static bool can_take(const struct member *member, const struct fleet_job *job)
{
    return member->state == MEMBER_IN && member->pool != NULL && pool_error(member->pool) == NULL &&
           (job->tried & bit(member)) == 0;
}

static void name_source(const struct job_spec *spec, char name[static DIGEST_HEX_LEN + 1])
{
    digest_hex(&spec->candidate, name);
}

// A member whose devices rest is better than none, as its daemon's queue waits for them.
static struct member *least_loaded(const struct fleet *fleet, const struct fleet_job *job)
{
    struct member *best = NULL;
    for (size_t i = 0; i < fleet->count; i++) {
        struct member *member = fleet->member[i];
        bool fits = can_take(member, job) && member->listed;
        if (fits && (best == NULL || (best->devices == 0 && member->devices > 0) ||
                     ((member->devices > 0 || best->devices == 0) && load(member) < load(best)))) {
            best = member;
        }
    }
    return best;
}

// Where the job is known, else where its candidate was compiled unless there is more to do there
// than elsewhere by a job per device, else where there is least to do.
static struct member *choose(struct fleet *fleet, const struct fleet_job *job)
{
    char source[DIGEST_HEX_LEN + 1];
    const struct place *place = find_place(&fleet->key, job->key, false);
    if (place != NULL && place->member != NULL && can_take(place->member, job)) {
        return place->member;
    }
    struct member *best = least_loaded(fleet, job);
    if (best == NULL || job->spec.kind != JOB_MEASURE) {
        return best;
    }
    name_source(&job->spec, source);
    place = find_place(&fleet->compiled, source, false);
    bool near = place != NULL && place->member->listed && place->member->devices > 0 &&
                can_take(place->member, job) && load(place->member) <= load(best) + 1;
    return near ? place->member : best;
}

static void fly(struct member *member, struct fleet_job *job)
{
    struct fleet *fleet = member->fleet;
    struct flight *flight = xcalloc(1, sizeof(*flight));
    flight->member = member;
    flight->job = job;
    flight->key = xstrdup(job->key);
    DL_APPEND(fleet->flight, flight);
    member->flights++;
    job->tried |= bit(member);
    pool_submit(member->pool, job->key, &job->spec, job->priority, on_outcome, flight, 0);
}

static bool is_flying(const struct fleet *fleet, const struct fleet_job *job)
{
    const struct flight *flight;
    DL_FOREACH (fleet->flight, flight) {
        if (flight->job == job && flight->member->state == MEMBER_IN) {
            return true;
        }
    }
    return false;
}

static bool place_job(struct fleet *fleet, struct fleet_job *job)
{
    struct member *member = choose(fleet, job);
    if (member != NULL) {
        fly(member, job);
    }
    return member != NULL;
}

void fleet_place(struct fleet *fleet, struct fleet_job *job)
{
    const struct place *place = find_place(&fleet->key, job->key, false);
    job->tried |= place != NULL ? place->avoid : 0;
    (void)place_job(fleet, job);
}

void fleet_place_waiting(struct fleet *fleet)
{
    struct fleet_job *job;
    DL_FOREACH (fleet->job, job) {
        if (!is_flying(fleet, job)) {
            (void)place_job(fleet, job);
        }
    }
}

// ---- ends ----

static void free_flight(struct fleet *fleet, struct flight *flight)
{
    if (flight->job != NULL) {
        flight->member->flights--;
    }
    DL_DELETE(fleet->flight, flight);
    free(flight->key);
    free(flight);
}

static void free_job(struct fleet_job *job)
{
    message_clear(&job_spec_message, &job->spec);
    free(job->key);
    free(job);
}

// From now on the job's flights bring nothing that anybody wants.
static void cut_loose(struct fleet *fleet, const struct fleet_job *job)
{
    struct flight *flight;
    DL_FOREACH (fleet->flight, flight) {
        if (flight->job == job) {
            flight->job = NULL;
            flight->drop = true;
            flight->member->flights--;
        }
    }
}

static void drop_flights(struct fleet *fleet)
{
    struct flight *flight;
    do {
        DL_FOREACH (fleet->flight, flight) {
            if (flight->drop) {
                break;
            }
        }
        if (flight != NULL) {
            flight->drop = false;
            pool_abandon(flight->member->pool, flight->key); // may free it, and others
        }
    } while (flight != NULL);
}

// The owner has what is to be recorded before any other daemon is told to forget it.
static void finish(struct fleet *fleet, struct fleet_job *job, struct job_info *info,
                   const struct err *error)
{
    cut_loose(fleet, job);
    DL_DELETE(fleet->job, job);
    fleet->job_count--;
    job->callback(job->owner, job->tag, info, error);
    free_job(job);
    drop_flights(fleet);
}

// A refusal is one daemon's (a full disk, a limit); others may think otherwise.
static void on_refusal(struct fleet *fleet, struct fleet_job *job, const struct err *error)
{
    job->error = *error;
    if (!place_job(fleet, job) && !is_flying(fleet, job)) {
        struct err last = job->error;
        finish(fleet, job, NULL, &last);
    }
}

static void on_outcome(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct flight *flight = owner;
    struct member *member = flight->member;
    struct fleet *fleet = member->fleet;
    struct fleet_job *job = flight->job;
    (void)tag;
    free_flight(fleet, flight);
    if (fleet->closing) {
        return;
    }
    if (job == NULL) {
        if (info != NULL) {
            pool_ack(member->pool, info->job);
        }
    } else if (error != NULL) {
        on_refusal(fleet, job, error);
    } else {
        if (info->compiled != NULL) {
            char source[DIGEST_HEX_LEN + 1];
            name_source(&job->spec, source);
            find_place(&fleet->compiled, source, true)->member = member;
        }
        info->job |= (uint64_t)member->index << NUMBER_BITS;
        finish(fleet, job, info, NULL);
    }
}

void fleet_forget_jobs(struct fleet *fleet)
{
    while (fleet->job != NULL) {
        struct fleet_job *job = fleet->job;
        cut_loose(fleet, job);
        DL_DELETE(fleet->job, job);
        free_job(job);
    }
    fleet->job_count = 0;
}

void fleet_forget_flights(struct fleet *fleet)
{
    while (fleet->flight != NULL) {
        free_flight(fleet, fleet->flight);
    }
}

// ---- members that cannot be relied on ----

static bool runs_at(const struct member *member, const struct flight *flight)
{
    uint64_t number = pool_job_number(member->pool, flight->key);
    for (size_t i = 0; i < member->status.devices_count && number != 0; i++) {
        if (member->status.devices[i].job == number) {
            return true;
        }
    }
    return false;
}

// Another member works on it already.
static bool is_elsewhere(const struct member *member, const struct fleet_job *job)
{
    const struct flight *flight;
    DL_FOREACH (member->fleet->flight, flight) {
        const struct member *other = flight->member;
        if (flight->job == job && other != member && other->state == MEMBER_IN &&
            other->devices > 0) {
            return true;
        }
    }
    return false;
}

// New flights are of other members, at the list's end.
size_t fleet_move(struct member *member, bool waiting_only)
{
    struct fleet *fleet = member->fleet;
    struct flight *flight;
    size_t count = 0;
    DL_FOREACH (fleet->flight, flight) {
        struct fleet_job *job = flight->member == member ? flight->job : NULL;
        if (job == NULL || is_elsewhere(member, job) ||
            (waiting_only && (job->spec.kind != JOB_MEASURE || runs_at(member, flight)))) {
            continue;
        }
        struct member *other = choose(fleet, job);
        if (other != NULL && (!waiting_only || other->devices > 0)) {
            fly(other, job);
            count++;
        }
    }
    return count;
}

void fleet_lose_flights(struct member *member, const struct err *error)
{
    struct fleet *fleet = member->fleet;
    struct flight *flight;
    do {
        DL_FOREACH (fleet->flight, flight) {
            if (flight->member == member && flight->job != NULL) {
                break;
            }
        }
        if (flight != NULL) {
            struct fleet_job *job = flight->job;
            flight->job = NULL;
            member->flights--;
            on_refusal(fleet, job, error); // may end it, and begin or end others
        }
    } while (flight != NULL);
}
