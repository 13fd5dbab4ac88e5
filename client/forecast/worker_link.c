// Looks for the worker.
//
//   AWAY ──(back-off is over)──▶ LOOKING ──(one of the urls answers HELLO)──▶ THERE
//    ▲                              │ (none does)                              │
//    └──────────────────────────────┴────────────(lost)────────────────────────┘
//
// LOOKING greets the urls one after the other; the first that answers is the worker. Only
// worker_link_create waits for this, so that a worker which is away costs the search nothing. The
// back-off doubles with each failed attempt and each loss until a call is answered: a HELLO alone
// does not show that the worker works.
//
// A connection that breaks while no call is under way is made again by net/rpc/remote.c at the next
// call, and another program may be listening by then. The number of the connection that was greeted
// is therefore kept, and a caller greets first when the connection has another number.
#include "client/forecast/worker_link.h"

#include "common/mem.h"
#include "common/version.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "kcast-worker"
#define BACKOFF_MIN_MS 250
#define BACKOFF_MAX_MS 30000
#define LOST_FACTOR 16 // a worker that hangs may cost one part in so many of the time

enum presence { AWAY, LOOKING, THERE };

struct worker_link {
    struct session *session;
    struct remote **remote; // one for each usable url
    size_t count;
    size_t at; // index of the one that is greeted (LOOKING) or is the worker (THERE)
    enum presence presence;
    bool closing;
    uint64_t greeted;    // number of the connection that answered HELLO
    uint64_t backoff_ms; // wait before the next attempt
    uv_timer_t *timer;   // freed by its close callback
    struct err why;      // why the last url that was tried is no worker
    struct worker_abilities abilities;
    bool known;                     // the worker has said its abilities
    worker_link_callback *callback; // of worker_link_greet; NULL when none is under way
    void *owner;                    // of the callback
};

static remote_callback on_found;

// ---- presence ----

static void on_due(uv_timer_t *timer)
{
    struct worker_link *link = timer->data;
    link->presence = LOOKING;
    link->at = 0;
    remote_hello(link->remote[0], PROGRAM, on_found, link);
}

static void go_away(struct worker_link *link, uint64_t least_ms)
{
    uint64_t wait_ms = link->backoff_ms > least_ms ? link->backoff_ms : least_ms;
    link->presence = AWAY;
    link->backoff_ms =
        link->backoff_ms * 2 < BACKOFF_MAX_MS ? link->backoff_ms * 2 : BACKOFF_MAX_MS;
    if (link->count > 0) {
        uv_timer_start(link->timer, on_due, wait_ms, 0);
    }
}

// Takes over what a worker says about itself. Old workers only name their engine as a feature; in
// these every engine but "static" reads sources.
static void learn(struct worker_link *link, struct hello_reply *hello)
{
    struct remote *remote = link->remote[link->at];
    message_clear(&worker_abilities_message, &link->abilities);
    if (hello->worker) {
        link->abilities = *hello->worker;
        message_init(&worker_abilities_message, hello->worker);
    } else if (hello->features_count > 0) {
        bool models = strcmp(hello->features[0], "static") != 0;
        link->abilities = (struct worker_abilities){.engine = xstrdup(hello->features[0]),
                                                    .reads_sources = models,
                                                    .proposes = models,
                                                    .forecast_seconds = NAN};
    }
    link->known = link->abilities.engine;
    link->greeted = remote_connection(remote);
    link->presence = THERE;
}

// ---- looking ----

static void on_found(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct worker_link *link = owner;
    (void)retry_after_ms;
    if (link->closing) {
        return;
    }
    if (!error) {
        learn(link, reply);
        return;
    }
    link->why = *error;
    if (++link->at < link->count) {
        remote_hello(link->remote[link->at], PROGRAM, on_found, link);
    } else {
        go_away(link, 0);
    }
}

static void on_greeted(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct worker_link *link = owner;
    worker_link_callback *callback = link->callback;
    (void)retry_after_ms;
    if (link->closing) {
        return;
    }
    link->callback = NULL;
    if (!error) {
        learn(link, reply);
    } else {
        go_away(link, 0);
    }
    callback(link->owner, error);
}

// ---- urls ----

static void add_url(struct worker_link *link, const char *url)
{
    err_clear(&link->why);
    struct remote *remote;
    if (session_remote(link->session, url, &remote, &link->why) == 0) {
        link->remote = xrealloc(link->remote, link->count + 1, sizeof(struct remote *));
        link->remote[link->count++] = remote;
    }
}

static void add_urls(struct worker_link *link, const char *urls)
{
    while (*urls != '\0') {
        size_t len = strcspn(urls, ",");
        if (len > 0) {
            char *url = xstrndup(urls, len);
            add_url(link, url);
            free(url);
        }
        urls += len + (urls[len] == ',');
    }
}

// The private worker, too, gets a connection of its own here, which ends with the link.
static void add_local(struct worker_link *link)
{
    struct remote *worker;
    if (session_worker(link->session, &worker, &link->why) == 0) {
        add_url(link, remote_url(worker));
    }
}

// ---- interface ----

struct worker_link *worker_link_create(struct session *session, struct err *ret_why)
{
    const struct session_options *options = session_options(session);
    struct worker_link *link = xcalloc(1, sizeof(*link));
    link->session = session;
    link->backoff_ms = BACKOFF_MIN_MS;
    link->timer = xcalloc(1, sizeof(*link->timer));
    uv_timer_init(session_loop(session), link->timer);
    link->timer->data = link;
    err_set(&link->why, ERR_USAGE, "no address of a " PROGRAM " is given");
    if (options->local) {
        add_local(link);
    } else {
        add_urls(link, options->worker ? options->worker : KCAST_DEFAULT_WORKER);
    }
    if (link->count > 0) {
        on_due(link->timer);
    }
    while (link->presence == LOOKING && !session_interrupted(session)) {
        uv_run(session_loop(session), UV_RUN_ONCE);
    }
    if (link->presence != THERE) {
        *ret_why = link->why;
    }
    return link;
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

void worker_link_free(struct worker_link *link)
{
    if (!link) {
        return;
    }
    link->closing = true;
    for (size_t i = 0; i < link->count; i++) {
        remote_close(link->remote[i]);
    }
    uv_close((uv_handle_t *)link->timer, free_handle);
    message_clear(&worker_abilities_message, &link->abilities);
    free(link->remote);
    free(link);
}

struct remote *worker_link_remote(const struct worker_link *link)
{
    return link->presence == THERE ? link->remote[link->at] : NULL;
}

bool worker_link_is_greeted(const struct worker_link *link)
{
    return link->presence == THERE && link->greeted != 0 &&
           link->greeted == remote_connection(link->remote[link->at]);
}

const struct worker_abilities *worker_link_abilities(const struct worker_link *link)
{
    return link->known ? &link->abilities : NULL;
}

void worker_link_greet(struct worker_link *link, worker_link_callback *callback, void *owner)
{
    link->callback = callback;
    link->owner = owner;
    remote_hello(link->remote[link->at], PROGRAM, on_greeted, link);
}

void worker_link_lost(struct worker_link *link, uint64_t waited_ms)
{
    if (link->presence == THERE) {
        go_away(link, waited_ms * LOST_FACTOR);
    }
}

void worker_link_answered(struct worker_link *link)
{
    link->backoff_ms = BACKOFF_MIN_MS;
}
