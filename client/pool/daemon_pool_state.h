// The inside of a daemon pool, for the daemon pool*.c files only: daemon pool.c has the interface, daemon_pool_jobs.c which
// daemon has which job, daemon_pool_members.c how daemons come and go.
#ifndef CLIENT_POOL_DAEMON_POOL_STATE_H
#define CLIENT_POOL_DAEMON_POOL_STATE_H

#include "client/pool/daemon_pool.h"
#include "client/pool/hosts.h"
#include <uthash.h>
#include <utlist.h>

enum member_state {
    MEMBER_NEW,  // has not answered yet
    MEMBER_IN,   // takes jobs, as far as it has devices
    MEMBER_AWAY, // was in, does not answer
    MEMBER_OUT,  // cannot be used: another version, other devices
};

struct member {
    struct daemon_pool *daemon_pool;
    size_t index; // in daemon pool->member
    char *url;
    char *name; // of its host, see struct host; NULL: none
    struct remote *remote;
    struct job_client *client;
    enum member_state state;
    bool listed;            // --pool still names it; others get no new jobs
    bool settled;           // has answered or failed for the first time
    bool polling;           // a HELLO or STATUS is under way
    bool keys_known;        // it was asked for the search's jobs
    bool named;             // it was said that it is left out, or does not answer
    uint64_t poll_ns;       // not before
    uint64_t heard_ns;      // last answer
    uint64_t unanswered_ms; // without one to polls, or with failures, while this program ran
    struct status status;   // the latest
    bool has_status;
    struct err why;     // the last failure
    size_t devices;     // of the class, that take jobs
    size_t submissions; // wanted ones
};

// One submission of a job to one daemon.
struct submission {
    struct submission *next, *prev; // in daemon pool->submission
    struct member *member;
    struct daemon_pool_job *job; // NULL: its outcome is not wanted any more
    bool drop;                   // to be taken back from the daemon
    struct job_client_job *sent; // as the member's pool knows it
};

struct daemon_pool_job {
    struct daemon_pool_job *next, *prev; // in daemon pool->job, in order of submission
    char *key;
    struct job_spec spec; // deep copy
    uint64_t priority;
    job_service_callback *callback;
    void *owner;
    uint64_t tag;
    uint64_t tried;   // bits of the members that were given it
    struct err error; // of the last member that refused it
};

// Where something is: a key of the search, or what a candidate was compiled into.
struct job_location {
    char *name;            // key, or digest in hex
    struct member *member; // NULL: nowhere that is known
    bool done;             // the job is over there
    uint64_t avoid;        // bits of members where the job was cancelled
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
    bool several;
    bool begun;   // daemon_pool_create is over
    bool closing; // outcomes are not wanted any more, and stay at their daemons
    struct daemon_pool_times times;
    struct job_client_terms terms;
    struct hosts *hosts;
    struct member *member[HOSTS_MAX];
    size_t count;
    char *device_class; // NULL until daemon_pool_choose
    struct daemon_pool_job *job;
    size_t job_count;
    struct submission *submission;
    struct job_location *key;      // uthash: jobs of earlier sessions
    struct job_location *compiled; // uthash: compilations of this one
    struct daemon_pool_blob *blob;
    uv_timer_t *timer;   // NULL for one daemon; freed by its close callback
    uint64_t look_up_ns; // next look-up
    uint64_t alone_ns;   // since when no member is in; 0: one is
    struct err look_up;  // why a name could not be looked up
    struct err unusable; // why a url could not become a member: the first time
    struct err error;    // given up
    int (*read)(void *owner, const struct digest *digest, struct bytes *ret, struct err *err);
    void *read_owner;
    void (*notice)(void *owner, const char *sentence);
    void *notice_owner;
};

// ---- daemon pool.c ----

// A sentence for whoever listens (daemon_pool_set_notice).
__attribute__((format(printf, 2, 3))) void daemon_pool_say(struct daemon_pool *daemon_pool,
                                                           const char *format, ...);

// What pools get blobs by; owner is the daemon pool.
int daemon_pool_read_blob(void *owner, const struct digest *digest, struct bytes *ret,
                          struct err *err);

// ---- daemon_pool_jobs.c ----

// Gives the job to a member that has not had it; when none is there it waits for one.
void daemon_pool_assign(struct daemon_pool *daemon_pool, struct daemon_pool_job *job);
// All jobs that no member that answers has.
void daemon_pool_assign_waiting(struct daemon_pool *daemon_pool);
// Gives the member's unfinished jobs to others as well, waiting_only: those measurements that do
// not run. Returns how many.
size_t daemon_pool_move(struct member *member, bool waiting_only);
// The member, which is not IN any more, will not end its jobs: as if it had refused them.
void daemon_pool_lose_submissions(struct member *member, const struct err *error);
// Learns which of the search's jobs the member has.
void daemon_pool_learn_keys(struct member *member, const struct status *status);
// Forgets all jobs, without callbacks.
void daemon_pool_forget_jobs(struct daemon_pool *daemon_pool);
// The same of what daemons were given, when the pools are gone or have forgotten it, too.
void daemon_pool_forget_submissions(struct daemon_pool *daemon_pool);
void daemon_pool_forget_locations(struct daemon_pool *daemon_pool);

// ---- daemon_pool_members.c ----

// NULL when there are too many.
struct member *daemon_pool_add_member(struct daemon_pool *daemon_pool, const char *url,
                                      struct remote *remote);
void daemon_pool_free_member(struct member *member);
// Takes over a status, and clears it.
void daemon_pool_set_status(struct member *member, struct status *status);
// Whether the member can be given jobs, now that the class is known; says why not.
void daemon_pool_check_member(struct member *member);
// Looks up --pool, begins to poll, and goes on with both.
void daemon_pool_start(struct daemon_pool *daemon_pool);
// Says what is wrong with a member that does not answer, once.
void daemon_pool_complain(struct member *member);
// Members that have neither answered nor failed yet.
size_t daemon_pool_unsettled(const struct daemon_pool *daemon_pool);

#endif
