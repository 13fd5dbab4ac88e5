// The inside of a pipeline, for the pipeline*.c files only. Stages in order of a candidate's way:
// pipeline_propose.c, pipeline_decide.c, pipeline_measure.c; what they share and who calls them is
// in pipeline.c.
#ifndef CLIENT_SEARCH_PIPELINE_STATE_H
#define CLIENT_SEARCH_PIPELINE_STATE_H

#include "client/forecast/forecast_request.h"
#include "client/forecast/proposer.h"
#include "client/policy/policy.h"
#include "client/policy/risk.h"
#include "client/propose/generator_list.h"
#include "client/propose/strategy.h"
#include "client/search/pipeline.h"
#include <uthash.h>

// The first candidate with a source or an object.
struct first {
    struct digest digest; // key
    uint64_t candidate;
    UT_hash_handle hh;
};

// What is known of a candidate beyond the log.
struct slot {
    struct compiled *answer; // arrived, waits for its turn to be recorded
    struct job_ref job;      // of that answer
    bool measuring;          // the first measurement was submitted in this process
};

// Which generators fill a batch, in order; the one that asks, if any, is last.
struct plan {
    struct {
        size_t generator;
        uint64_t count;
    } part[GENERATOR_LIST_MAX];
    size_t parts;
};

// A batch for which the worker is being asked (pipeline_ask.c). What came is kept here until the
// batch is full, so that the log has whole batches only.
struct writing {
    bool on;
    bool over; // nothing more is to come for this batch
    struct plan plan;
    uint64_t batch, want, visible;
    unsigned round, barren; // rounds made; of these, without a new candidate, in a row
    struct proposer_request request[PROPOSER_ROUND_MAX]; // of the round under way
    struct written {
        struct bytes source;
        uint64_t parent;
        char *model; // that wrote it; NULL: not said
    } got[RUN_BATCH_MAX];
    size_t count;
    char *reason; // of the last request that brought nothing
};

struct pipeline {
    struct run *run;
    struct run_state *run_state;
    struct job_service *jobs;
    struct forecast_service *forecasts;
    struct proposer *proposer; // NULL when no generator asks
    struct writing writing;
    const struct generator *generator[GENERATOR_LIST_MAX];
    size_t generator_count;
    size_t asker; // the number of the one that asks; generator_count: none
    const struct strategy *strategy;
    const struct policy *policy;
    struct risk *risk; // of a policy that certifies, else NULL
    uint64_t batch;    // candidates of each of the first PIPELINE_EARLY
    uint64_t wide;     // and of each later one
    struct slot *slot; // slot i is of candidate i + 1
    size_t slot_count;
    struct first *source, *object; // uthash
    struct first *normal; // of sources but for blanks and comments, when the worker writes them
    uint64_t compiled;    // candidates 1 … this have compiled, failed, or need not
    uint64_t forecast, decided, settled; // batches 1 … this
    uint64_t asking;                     // batch that is being forecast, or 0
    uint64_t told_batch;    // the worker was told batches 1 … this, as far as it listened
    uint64_t told, telling; // candidates 1 … this; what it will be after the message under way
    uint64_t replicating;   // candidate whose second measurement is under way, or 0
    char *exhausted;        // why nothing is proposed any more
    char *stop;             // why nothing is decided any more
    struct err failure;     // in a callback
};

// Candidates of all batches up to this one, as far as there are enough.
static inline uint64_t batch_end(const struct pipeline *p, uint64_t batch)
{
    return batch <= PIPELINE_EARLY ? batch * p->batch
                                   : PIPELINE_EARLY * p->batch + (batch - PIPELINE_EARLY) * p->wide;
}

static inline uint64_t batch_count(const struct pipeline *p)
{
    uint64_t count = p->run_state->candidate_count, early = batch_end(p, PIPELINE_EARLY);
    return count <= early ? (count + p->batch - 1) / p->batch
                          : PIPELINE_EARLY + (count - early + p->wide - 1) / p->wide;
}

static inline uint64_t batch_first(const struct pipeline *p, uint64_t batch)
{
    return batch_end(p, batch - 1) + 1;
}

static inline uint64_t batch_last(const struct pipeline *p, uint64_t batch)
{
    uint64_t last = batch_end(p, batch);
    return last < p->run_state->candidate_count ? last : p->run_state->candidate_count;
}

// The last candidate whose outcome a stage of this batch may see.
static inline uint64_t visible_from(const struct pipeline *p, uint64_t batch)
{
    return batch > PIPELINE_LAG ? batch_last(p, batch - PIPELINE_LAG) : 0;
}

static inline struct run_state_candidate *candidate_of(const struct pipeline *p, uint64_t id)
{
    return &p->run_state->candidate[id - 1];
}

static inline bool is_measuring(const struct run_state_candidate *candidate)
{
    return candidate->decided.decision == DECISION_MEASURE ||
           candidate->decided.decision == DECISION_AUDIT;
}

// ---- pipeline.c ----

// The candidate that had this digest first; 0: none had it.
uint64_t pipeline_find_first(const struct first *table, const struct digest *digest);
// Unless one has it. A digest that is absent is nobody's.
void pipeline_add_first(struct first **table, const struct digest *digest, uint64_t candidate);
// Appends an event; see pipeline_record. A transaction that began before ends with pipeline_commit,
// which rolls back when code says that something in it failed, and returns the first error.
MUST_CHECK int pipeline_append(struct pipeline *p, enum run_event_kind kind, void *body,
                               struct err *err);
MUST_CHECK int pipeline_commit(struct pipeline *p, int code, struct err *err);
// Submits the job with key <letter><id>.
void pipeline_submit(struct pipeline *p, char letter, uint64_t id, const struct job_spec *spec,
                     uint64_t priority, job_service_callback *callback);
// What a candidate's job is to do, without anchor.
void pipeline_spec(const struct pipeline *p, uint64_t id, enum job_kind kind, struct job_spec *ret);
// Remembers that a job could not be submitted.
void pipeline_fail(struct pipeline *p, char letter, uint64_t id, const struct err *error);

// ---- the stages: each does what is possible now and sets *progress when that may make more
// possible ----

MUST_CHECK int pipeline_propose(struct pipeline *p, bool *progress, struct err *err);
void pipeline_submit_compile(struct pipeline *p, uint64_t id);
// Makes room for what is known of new candidates.
void pipeline_add_slots(struct pipeline *p);
MUST_CHECK int pipeline_record_compiled(struct pipeline *p, bool *progress, struct err *err);
void pipeline_ask_forecasts(struct pipeline *p, bool *progress);
MUST_CHECK int pipeline_decide(struct pipeline *p, bool *progress, struct err *err);
// Unless this process did so already.
void pipeline_submit_measure(struct pipeline *p, uint64_t id);
void pipeline_settle(struct pipeline *p, bool *progress);

// ---- pipeline_ask.c: batches whose candidates the worker writes ----

// Begins to ask for the last part of the batch's plan; nothing happens while it is under way.
MUST_CHECK int pipeline_ask(struct pipeline *p, uint64_t batch, const struct plan *plan,
                            struct err *err);
// Records the batch when the asking for it is over; what did not come is left to other generators.
// Sets p->exhausted when nothing can be recorded.
MUST_CHECK int pipeline_record_asked(struct pipeline *p, struct err *err);
// Learns which sources are there already.
MUST_CHECK int pipeline_know_sources(struct pipeline *p, struct err *err);
// Remembers a source, whoever made it.
void pipeline_know_source(struct pipeline *p, const void *source, size_t len, uint64_t candidate);
void pipeline_forget_asked(struct pipeline *p);

// ---- pipeline_allot.c: whose candidates a batch has ----

// Fills *ret with generators for so many candidates of the batch, as far as they have any; asks: the
// one that asks the worker may be among them.
void pipeline_plan(const struct pipeline *p, uint64_t batch, uint64_t want, bool asks,
                   struct plan *ret);
// Records the parts of the plan that have points. Within a transaction.
MUST_CHECK int pipeline_record_plan(struct pipeline *p, uint64_t batch, const struct plan *plan,
                                    struct err *err);
// Why there are no more candidates, for RUN_FINISHED; malloc'd.
char *pipeline_no_more(const struct pipeline *p);

// ---- pipeline_propose.c ----

// Appends a candidate's proposal; the event but for its digest of the source and what follows from it
// is the caller's, and cleared.
MUST_CHECK int pipeline_record_proposal(struct pipeline *p, struct run_proposed *event,
                                        const void *source, size_t len, struct err *err);

// ---- limits, pipeline_propose.c ----

// What the limits are held against, counted over candidates 1 … last; seconds only of those up to
// visible.
struct spent {
    uint64_t measurements; // decided
    uint64_t done;         // of these, with known seconds
    uint64_t pending;      // without
    double seconds;
};

// Counts one candidate's decision.
void spent_add(struct spent *spent, const struct run_state_candidate *candidate, bool visible);
struct spent spent_count(const struct pipeline *p, uint64_t visible, uint64_t last);
// Whether one more measurement would be beyond a limit; the reason, malloc'd, or NULL.
char *spent_limit(const struct pipeline *p, const struct spent *spent);

#endif
