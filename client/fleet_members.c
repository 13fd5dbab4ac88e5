// How daemons come and go.
//
//        HELLO, STATUS                 silent for `away`
//   NEW ───────────────▶ IN ──────────────────────────────▶ AWAY
//    │                   │ ▲                                 │
//    └──────▶ OUT ◀──────┘ └─────────────(answers)───────────┘
//
// A tick looks at all members: each is asked for its STATUS every `poll`, after a HELLO, which
// fails at once where nobody listens, and because it may be another program by now. What counts as
// silence is only that polls fail, or that one waits, and for POLL_LEAST_MS while this program ran,
// so a client that was stopped for an hour does not think that everybody is away. OUT is looked at
// again once a minute, unless its pool has given up.
#include "client/fleet_state.h"

#include "client/device_choice.h"
#include "common/clock.h"
#include "common/mem.h"
#include <stdlib.h>
#include <string.h>

#define STATUS_MS 5000
#define OUT_MS 60000
#define TICK_MS 200
#define POLL_LEAST_MS 5000 // a poll is not called silence earlier

static uint64_t now_ns(void)
{
    return clock_now_ns(&clock_system);
}

static void say_nothing(void *owner, const char *sentence)
{
    (void)owner;
    (void)sentence;
}

// ---- life ----

struct member *fleet_add_member(struct fleet *fleet, const char *url, struct remote *remote)
{
    if (fleet->count == HOSTS_MAX) {
        return NULL;
    }
    struct member *member = xcalloc(1, sizeof(*member));
    member->fleet = fleet;
    member->index = fleet->count;
    member->url = xstrdup(url);
    member->remote = remote;
    member->listed = true;
    member->pool = pool_create_over(fleet->session, remote, fleet->search);
    pool_set_terms(member->pool, &fleet->terms);
    pool_set_blob_reader(member->pool, fleet_read_blob, fleet);
    if (fleet->several) {
        pool_set_patience(member->pool, UINT64_MAX);
        pool_set_notice(member->pool, say_nothing, NULL);
    } else {
        pool_set_patience(member->pool, fleet->times.patience);
    }
    fleet->member[fleet->count++] = member;
    return member;
}

void fleet_free_member(struct member *member)
{
    if (member->fleet->several) { // the session's otherwise
        remote_close(member->remote);
    }
    if (member->has_status) {
        message_clear(&status_message, &member->status);
    }
    free(member->name);
    free(member->url);
    free(member);
}

void fleet_complain(struct member *member)
{
    if (member->fleet->begun && !member->named && member->why.code != ERR_NONE) {
        member->named = true;
        fleet_say(member->fleet,
                  member->state == MEMBER_OUT ? "%s; it is left out"
                                              : "%s; going on without it until it answers",
                  member->why.text);
    }
}

static void leave_out(struct member *member, const struct err *why)
{
    struct err error = *why;
    bool was_in = member->state == MEMBER_IN || member->state == MEMBER_AWAY;
    member->state = MEMBER_OUT;
    member->why = error;
    member->poll_ns = now_ns() + OUT_MS * NS_PER_MS;
    fleet_complain(member);
    if (was_in) {
        fleet_lose_flights(member, &error);
    }
}

static void come_in(struct member *member)
{
    struct fleet *fleet = member->fleet;
    bool returned = member->state == MEMBER_AWAY || member->named;
    member->state = MEMBER_IN;
    member->named = false;
    fleet->alone_ns = 0;
    err_clear(&member->why);
    if (returned) {
        fleet_say(fleet, "%s answers and takes jobs", member->url);
    }
}

void fleet_judge(struct member *member)
{
    struct fleet *fleet = member->fleet;
    struct err why = ERR_INIT;
    size_t all;
    if (pool_error(member->pool) != NULL) {
        return;
    }
    member->devices = device_count(&member->status, fleet->device_class, &all);
    if (all == 0) {
        err_set(&why, ERR_INVALID, "%s has no device of class \"%.200s\"", member->url,
                fleet->device_class);
        leave_out(member, &why);
        return;
    }
    if (member->state != MEMBER_IN) {
        come_in(member);
    }
    size_t moved = member->devices == 0 ? fleet_move(member, true) : 0;
    if (moved > 0) {
        fleet_say(fleet, "the devices of %s rest; %zu of its jobs go to others", member->url,
                  moved);
    }
    fleet_place_waiting(fleet);
}

static void go_away(struct member *member)
{
    struct fleet *fleet = member->fleet;
    member->state = MEMBER_AWAY;
    member->keys_known = false;
    size_t jobs = member->flights, moved = fleet_move(member, false);
    if (jobs == 0) {
        fleet_say(fleet, "%s; going on without it", member->why.text);
    } else {
        fleet_say(fleet,
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

// For `away`, of which this program ran for least_ms.
static bool is_silent(const struct member *member, uint64_t least_ms, uint64_t now)
{
    return member->unanswered_ms >= least_ms &&
           now - member->heard_ns >= member->fleet->times.away * NS_PER_MS;
}

static void on_failed(struct member *member, const struct err *error)
{
    const struct fleet *fleet = member->fleet;
    uint64_t away_ms = fleet->times.away;
    uint64_t failing_least_ms = away_ms < POLL_LEAST_MS ? away_ms : POLL_LEAST_MS;
    uint64_t now = now_ns();
    member->polling = false;
    member->settled = true;
    // Sooner while it may be a restart, or the beginning of a silence.
    member->poll_ns = now + fleet->times.poll * NS_PER_MS / (member->state == MEMBER_IN ? 4 : 1);
    member->why = *error;
    if (is_incompatible(error)) {
        leave_out(member, error);
    } else if (member->state == MEMBER_IN && is_silent(member, failing_least_ms, now)) {
        go_away(member);
    } else if (member->state == MEMBER_NEW) {
        fleet_complain(member);
    }
}

void fleet_set_status(struct member *member, struct status *status)
{
    struct fleet *fleet = member->fleet;
    if (!member->keys_known) {
        fleet_learn_keys(member, status);
        member->keys_known = true;
    }
    if (member->has_status) {
        message_clear(&status_message, &member->status);
    }
    member->status = *status;
    *status = (struct status){0};
    member->has_status = member->settled = true;
    member->polling = false;
    member->heard_ns = now_ns();
    member->unanswered_ms = 0;
    if (member->state == MEMBER_IN) {
        err_clear(&member->why);
    }
    member->poll_ns = member->heard_ns + fleet->times.poll * NS_PER_MS;
    if (fleet->device_class != NULL) {
        fleet_judge(member);
    }
}

static void on_status(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct member *member = owner;
    (void)retry_after_ms;
    if (member->fleet->closing) {
        return;
    }
    if (error != NULL) {
        on_failed(member, error);
    } else {
        fleet_set_status(member, reply);
    }
}

static void on_hello(void *owner, const struct err *error, uint64_t retry_after_ms, void *reply)
{
    struct member *member = owner;
    struct fleet *fleet = member->fleet;
    (void)retry_after_ms;
    (void)reply;
    if (fleet->closing) {
        return;
    }
    if (error != NULL) {
        on_failed(member, error);
        return;
    }
    struct status_request request = {.search = member->keys_known ? NULL : fleet->search};
    remote_call(member->remote, OP_STATUS, &status_request_message, &request, &status_message,
                STATUS_MS, on_status, member);
}

static void poll_member(struct member *member)
{
    member->polling = true;
    remote_greet(member->remote, "kcastd", on_hello, member);
}

// ---- names ----

static void on_host(struct fleet *fleet, const struct host *host)
{
    struct err err = ERR_INIT;
    struct remote *remote;
    for (size_t i = 0; i < fleet->count; i++) {
        if (host_is_same(host, fleet->member[i]->url, fleet->member[i]->name)) {
            fleet->member[i]->listed = true;
            return;
        }
    }
    if (session_remote(fleet->session, host->url, &remote, &err) != 0) {
        if (fleet->begun && fleet->unusable.code == ERR_NONE) {
            fleet_say(fleet, "%s", err.text);
        }
        fleet->unusable = fleet->unusable.code == ERR_NONE ? err : fleet->unusable;
        return;
    }
    if (host->name != NULL) {
        remote_expect(remote, host->name);
    }
    struct member *member = fleet_add_member(fleet, host->url, remote);
    if (member == NULL) { // so many have come and gone
        remote_close(remote);
    } else {
        member->name = host->name != NULL ? xstrdup(host->name) : NULL;
        poll_member(member);
    }
}

static void on_hosts(void *owner, const struct host *host, size_t count, const struct err *why)
{
    struct fleet *fleet = owner;
    if (why->code != ERR_NONE && fleet->look_up.code == ERR_NONE && fleet->begun) {
        fleet_say(fleet, "%s", why->text);
    }
    fleet->look_up = *why;
    for (size_t i = 0; i < fleet->count; i++) {
        fleet->member[i]->listed = false;
    }
    for (size_t i = 0; i < count; i++) {
        on_host(fleet, &host[i]);
    }
    fleet->look_up_ns = now_ns() + fleet->times.look_up * NS_PER_MS;
}

// ---- time ----

static void look_for_silence(struct member *member, uint64_t now)
{
    uint64_t away_ms = member->fleet->times.away;
    if (member->polling || member->why.code != ERR_NONE) {
        member->unanswered_ms += TICK_MS;
    }
    if (member->state == MEMBER_IN && is_silent(member, POLL_LEAST_MS, now)) {
        if (member->why.code == ERR_NONE) {
            err_set(&member->why, ERR_UNREACHABLE, "%s has not answered for %llu s", member->url,
                    (unsigned long long)away_ms / 1000);
        }
        go_away(member);
    }
}

static void look_at(struct member *member, uint64_t now)
{
    const struct err *error = pool_error(member->pool);
    if (error != NULL && member->state != MEMBER_OUT) {
        leave_out(member, error);
    }
    look_for_silence(member, now);
    // One that is gone and that no name supplies any more is left alone.
    bool of_interest = member->listed || member->state == MEMBER_IN;
    if (!member->polling && error == NULL && of_interest && now >= member->poll_ns) {
        poll_member(member);
    }
}

static void look_for_the_end(struct fleet *fleet, uint64_t now)
{
    const struct member *last = NULL;
    for (size_t i = 0; i < fleet->count; i++) {
        if (fleet->member[i]->state == MEMBER_IN) {
            return;
        }
        if (fleet->member[i]->why.code != ERR_NONE) {
            last = fleet->member[i];
        }
    }
    if (fleet->alone_ns == 0) {
        fleet->alone_ns = now;
    } else if (now - fleet->alone_ns >= fleet->times.patience * NS_PER_MS && last != NULL) {
        err_set(&fleet->error, last->why.code,
                "none of the daemons of --pool is there any more: %s", last->why.text);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct fleet *fleet = timer->data;
    uint64_t now = now_ns();
    uv_stop(timer->loop);
    for (size_t i = 0; i < fleet->count; i++) {
        look_at(fleet->member[i], now);
    }
    if (!hosts_are_looked_up(fleet->hosts) && hosts_have_names(fleet->hosts) &&
        now >= fleet->look_up_ns) {
        hosts_look_up(fleet->hosts, session_loop(fleet->session), on_hosts, fleet);
    }
    if (fleet->device_class != NULL) {
        look_for_the_end(fleet, now);
    }
}

void fleet_start(struct fleet *fleet)
{
    uv_loop_t *loop = session_loop(fleet->session);
    fleet->timer = xcalloc(1, sizeof(*fleet->timer));
    uv_timer_init(loop, fleet->timer);
    fleet->timer->data = fleet;
    uv_timer_start(fleet->timer, on_tick, TICK_MS, TICK_MS);
    hosts_look_up(fleet->hosts, loop, on_hosts, fleet);
}

size_t fleet_unsettled(const struct fleet *fleet)
{
    size_t count = hosts_are_looked_up(fleet->hosts) && fleet->count == 0;
    for (size_t i = 0; i < fleet->count; i++) {
        count += !fleet->member[i]->settled;
    }
    return count;
}
