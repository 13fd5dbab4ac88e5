// Watches how daemons come and go.
//
//          HELLO, STATUS                  no answer for `away`
//   NEW ─────────────────▶ ACTIVE ──────────────────────────────▶ AWAY
//    │                      │  ▲                                    │
//    └─────▶ EXCLUDED ◀─────┘  └──────────────(answers)─────────────┘
//
// A tick looks at all members. Each is asked for its STATUS every `poll` ms, after a HELLO, which
// fails at once where nobody listens and notices when another program has taken the address.
// Silence means that polls fail or wait. It counts only after POLL_LEAST_MS in which this program
// ran, so that a client which was stopped for an hour does not take every daemon for lost. An
// excluded member is polled again once a minute, unless its job client has given up.
#include "client/pool/daemon_pool_state.h"

#include "client/pool/device_choice.h"
#include "common/clock.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

#define STATUS_MS 5000   // deadline of STATUS
#define EXCLUDED_MS 5000 // between two polls of an excluded member
#define TICK_MS 200
#define POLL_LEAST_MS 5000 // a poll that waits ends nothing earlier

static uint64_t now_ns(const struct daemon_pool *daemon_pool)
{
    return clock_now_ns(daemon_pool->times.clock);
}

static void say_nothing(void *owner, const char *sentence)
{
    (void)owner;
    (void)sentence;
}

// ---- life ----

struct member *daemon_pool_add_member(struct daemon_pool *daemon_pool, const char *url,
                                      struct remote *remote)
{
    if (daemon_pool->count == HOSTS_MAX) {
        return NULL;
    }
    struct member *member = xcalloc(1, sizeof(*member));
    member->daemon_pool = daemon_pool;
    member->index = daemon_pool->count;
    member->url = xstrdup(url);
    member->remote = remote;
    member->listed = true;
    member->client = job_client_create(daemon_pool->session, remote, daemon_pool->search);
    job_client_set_terms(member->client, &daemon_pool->terms);
    job_client_set_blob_reader(member->client, daemon_pool_read_blob, daemon_pool);
    if (daemon_pool->several) {
        job_client_set_patience(member->client, UINT64_MAX);
        job_client_set_notice(member->client, say_nothing, NULL);
    } else {
        job_client_set_patience(member->client, daemon_pool->times.patience);
    }
    daemon_pool->member[daemon_pool->count++] = member;
    return member;
}

void daemon_pool_free_member(struct member *member)
{
    if (member->daemon_pool->several) { // a single connection is the session's
        remote_close(member->remote);
    }
    if (member->has_status) {
        message_clear(&status_message, &member->status);
    }
    free(member->name);
    free(member->url);
    free(member);
}

void daemon_pool_report_failure(struct member *member)
{
    if (member->daemon_pool->connected && !member->reported && member->why.code != ERR_NONE) {
        member->reported = true;
        daemon_pool_say(member->daemon_pool,
                        member->state == MEMBER_EXCLUDED
                            ? "%s; it is left out"
                            : "%s; going on without it until it answers",
                        member->why.text);
    }
}

static void exclude(struct member *member, const struct err *why)
{
    struct err error = *why;
    bool was_in = member->state == MEMBER_ACTIVE || member->state == MEMBER_AWAY;
    member->state = MEMBER_EXCLUDED;
    member->why = error;
    member->poll_ns = now_ns(member->daemon_pool) + EXCLUDED_MS * NS_PER_MS;
    daemon_pool_report_failure(member);
    if (was_in) {
        daemon_pool_fail_submissions(member, &error);
    }
}

static void activate(struct member *member)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    bool returned = member->state == MEMBER_AWAY || member->reported;
    member->state = MEMBER_ACTIVE;
    member->reported = false;
    daemon_pool->none_active_since_ns = 0;
    err_clear(&member->why);
    if (returned) {
        daemon_pool_say(daemon_pool, "%s answers and takes jobs", member->url);
    }
    daemon_pool_take_over(member);
}

void daemon_pool_check_member(struct member *member)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    if (job_client_error(member->client)) {
        return;
    }
    size_t all;
    member->devices = device_count(&member->status, daemon_pool->device_class, &all);
    struct err why = ERR_INIT;
    if (all == 0) {
        err_set(&why, ERR_INVALID, "%s has no device of class \"%.200s\"", member->url,
                daemon_pool->device_class);
        exclude(member, &why);
        return;
    }
    if (member->state != MEMBER_ACTIVE) {
        activate(member);
    }
    size_t moved = member->devices == 0 ? daemon_pool_resubmit(member, true) : 0;
    if (moved > 0) {
        daemon_pool_say(daemon_pool, "the devices of %s rest; %zu of its jobs go to others",
                        member->url, moved);
    }
    daemon_pool_assign_waiting(daemon_pool);
}

static void mark_away(struct member *member)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    member->state = MEMBER_AWAY;
    member->keys_known = false;
    size_t jobs = member->submissions, moved = daemon_pool_resubmit(member, false);
    if (jobs == 0) {
        daemon_pool_say(daemon_pool, "%s; going on without it", member->why.text);
    } else {
        daemon_pool_say(daemon_pool,
                        moved > 0 ? "%s; %zu of its %zu jobs go to others"
                                  : "%s; waiting for it, or for others, to come back",
                        member->why.text, moved, jobs);
    }
}

// ---- polls ----

static bool is_incompatible(const struct err *error)
{
    return error->code == ERR_VERSION || error->code == ERR_PROTOCOL ||
           error->code == ERR_UNSUPPORTED || error->code == ERR_DENIED;
}

// Whether the member has not answered for `away` ms, during which this program ran for least_ms.
static bool lacks_liveness(const struct member *member, uint64_t least_ms, uint64_t now)
{
    return member->unanswered_ms >= least_ms &&
           now - member->heard_ns >= member->daemon_pool->times.away * NS_PER_MS;
}

static void on_failed(struct member *member, const struct err *error)
{
    const struct daemon_pool *daemon_pool = member->daemon_pool;
    uint64_t away_ms = daemon_pool->times.away;
    uint64_t failing_least_ms = away_ms < POLL_LEAST_MS ? away_ms : POLL_LEAST_MS;
    uint64_t now = now_ns(daemon_pool);
    member->polling = false;
    member->settled = true;
    // An active member is polled sooner, as this may be a restart or the beginning of an outage.
    member->poll_ns =
        now + daemon_pool->times.poll * NS_PER_MS / (member->state == MEMBER_ACTIVE ? 4 : 1);
    member->why = *error;
    if (is_incompatible(error)) {
        exclude(member, error);
    } else if (member->state == MEMBER_ACTIVE && lacks_liveness(member, failing_least_ms, now)) {
        mark_away(member);
    } else if (member->state == MEMBER_NEW) {
        daemon_pool_report_failure(member);
    }
}

void daemon_pool_set_status(struct member *member, struct status *status)
{
    struct daemon_pool *daemon_pool = member->daemon_pool;
    if (!member->keys_known) {
        daemon_pool_learn_keys(member, status);
        member->keys_known = true;
    }
    if (member->has_status) {
        message_clear(&status_message, &member->status);
    }
    member->status = *status;
    *status = (struct status){0};
    member->has_status = member->settled = true;
    member->polling = false;
    member->heard_ns = now_ns(daemon_pool);
    member->unanswered_ms = 0;
    if (member->state == MEMBER_ACTIVE) {
        err_clear(&member->why);
    }
    member->poll_ns = member->heard_ns + daemon_pool->times.poll * NS_PER_MS;
    if (daemon_pool->device_class) {
        daemon_pool_check_member(member);
    }
}

static void on_status(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct member *member = owner;
    (void)retry_after_ms;
    if (member->daemon_pool->closing) {
        return;
    }
    if (error) {
        on_failed(member, error);
    } else {
        daemon_pool_set_status(member, reply);
    }
}

static void on_hello(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct member *member = owner;
    struct daemon_pool *daemon_pool = member->daemon_pool;
    (void)retry_after_ms;
    (void)reply;
    if (daemon_pool->closing) {
        return;
    }
    if (error) {
        on_failed(member, error);
        return;
    }
    struct status_request request = {.search = member->keys_known ? NULL : daemon_pool->search};
    remote_call(member->remote, OP_STATUS, &status_request_message, &request, &status_message,
                STATUS_MS, on_status, member);
}

static void poll_member(struct member *member)
{
    member->polling = true;
    remote_hello(member->remote, "kcastd", on_hello, member);
}

// ---- names ----

static void on_host(struct daemon_pool *daemon_pool, const struct host *host)
{
    for (size_t i = 0; i < daemon_pool->count; i++) {
        if (host_is_same(host, daemon_pool->member[i]->url, daemon_pool->member[i]->name)) {
            daemon_pool->member[i]->listed = true;
            return;
        }
    }
    struct err err = ERR_INIT;
    struct remote *remote;
    if (session_remote(daemon_pool->session, host->url, &remote, &err) != 0) {
        if (daemon_pool->connected && daemon_pool->unusable.code == ERR_NONE) {
            daemon_pool_say(daemon_pool, "%s", err.text);
        }
        daemon_pool->unusable =
            daemon_pool->unusable.code == ERR_NONE ? err : daemon_pool->unusable;
        return;
    }
    if (host->name) {
        remote_expect(remote, host->name);
    }
    struct member *member = daemon_pool_add_member(daemon_pool, host->url, remote);
    if (!member) { // too many members have come and gone
        remote_close(remote);
    } else {
        member->name = host->name ? xstrdup(host->name) : NULL;
        poll_member(member);
    }
}

static void on_hosts(void *owner, const struct host *host, size_t count, const struct err *why)
{
    struct daemon_pool *daemon_pool = owner;
    if (why->code != ERR_NONE && daemon_pool->look_up.code == ERR_NONE && daemon_pool->connected) {
        daemon_pool_say(daemon_pool, "%s", why->text);
    }
    daemon_pool->look_up = *why;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        daemon_pool->member[i]->listed = false;
    }
    for (size_t i = 0; i < count; i++) {
        on_host(daemon_pool, &host[i]);
    }
    daemon_pool->look_up_ns = now_ns(daemon_pool) + daemon_pool->times.look_up * NS_PER_MS;
}

// ---- time ----

static void check_liveness(struct member *member, uint64_t now)
{
    uint64_t away_ms = member->daemon_pool->times.away;
    if (member->polling || member->why.code != ERR_NONE) {
        member->unanswered_ms += TICK_MS;
    }
    if (member->state == MEMBER_ACTIVE && lacks_liveness(member, POLL_LEAST_MS, now)) {
        if (member->why.code == ERR_NONE) {
            err_set(&member->why, ERR_UNREACHABLE, "%s has not answered for %llu s", member->url,
                    (unsigned long long)away_ms / 1000);
        }
        mark_away(member);
    }
}

static void tick_member(struct member *member, uint64_t now)
{
    const struct err *error = job_client_error(member->client);
    if (error && member->state != MEMBER_EXCLUDED) {
        exclude(member, error);
    }
    check_liveness(member, now);
    // A member that is not active and that no name supplies any more is not polled.
    bool in_use = member->listed || member->state == MEMBER_ACTIVE;
    if (!member->polling && !error && in_use && now >= member->poll_ns) {
        poll_member(member);
    }
}

static void check_all_away(struct daemon_pool *daemon_pool, uint64_t now)
{
    const struct member *last = NULL;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        if (daemon_pool->member[i]->state == MEMBER_ACTIVE) {
            return;
        }
        if (daemon_pool->member[i]->why.code != ERR_NONE) {
            last = daemon_pool->member[i];
        }
    }
    if (daemon_pool->none_active_since_ns == 0) {
        daemon_pool->none_active_since_ns = now;
    } else if (now - daemon_pool->none_active_since_ns >= daemon_pool->times.patience * NS_PER_MS &&
               last) {
        err_set(&daemon_pool->error, last->why.code,
                "none of the daemons of --pool is there any more: %s", last->why.text);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct daemon_pool *daemon_pool = timer->data;
    uint64_t now = now_ns(daemon_pool);
    uv_stop(timer->loop);
    for (size_t i = 0; i < daemon_pool->count; i++) {
        tick_member(daemon_pool->member[i], now);
    }
    if (!hosts_are_looked_up(daemon_pool->hosts) && hosts_may_change(daemon_pool->hosts) &&
        now >= daemon_pool->look_up_ns) {
        hosts_look_up(daemon_pool->hosts, session_loop(daemon_pool->session), on_hosts,
                      daemon_pool);
    }
    if (daemon_pool->device_class) {
        check_all_away(daemon_pool, now);
    }
}

void daemon_pool_start(struct daemon_pool *daemon_pool)
{
    uv_loop_t *loop = session_loop(daemon_pool->session);
    daemon_pool->timer = xcalloc(1, sizeof(*daemon_pool->timer));
    uv_timer_init(loop, daemon_pool->timer);
    daemon_pool->timer->data = daemon_pool;
    uv_timer_start(daemon_pool->timer, on_tick, TICK_MS, TICK_MS);
    hosts_look_up(daemon_pool->hosts, loop, on_hosts, daemon_pool);
}

size_t daemon_pool_unsettled(const struct daemon_pool *daemon_pool)
{
    size_t count = hosts_are_looked_up(daemon_pool->hosts) && daemon_pool->count == 0;
    for (size_t i = 0; i < daemon_pool->count; i++) {
        count += !daemon_pool->member[i]->settled;
    }
    return count;
}
