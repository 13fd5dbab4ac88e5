// The parts of a daemon pool that its own files share; nobody else includes this. daemon_pool.c has
// the interface, daemon_pool_jobs.c decides which daemon gets which job, daemon_pool_members.c
// watches how daemons come and go.
#ifndef CLIENT_POOL_DAEMON_POOL_STATE_H
#define CLIENT_POOL_DAEMON_POOL_STATE_H

#include "client/pool/daemon_pool.h"
#include "client/pool/hosts.h"
#include <uthash.h>
#include <utlist.h>

enum member_state {
    MEMBER_NEW,      // has not answered yet
    MEMBER_ACTIVE,   // answers, and takes jobs as far as it has devices
    MEMBER_AWAY,     // was active and does not answer
    MEMBER_EXCLUDED, // cannot be used: another version, or no devices of the class
};

// A daemon of the pool.
struct member {
    struct daemon_pool *daemon_pool;
    size_t index; // in daemon_pool->member
    char *url;
    char *name; // host name that its certificate must show, see struct host; NULL: none
    struct remote *remote;
    struct job_client *client;
    enum member_state state;
    bool listed;            // --pool still names it; otherwise it gets no new jobs
    bool settled;           // has answered or failed at least once
    bool polling;           // a HELLO or STATUS is under way
    bool keys_known;        // it was asked which jobs of the search it has
    bool reported;          // it was said that it does not answer or is left out
    uint64_t poll_ns;       // next poll, not before
    uint64_t heard_ns;      // last answer
    uint64_t unanswered_ms; // time that polls have waited or failed while this program ran
    struct status status;   // the latest answer
    bool has_status;
    struct err why;     // the last failure
    size_t devices;     // devices of the class that take jobs now
    size_t submissions; // submissions whose outcome is wanted
};

// A job that was given to one daemon. A job may have several of these, at different daemons.
struct submission {
    struct submission *next, *prev; // in daemon_pool->submission
    struct member *member;
    struct daemon_pool_job *job; // NULL when its outcome is not wanted any more
    bool drop;                   // it is to be cancelled at the daemon
    struct job_client_job *sent; // the job as the member's client knows it
};

struct daemon_pool_job {
    struct daemon_pool_job *next, *prev; // in daemon_pool->job, in order of submission
    char *key;
    struct job_spec spec; // a deep copy
    uint64_t priority;
    job_service_callback *callback;
    void *owner;
    uint64_t tag;
    uint64_t tried;   // one bit for each member that was given the job
    struct err error; // of the last member that refused it
};

// The daemon where something is known to be: a job's key, or what a candidate was compiled into.
struct job_location {
    char *name; // the key, or the digest of the candidate's source in hex
    struct member *member;
    bool done; // the job is over there
    UT_hash_handle hh;
};

struct daemon_pool_blob {
    struct digest digest;
    struct bytes data;
    UT_hash_handle hh;
};

struct daemon_pool {
    struct job_service jobs;
    struct session *session;
    char *search;
    bool several;   // there may be several daemons; else the only one is member[0]
    bool connected; // daemon_pool_create has succeeded
    bool closing;   // outcomes are not wanted any more and stay at their daemons
    struct daemon_pool_times times;
    struct job_client_terms terms;
    struct status_question *question; // of daemon_pool_waiting; NULL: none is under way
    struct hosts *hosts;
    struct member *member[HOSTS_MAX];
    size_t count;
    char *device_class; // NULL until daemon_pool_choose, and with a single daemon
    char *chosen_class; // the class of the device that was chosen; NULL until then
    struct daemon_pool_job *job;
    size_t job_count;
    struct submission *submission;
    struct job_location
        *key; // uthash: where the search's jobs are that an earlier client submitted
    struct job_location *compiled; // uthash: where this client's candidates were compiled
    struct daemon_pool_blob *blob;
    uv_timer_t *timer;             // NULL for one daemon; freed by its close callback
    uint64_t look_up_ns;           // next look-up of names
    uint64_t none_active_since_ns; // since when no member is active; 0: one is
    struct err look_up;            // why a name could not be looked up
    struct err unusable;           // why a url could not become a member: the first such url
    struct err error;              // why the pool has given up
    int (*read)(void *owner, const struct digest *digest, struct bytes *ret, struct err *err);
    void *read_owner;
    void (*notice)(void *owner, const char *sentence);
    void *notice_owner;
};

// ---- daemon_pool.c ----

// Says a sentence to whoever listens (daemon_pool_set_notice).
__attribute__((format(printf, 2, 3))) void daemon_pool_say(struct daemon_pool *daemon_pool,
                                                           const char *format, ...);

// The blob reader of the members' clients; owner is the pool.
int daemon_pool_read_blob(void *owner, const struct digest *digest, struct bytes *ret,
                          struct err *err);

// ---- daemon_pool_waiting.c ----

// Makes the answer to a question that is under way unwanted.
void daemon_pool_forget_question(struct daemon_pool *daemon_pool);

// ---- daemon_pool_jobs.c ----

// Gives the job to a member that has not had it. Without such a member the job waits for one.
void daemon_pool_assign(struct daemon_pool *daemon_pool, struct daemon_pool_job *job);
// Assigns all jobs that no active member has.
void daemon_pool_assign_waiting(struct daemon_pool *daemon_pool);
// Gives the member's unfinished jobs to others as well; with waiting_only just those measurements
// that are not running. Returns how many.
size_t daemon_pool_resubmit(struct member *member, bool waiting_only);
// Gives a member that has come measurements that wait at others, so that it does not idle until the
// next ones are submitted.
void daemon_pool_take_over(struct member *member);
// Removes the job without a callback, and cancels it where it was submitted.
void daemon_pool_drop(struct daemon_pool *daemon_pool, struct daemon_pool_job *job);
// Treats all jobs of a member that cannot be used any more as refused.
void daemon_pool_fail_submissions(struct member *member, const struct err *error);
// Learns which of the search's jobs the member has.
void daemon_pool_learn_keys(struct member *member, const struct status *status);
// Frees all jobs, without callbacks.
void daemon_pool_forget_jobs(struct daemon_pool *daemon_pool);
// Frees all submissions. The members' clients must be closed or have dropped their jobs.
void daemon_pool_forget_submissions(struct daemon_pool *daemon_pool);
void daemon_pool_forget_locations(struct daemon_pool *daemon_pool);

// ---- daemon_pool_members.c ----

// Adds a member over the connection, which it takes over. NULL when there are too many members; the
// connection then stays the caller's.
struct member *daemon_pool_add_member(struct daemon_pool *daemon_pool, const char *url,
                                      struct remote *remote);
void daemon_pool_free_member(struct member *member);
// Takes a status over, and clears the caller's.
void daemon_pool_set_status(struct member *member, struct status *status);
// Decides whether the member can be given jobs, now that the class is known, and says why not.
void daemon_pool_check_member(struct member *member);
// Starts the look-up of --pool and the polls, and repeats both from then on.
void daemon_pool_start(struct daemon_pool *daemon_pool);
// Says once why a member does not answer or is left out.
void daemon_pool_report_failure(struct member *member);
// The number of members that have neither answered nor failed yet.
size_t daemon_pool_unsettled(const struct daemon_pool *daemon_pool);

#endif
