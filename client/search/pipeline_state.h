// The parts of a pipeline that the pipeline*.c files share; nobody else includes this. The stages,
// in the order of a candidate's way, are pipeline_propose.c (with pipeline_allocate.c and
// pipeline_ask.c), pipeline_decide.c and pipeline_measure.c. pipeline.c calls them.
#ifndef CLIENT_SEARCH_PIPELINE_STATE_H
#define CLIENT_SEARCH_PIPELINE_STATE_H

#include "client/forecast/forecast_request.h"
#include "client/forecast/proposer.h"
#include "client/policy/play_off.h"
#include "client/policy/policy.h"
#include "client/policy/risk.h"
#include "client/policy/trust.h"
#include "client/propose/generator_list.h"
#include "client/propose/strategy.h"
#include "client/propose/warm.h"
#include "client/search/batches.h"
#include "client/search/compile_times.h"
#include "client/search/novelty.h"
#include "client/search/pipeline.h"
#include <uthash.h>

// The first candidate with a certain source or object.
struct first_seen {
    struct digest digest; // key
    uint64_t candidate;
    UT_hash_handle hh;
};

// What is known of a candidate's jobs beyond the log.
struct candidate_jobs {
    struct compiled *answer; // a compilation that has arrived and waits for its turn to be recorded
    struct job_ref job;      // the job of that compilation
    bool dropped;            // its compilation is not waited for: the search ends without it
    bool measuring;          // its first measurement was submitted in this process
    struct run_measured *outcome; // owned; of a measurement that began before it was decided
                                  // (pipeline_ahead.c), until it is recorded; NULL: none has come
    struct job_ref outcome_job;   // the job of that measurement
    bool untold;             // a look back has it measured, and the worker was told those around it
    double submitted_at;     // when this process submitted its last job, seconds since 1970
    struct job_times *times; // of the compilation in `answer`; NULL when times are not recorded
};

// Which generators fill a batch, in this order. A generator that asks comes last.
struct plan {
    struct {
        size_t generator; // number of the generator
        uint64_t count;   // candidates that it gives
    } part[GENERATOR_LIST_MAX];
    size_t parts;
};

// A batch for which the worker or programs are asked for candidates (pipeline_ask.c). The
// candidates are kept here, and with the answers in the log, until there are enough, so that the
// log has proposals of whole batches only. Those that the batch has no room for wait in the log.
struct asked_batch {
    bool under_way;
    bool complete; // no more candidates come for this batch
    struct plan plan;
    uint64_t batch;     // number of the batch
    size_t generator;   // number of the generator that asks
    uint64_t want;      // candidates that it is to give
    bool anew;          // proposals are asked for although others wait
    uint64_t fresh;     // of the proposals, those that this batch's rounds have brought
    uint64_t target;    // proposals, fresh ones if anew, with which nobody is asked any more
    uint64_t room;      // proposals that are kept at most; at least target
    uint64_t visible;   // it sees the outcomes of candidates 1 … this
    unsigned round;     // rounds that were answered
    unsigned fruitless; // last rounds without a new candidate
    struct proposer_request request[PROPOSER_ROUND_MAX]; // of the round under way
    struct asked_proposal {
        struct bytes source;
        uint64_t parent;
        char *name;     // NULL: it has none of its own
        char *model;    // language model that wrote it; NULL: not said
        double promise; // see pipeline_rank.c; NaN: there is no forecast
        bool chosen;    // for the batch
    } * proposal;       // owned
    size_t count;       // of proposal
    bool ranking;       // the worker is asked to compare them
    double asked_at;    // when it was asked, as asked_at of the pipeline
    size_t compared;    // of proposal, those that it was asked about; 0: all
    bool ranked;        // it has answered
    size_t known;       // of proposal, those with a forecast
    char *reason;       // why the last request that failed brought nothing; NULL: none failed
};

// A point that is compared with others before anything is compiled.
struct prospect {
    struct strategy_choice choice;
    double promise;            // see pipeline_screen.c; NaN: there is no forecast
    double alone;              // the same without discounts for others near it
    double compile_seconds;    // that compiling it is expected to take
    struct forecast *forecast; // owned; NULL: none
    double position[GENERATOR_AXIS_MAX];
    bool taken;
};

// A batch whose candidates are chosen by forecasts (pipeline_screen.c).
struct screening {
    bool under_way;
    bool complete; // the worker has answered
    struct plan plan;
    uint64_t batch, visible;
    double asked_at;           // as asked_at of the pipeline
    struct prospect *prospect; // owned
    size_t count, known;       // of them, and of those with a forecast
    double worth;              // the greatest probability of an improvement, by what it costs
    double promised, kept; // improvements, by earlier screenings, as far as outcomes are visible
    char *ignorance;       // why the worker can say nothing of any point yet, owned; NULL: it can
};

struct look;

// A look back at trusted candidates (pipeline_look_back.c).
struct looking {
    bool under_way;
    bool complete;     // the worker has answered
    double asked_at;   // as asked_at of the pipeline
    struct look *look; // owned
    size_t count;      // of look
    size_t known;      // of these, the ones with a new forecast
    char *reason;      // why there are no forecasts, owned; NULL: there are
};

struct survey;

// A game of the play-off that is being played, or was and waits for its turn to be recorded.
struct playing {
    uint64_t number; // 0: none
    struct play_off_game game;
    struct run_game *outcome; // owned; NULL: it is being played
    struct job_ref job;       // the job of that outcome
};

struct pipeline {
    struct run *run;
    struct run_state *run_state;
    struct job_service *jobs;
    struct forecast_service *forecasts;
    struct proposer *proposer[GENERATOR_LIST_MAX]; // NULL for generators that do not ask
    bool asks;                                     // one of the generators asks
    struct asked_batch asked;
    struct screening screening;
    struct looking looking;
    const struct generator *generator[GENERATOR_LIST_MAX];
    size_t generator_count;
    struct compile_times *compile_times[GENERATOR_LIST_MAX]; // owned; NULL: not screened yet
    const struct strategy *strategy;
    const struct policy *policy;
    struct warm *warm;       // what the search begins with; NULL: it begins cold
    size_t warm_generator;   // number of the generator whose points it knows
    struct problem *problem; // for facts of sources; NULL: the policy does not screen, or the run
                             // file has no problem that can be read
    struct risk *risk;       // of a policy that certifies thresholds, else NULL
    struct batches batches;
    struct candidate_jobs *candidate_jobs; // entry i is of candidate i + 1
    size_t candidate_jobs_count;
    uint64_t *late;            // candidates that were put off and have not come again; owned
    size_t late_count;         // of these
    bool filling;              // the batch that is begun has the last candidates there are
    struct first_seen *source; // uthash, by the digest of the source
    struct first_seen *object; // uthash, by the digest of the object
    struct first_seen
        *normal; // uthash, by source without blanks and comments; if the worker is asked
    struct novelty *novelty; // likewise
    uint64_t compiled;       // candidates 1 … this have compiled, have failed to, or need not
    uint64_t forecast;       // batches 1 … this have forecasts
    uint64_t decided;        // batches 1 … this are decided about
    uint64_t settled;        // batches 1 … this are measured and replicated
    uint64_t asking;         // batch that is being forecast; 0: none
    double asked_at;       // when it was asked for, seconds since 1970; NaN: times are not recorded
    uint64_t told_batch;   // batches 1 … this were sent to the worker, if it was there
    uint64_t told;         // the worker knows the outcomes of candidates 1 … this
    uint64_t telling;      // what told will be after the message under way
    double told_at;        // when that was sent; as asked_at
    uint64_t replicating;  // candidate that is being replicated; 0: none
    struct survey *survey; // under way (pipeline_survey.c); NULL: none is
    struct playing playing[PLAY_OFF_MAX]; // a round of the play-off (pipeline_play_off.c)
    uint64_t retold;    // the worker was told the outcomes of audits 1 … this, drawn at the end
    bool cut;           // a time limit: what is under way is finished, and no more
    bool closed;        // nothing is left to do
    char *exhausted;    // why nothing is proposed any more; NULL: something may be
    char *stop;         // why nothing is decided any more; NULL: something may be
    struct err failure; // of a callback
};

// The last candidate of a batch that is full.
static inline uint64_t batch_end(const struct pipeline *p, uint64_t batch)
{
    return batches_end(&p->batches, batch);
}

// Candidates of batches: all but the audits that were drawn at the end.
static inline uint64_t searched_count(const struct pipeline *p)
{
    return p->run_state->surveys > 0 ? p->run_state->searched : p->run_state->candidate_count;
}

// The number of batches that have a candidate.
static inline uint64_t batch_count(const struct pipeline *p)
{
    return batches_count(&p->batches, searched_count(p));
}

static inline uint64_t batch_first(const struct pipeline *p, uint64_t batch)
{
    return batch_end(p, batch - 1) + 1;
}

// The last candidate of a batch that there is; 0 for batch 0.
static inline uint64_t batch_last(const struct pipeline *p, uint64_t batch)
{
    uint64_t last = batch_end(p, batch), count = searched_count(p);
    return last < count ? last : count;
}

// The last batch whose outcomes the stages of this batch may see; 0: they see none.
static inline uint64_t seen_by(const struct pipeline *p, uint64_t batch)
{
    return batches_seen(&p->batches, batch);
}

// The last candidate whose outcome the stages of this batch may see.
static inline uint64_t visible_from(const struct pipeline *p, uint64_t batch)
{
    return batch_last(p, seen_by(p, batch));
}

static inline struct run_state_candidate *candidate_of(const struct pipeline *p, uint64_t id)
{
    return &p->run_state->candidate[id - 1];
}

// Whether it was decided to measure the candidate.
static inline bool is_measuring(const struct run_state_candidate *candidate)
{
    return candidate->decided.decision == DECISION_MEASURE ||
           candidate->decided.decision == DECISION_AUDIT;
}

// ---- pipeline.c ----

// The first candidate with this digest; 0 when there is none.
uint64_t pipeline_find_first(const struct first_seen *table, const struct digest *digest);
// Makes the candidate the first with this digest, unless there is one. An absent digest is ignored.
void pipeline_add_first(struct first_seen **table, const struct digest *digest, uint64_t candidate);
// See pipeline_record.
MUST_CHECK int pipeline_append(struct pipeline *p, enum run_event_kind kind, void *body,
                               struct err *err);
// Ends a transaction: commits it when code is 0, else rolls it back. Returns the first error.
MUST_CHECK int pipeline_commit(struct pipeline *p, int code, struct err *err);
#define PIPELINE_KEY_MAX 32
// The key of a candidate's job: <letter><id>.
void pipeline_key(char letter, uint64_t id, char ret[static PIPELINE_KEY_MAX]);
// Submits the job with this key.
void pipeline_submit(struct pipeline *p, char letter, uint64_t id, const struct job_spec *spec,
                     uint64_t priority, job_service_callback *callback);
// When the job whose answer has come reached its states; NULL when the session records no times.
struct job_times *pipeline_times(const struct pipeline *p, uint64_t id,
                                 const struct job_info *info);
// The wall clock in seconds since 1970; NaN when the session records no times.
double pipeline_now(const struct pipeline *p);
// Fills the spec of a candidate's job, without anchor.
void pipeline_job_spec(const struct pipeline *p, uint64_t id, enum job_kind kind,
                       struct job_spec *ret);
// Keeps the error of a job that could not be submitted, for pipeline_advance to return.
void pipeline_job_failed(struct pipeline *p, char letter, uint64_t id, const struct err *error);

// ---- the stages: each does what is possible now, and sets *progress when that may make more
// possible ----

MUST_CHECK int pipeline_propose(struct pipeline *p, bool *progress, struct err *err);
void pipeline_submit_compile(struct pipeline *p, uint64_t id);
// Waits for the candidate's compilation no longer, and cancels it.
void pipeline_drop_compilation(struct pipeline *p, uint64_t id);
// Drops the compilations of candidates that no batch up to the last decided one has, once nothing
// more is decided.
void pipeline_drop_compilations(struct pipeline *p);
// Makes entries in candidate_jobs for new candidates.
void pipeline_track_candidates(struct pipeline *p);
MUST_CHECK int pipeline_record_compiled(struct pipeline *p, bool *progress, struct err *err);
void pipeline_ask_forecasts(struct pipeline *p, bool *progress);
MUST_CHECK int pipeline_decide(struct pipeline *p, bool *progress, struct err *err);
// Submits a candidate's first measurement, unless this process has done so. The incumbent that its
// decision saw is an anchor, so that the spec is the same after a resume.
void pipeline_submit_measure(struct pipeline *p, uint64_t id);
// The same where the decision is not recorded yet, which will see this incumbent (log2 speedup).
void pipeline_submit_undecided(struct pipeline *p, uint64_t id, double incumbent);
void pipeline_settle(struct pipeline *p, bool *progress);

// ---- pipeline_ahead.c: measurements that begin before they are decided about ----

// Begins the measurements of candidates of batches that have compiled and whose decision is
// certain.
void pipeline_measure_ahead(struct pipeline *p);
// The same for audits that were drawn at the end.
void pipeline_measure_drawn_ahead(struct pipeline *p);
// Keeps what came of such a measurement until it is decided about. Takes what *outcome owns.
void pipeline_keep_outcome(struct pipeline *p, uint64_t id, struct job_ref ref,
                           struct run_measured *outcome);
// Records what has come of candidates first … last that are to be measured by now.
MUST_CHECK int pipeline_record_ahead(struct pipeline *p, uint64_t first, uint64_t last,
                                     struct err *err);
// Gives up what was begun for candidates first … last that are not to be measured.
void pipeline_drop_ahead(struct pipeline *p, uint64_t first, uint64_t last);
void pipeline_clear_ahead(struct pipeline *p);

// ---- pipeline_ask.c: batches whose candidates somebody writes who is asked ----

// Begins to ask for the last part of the batch's plan, after the answers that the log has already.
// Nothing is proposed while this is under way.
MUST_CHECK int pipeline_ask(struct pipeline *p, uint64_t batch, const struct plan *plan,
                            struct err *err);
// Records the batch when the asking is complete. Other generators fill what did not come. Sets
// p->exhausted when there is nothing to record.
MUST_CHECK int pipeline_record_asked(struct pipeline *p, struct err *err);
// Remembers the sources of the baseline and of all candidates.
MUST_CHECK int pipeline_remember_sources(struct pipeline *p, struct err *err);
// Remembers the source of a candidate, so that the worker's copies of it are recognised.
void pipeline_remember_source(struct pipeline *p, const void *source, size_t len,
                              uint64_t candidate);
void pipeline_clear_asked(struct pipeline *p);

// ---- pipeline_rank.c: more proposals than a batch takes are compared before any is compiled ----

// Whether proposals can be ranked: by the outcomes of candidates 1 to visible, or by a language
// model.
bool pipeline_can_rank(const struct pipeline *p, uint64_t visible);
// Whether the proposals are to be ranked before the batch is recorded.
bool pipeline_rank_due(const struct pipeline *p);
// Begins to rank them. The worker can be asked now. Nothing is proposed while this is under way.
void pipeline_rank(struct pipeline *p);
// Chooses up to p->asked.want of the proposals, the most promising first, or in order of their
// arrival where they are not ranked. Marks them and writes their indices, in this order. Returns
// how many there are.
size_t pipeline_choose_proposals(struct pipeline *p, size_t out[static RUN_BATCH_MAX]);
// The place of a proposal among those with a forecast, from 1; 0: it has none.
uint64_t pipeline_proposal_place(const struct pipeline *p, size_t proposal);

// ---- pipeline_allocate.c: which generators fill a batch ----

// What strategies see of the run and the generator of this number. Outcomes of candidates up to
// visible count.
struct strategy_view pipeline_view(const struct pipeline *p, uint64_t visible, size_t number);
// Plans `want` candidates of the batch, as far as generators have any left. asks: the generator
// that asks the worker may be among them.
void pipeline_plan(const struct pipeline *p, uint64_t batch, uint64_t want, bool asks,
                   struct plan *ret);
// Writes what is known elsewhere of the point, as a fact about its source, and returns how many
// facts that is, 0 or 1. *ret is the caller's.
size_t pipeline_warm_fact(const struct pipeline *p, size_t number, size_t point, struct fact **ret);
// Whether the search has begun warm and the visible outcomes have not shown that to be of no use.
bool pipeline_is_warm(const struct pipeline *p, const struct strategy_view *view);
// Records a point of this generator as the next candidate. screened is as in run_proposed. Within a
// transaction.
MUST_CHECK int pipeline_record_choice(struct pipeline *p, size_t number,
                                      const struct strategy_choice *choice, uint64_t screened,
                                      struct err *err);
// The same for an audit that was drawn at the end; draw and probability are as in run_proposed.
MUST_CHECK int pipeline_record_drawn(struct pipeline *p, size_t number,
                                     const struct strategy_choice *choice, uint64_t screened,
                                     uint64_t draw, double probability, struct err *err);
// Records the candidates of those parts of the plan whose generators do not ask the worker. Within
// a transaction.
MUST_CHECK int pipeline_record_plan(struct pipeline *p, uint64_t batch, const struct plan *plan,
                                    struct err *err);
// Why there are no more candidates, for RUN_FINISHED; malloc'd.
char *pipeline_exhausted_reason(const struct pipeline *p);

// ---- pipeline_screen.c: batches whose candidates are chosen by forecasts ----

// Whether enough outcomes of candidates 1 to visible are known for a model to compare by.
bool pipeline_knows_enough(const struct pipeline *p, uint64_t visible);
// The last batch whose outcomes the proposals of this batch see: seen_by, or 0 where the batch is
// one of those from which a model first learns, and is spread over the space whatever comes out.
uint64_t pipeline_proposal_sees(const struct pipeline *p, uint64_t batch);
// The last candidate of that batch.
uint64_t pipeline_proposal_visible(const struct pipeline *p, uint64_t batch);
// Whether this plan of the batch is to be screened.
bool pipeline_screens(const struct pipeline *p, uint64_t batch, const struct plan *plan);
// Whether points of this generator are to be spread over the space, for a screening to begin with.
bool pipeline_spreads(const struct pipeline *p, uint64_t visible, size_t number);
// Whether the worker may be asked now.
bool pipeline_may_screen(const struct pipeline *p, uint64_t batch);
// Begins the screening. Nothing is proposed while it is under way.
void pipeline_screen(struct pipeline *p, uint64_t batch, const struct plan *plan);
// Records up to want points of the screening that is complete, the most promising first, with their
// forecasts. *ret counts them; no more have a forecast when they are fewer. Within a transaction.
MUST_CHECK int pipeline_record_screened(struct pipeline *p, size_t want, size_t *ret,
                                        struct err *err);
// Where the worker can say nothing of any point yet, records that there is no forecast of the last
// candidate, which was chosen without it. Within a transaction.
MUST_CHECK int pipeline_record_ignorance(struct pipeline *p, struct err *err);
// Whether a point of the screening that is complete is worth its cost, by the search's
// end_confidence; true without one.
bool pipeline_screening_pays(const struct pipeline *p);
void pipeline_clear_screening(struct pipeline *p);
// Adds what is known of a generator's point before it is compiled: its parameters or, where it has
// none, facts about its source. The caller clears them with candidate_facts_message.
void pipeline_fill_facts(const struct pipeline *p, size_t number, size_t point,
                         struct candidate_facts *facts);

// What was used of the search's limits by candidates 1 … last. Only outcomes of candidates up to
// visible count.
struct spent {
    uint64_t measurements; // measurements that were decided
    uint64_t audits;       // of these, audits that were not drawn at this end
    uint64_t trusted;      // decisions to measure nothing, because a forecast is trusted
    uint64_t done;         // of these, the ones whose device seconds are known
    uint64_t pending;      // of these, the ones whose device seconds are not known
    double seconds;        // device seconds of the known ones
};

// ---- pipeline_look_back.c: trusted candidates are forecast and decided about again ----

// Does what is possible of the look back that is due before this batch, or at the end, which batch
// 0 stands for. *ret_over: none is, and all that earlier ones have had measured is settled.
MUST_CHECK int pipeline_look_back(struct pipeline *p, uint64_t batch, bool *progress,
                                  bool *ret_over, struct err *err);
void pipeline_clear_look_back(struct pipeline *p);

// ---- pipeline_closing.c: what comes after the last batch ----

// How many audits are to be drawn at the end, if this has been spent by then.
uint64_t pipeline_audits_due(const struct pipeline *p, const struct spent *spent);
// Whether these audits are points that were never proposed, which a screening has passed over, and
// not candidates whose forecast was trusted.
bool pipeline_draws_points(const struct pipeline *p);
// Does what is possible of it, once all batches are settled and told. Sets p->closed at the end.
MUST_CHECK int pipeline_close(struct pipeline *p, bool *progress, struct err *err);

// ---- pipeline_survey.c: forecasts of what was never measured, and audits drawn from it ----

// Asks for the next forecasts, if it can. Returns whether the survey is complete.
bool pipeline_survey(struct pipeline *p);
// Records the survey that is complete, and draws so many audits; of points that are no candidates
// yet at most points_max. In one transaction. p->exhausted or p->stop is set.
MUST_CHECK int pipeline_record_survey(struct pipeline *p, uint64_t audits, uint64_t points_max,
                                      struct err *err);
void pipeline_clear_survey(struct pipeline *p);

// ---- pipeline_play_off.c: the best candidates against each other ----

// The share of the budget that is kept for the play-off; 0: there will be none.
double pipeline_play_off_share(const struct pipeline *p);
// Does what is possible of the play-off. *ret_over: nothing is left of it, or there is none.
MUST_CHECK int pipeline_play_off(struct pipeline *p, bool *progress, bool *ret_over,
                                 struct err *err);
void pipeline_clear_play_off(struct pipeline *p);

// ---- pipeline_measure.c ----

// Why a candidate was measured: its batch's decisions, a look back, or a draw at the end.
enum contender { CONTENDER_OF_BATCH, CONTENDER_RECONSIDERED, CONTENDER_DRAWN };

// The best of candidates first … last that were measured for this reason, seems to beat the
// incumbent and was not replicated; 0: none.
uint64_t pipeline_find_contender(const struct pipeline *p, uint64_t first, uint64_t last,
                                 enum contender which);
void pipeline_replicate(struct pipeline *p, uint64_t id);
// Records what came of a candidate's first measurement, which is decided. Clears the event.
MUST_CHECK int pipeline_record_measured(struct pipeline *p, uint64_t id, struct job_ref ref,
                                        struct run_measured *event, struct err *err);

// ---- pipeline_propose.c ----

// Stores a source and appends the candidate's proposal. Fills in the event's digest of the source
// and the candidate that it duplicates; the caller fills in the rest. Clears the event.
MUST_CHECK int pipeline_record_proposal(struct pipeline *p, struct run_proposed *event,
                                        const void *source, size_t len, struct err *err);

// Adds one candidate's decision, and its seconds when they are visible.
void spent_add(struct spent *spent, const struct run_state_candidate *candidate, bool visible);
struct spent spent_count(const struct pipeline *p, uint64_t visible, uint64_t last);
// What decisions about this batch see as used: by candidates 1 … last, and by those behind it.
struct spent spent_seen(const struct pipeline *p, uint64_t batch, uint64_t last);
// The limit that one more measurement would exceed, as a sentence, malloc'd; NULL when there is
// none. A measurement whose seconds are not known counts as the mean of the known ones, and while
// none is known a budget of device seconds ends nothing: it is exceeded by what was under way then,
// the measurements of as many batches as the lag.
char *spent_limit(const struct pipeline *p, const struct spent *spent);

#endif
