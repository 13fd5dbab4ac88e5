// Design note. How many connections there may be:
//
//   strangers        not identified: a quarter of connections_max, beyond which one of the host
//                    that has most of them goes. With tokens they have these places beside the
//                    others, so that whoever has a token can always come in and show it.
//   of one tenant    a quarter of connections_max.
//   ordinary ones    of all tenants together: connections_max without the places for administrators.
//
// When a connection is one too many, another one gives way: of its own tenant, or of the party that
// has most of them. Without tokens everybody is the same tenant, and the oldest stranger goes, or
// else a connection of anybody. Of those in question the first to go is one that has nothing under
// way, then one that has been stuck with something for STUCK_MS, then any; always the one whose
// last request is longest ago. A caller makes its connection again when it needs it, by the same
// keys, so nothing is lost by that. So nobody can keep anybody out by holding connections.
#include "net/rpc/service_state.h"

#include "common/mem.h"
#include "common/version.h"
#include "net/rpc/old_framing.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <utlist.h>

#define PARTS 4        // strangers, and each tenant, may have one in so many of the connections
#define ADMIN_PARTS 32 // one in so many is kept for administrators
#define STUCK_MS 10000

bool connection_is_identified(const struct connection *connection)
{
    return connection->greeted &&
           (connection->holder.known || !connection->service->identity.tokens);
}

// --- counts

// Adds or takes away a connection by what it is just now.
static void count(struct connection *connection, bool add)
{
    struct service *service = connection->service;
    size_t one = add ? 1 : (size_t)-1;

    service->connection_count += one;
    connection->party->connections += one;
    service->stranger_count += connection->rank == RANK_STRANGER ? one : 0;
    service->ordinary_count += connection->rank == RANK_ORDINARY ? one : 0;
}

void connection_end(struct connection *connection, enum err_code code, const char *reason)
{
    if (!connection->ended) {
        connection->ended = true;
        count(connection, false);
        serving_forget(connection);
        stream_end(connection->stream, code, reason);
    }
}

void connection_free(struct connection *connection)
{
    struct service *service = connection->service;
    struct party *party = connection->party;

    if (!connection->ended) {
        connection->ended = true;
        count(connection, false);
    }
    serving_forget(connection);
    DL_DELETE(service->connections, connection);
    party_count_incoming(service, party, &connection->incoming, 0);
    party_count_unsent(service, party, &connection->unsent, 0);
    exchanges_leave(service, connection);
    party->uses--;
    party_release(service, party);
    free(connection);
}

// --- which one gives way

// 0: it has nothing under way; 1: it has been stuck for a while; 2: neither.
static int business(const struct connection *connection)
{
    const struct service *service = connection->service;

    if (connection->exchanges > 0) {
        return 2;
    }
    if (connection->unsent == 0 && stream_unread(connection->stream) == 0) {
        return 0;
    }
    return connection->served_ms + STUCK_MS <= uv_now(service->loop) ? 1 : 2;
}

// Returns the connection of the party, or with NULL of anybody, that is to give way to `except`.
static struct connection *find_least(struct service *service, const struct party *party,
                                     const struct connection *except)
{
    struct connection *least = NULL;
    struct connection *connection;
    int least_business = 3;

    // The list is in the order in which they were served.
    DL_FOREACH (service->connections, connection) {
        if (connection == except || connection->ended || (party && connection->party != party)) {
            continue;
        }
        int its = business(connection);
        if (its < least_business) {
            least = connection;
            least_business = its;
        }
        if (its == 0) {
            break;
        }
    }
    return least;
}

static void give_way(struct service *service, const struct party *party,
                     const struct connection *except, const char *reason)
{
    struct connection *least = find_least(service, party, except);

    if (least) {
        connection_end(least, ERR_BUSY, reason); // on_end tells of it
    }
}

// Returns the party with most connections: of tenants, or of strangers and their hosts.
static struct party *find_largest(struct service *service, bool strangers)
{
    struct party *largest = NULL;

    for (struct party *party = service->parties; party; party = party->hh.next) {
        if ((party->name[0] == '@') == strangers &&
            (!largest || party->connections > largest->connections)) {
            largest = party;
        }
    }
    return largest;
}

// Closes a stranger of the host that has most of them: the one that came first among those that do
// not wait for us. Returns false when all do.
static bool end_oldest_stranger(struct service *service)
{
    const struct party *party = find_largest(service, true);
    struct connection *oldest = NULL;
    struct connection *connection;

    DL_FOREACH (service->connections, connection) {
        if (!connection->ended && connection->rank == RANK_STRANGER &&
            (!party || connection->party == party) && !stream_is_working(connection->stream) &&
            (!oldest || connection->greet_by_ms < oldest->greet_by_ms)) {
            oldest = connection;
        }
    }
    if (oldest) {
        connection_end(oldest, ERR_BUSY, "too many connections, and it has not greeted");
    }
    return oldest;
}

// Makes room for one more connection that is not identified. Returns false when there is none,
// because all who are not wait for us.
static bool make_room(struct service *service)
{
    size_t max = service->config.connections_max;

    if (service->stranger_count > max / PARTS && !end_oldest_stranger(service)) {
        return false;
    }
    if (!service->identity.tokens && service->connection_count >= max) {
        if (service->stranger_count == 0 || !end_oldest_stranger(service)) {
            give_way(service, NULL, NULL, "too many connections, and it was used longest ago");
        }
    }
    return true;
}

// Moves the connection to another party, with all that is counted of it.
static void move(struct connection *connection, struct party *party, enum connection_rank rank)
{
    struct service *service = connection->service;
    struct party *old = connection->party;
    size_t incoming = connection->incoming;
    size_t unsent = connection->unsent;

    count(connection, false);
    party_count_incoming(service, old, &connection->incoming, 0);
    party_count_unsent(service, old, &connection->unsent, 0);
    turns_move(&connection->work.turn, &party->turns);
    connection->party = party;
    connection->rank = rank;
    count(connection, true);
    party_count_incoming(service, party, &connection->incoming, incoming);
    party_count_unsent(service, party, &connection->unsent, unsent);
    party->uses++;
    old->uses--;
    party_release(service, old);
}

void connection_settle(struct connection *connection, const char *tenant, bool admin)
{
    struct service *service = connection->service;
    enum connection_rank rank = admin ? RANK_ADMIN : RANK_ORDINARY;
    size_t max = service->config.connections_max;

    if (!service->identity.tokens || connection->ended ||
        (connection->rank == rank && strcmp(connection->party->name, tenant) == 0)) {
        return;
    }
    struct party *party = party_of_tenant(service, tenant);
    move(connection, party, rank);
    if (party->connections > (max + PARTS - 1) / PARTS) {
        give_way(service, party, connection,
                 "its tenant has too many connections, and it was used longest ago");
    } else if (service->connection_count - service->stranger_count > max ||
               (!admin && service->ordinary_count > max - max / ADMIN_PARTS)) {
        give_way(service, find_largest(service, false), connection,
                 "too many connections, most of them of its tenant, and it was used longest ago");
    }
}

// --- callbacks of the stream

static void on_greeting(void *owner)
{
    struct connection *connection = owner;

    connection->greeted = true;
    if (!connection->ended && !connection->service->identity.tokens) {
        move(connection, connection->party, RANK_ORDINARY);
    }
}

static bool on_frame(void *owner, const struct frames_view *frame)
{
    struct connection *connection = owner;

    // Nothing more is read from a connection that has ended, or once the service closes.
    return connection->service->closing || connection->ended || serving_offer(connection, frame);
}

// A client of nng's cannot show its token before anything else on each connection that it makes. So
// a request that is too long for a stranger is looked at for its token when it begins.
static void on_start(void *owner, const void *data, size_t len)
{
    struct connection *connection = owner;
    struct service *service = connection->service;
    char token[REQUEST_TOKEN_MAX + 1];
    struct caller caller;
    struct err err = ERR_INIT;

    if (connection->ended || service->closing || !request_find_token(data, len, token)) {
        return;
    }
    if (identity_admit(&service->identity, &connection->holder, token, OP_HELLO,
                       (int64_t)time(NULL), &caller, &err) == 0) {
        connection_settle(connection, caller.tenant, caller.role == CALLER_ADMIN);
        stream_allow(connection->stream, service->config.message_max);
    } else {
        connection_end(connection, err.code, err.text);
    }
    explicit_bzero(token, sizeof(token));
}

static void on_old_frame(void *owner, const void *data, size_t len)
{
    struct connection *connection = owner;
    struct strbuf frame = STRBUF_INIT;
    struct err err = ERR_INIT;

    (void)err_set(&err, ERR_VERSION,
                  "%s speaks nng's protocol since release %s, and the caller is of an older "
                  "release; bring both to the same release",
                  service_url(connection->service), KCAST_VERSION);
    old_framing_refuse(&frame, data, len, &err);
    stream_send(connection->stream, &frame);
}

static bool on_memory(void *owner, size_t size)
{
    return serving_grow(owner, size);
}

static void on_sent(void *owner)
{
    connection_count_unsent(owner);
}

static void on_end(void *owner, const struct err *why)
{
    struct connection *connection = owner;

    if (why->code != ERR_UNREACHABLE) { // a caller that closes its connection is not refused
        service_note_refusal(connection->service, stream_peer(connection->stream), why->text);
    }
    connection_free(connection);
}

// --- unsent replies

// Closes the connection whose unsent replies take most.
static void end_largest(struct service *service)
{
    struct connection *largest = NULL;
    struct connection *connection;

    DL_FOREACH (service->connections, connection) {
        if (!connection->ended && (!largest || connection->unsent > largest->unsent)) {
            largest = connection;
        }
    }
    if (largest) {
        // What it holds counts no more, since the stream throws it away before anything else runs.
        party_count_unsent(service, largest->party, &largest->unsent, 0);
        connection_end(largest, ERR_LIMIT, "too many replies wait, and it reads the fewest");
    }
}

void connection_count_unsent(struct connection *connection)
{
    struct service *service = connection->service;

    if (!connection->ended) {
        party_count_unsent(service, connection->party, &connection->unsent,
                           stream_unsent(connection->stream));
    }
    while (service->unsent > SERVICE_ALL_UNSENT_MAX) {
        end_largest(service);
    }
}

// --- accepting

void connection_accept(struct service *service, int fd_taken)
{
    struct connection *connection = xcalloc(1, sizeof(*connection));
    struct stream_config config = {
        .message_max =
            service->identity.tokens ? SERVICE_STRANGER_MAX : service->config.message_max,
        .tls = service->identity.tls,
        .on_greeting = on_greeting,
        .on_frame = on_frame,
        .on_start = on_start,
        .start_max = service->identity.tokens ? service->config.message_max : 0,
        .on_old_frame = on_old_frame,
        .on_memory = on_memory,
        .on_sent = on_sent,
        .on_end = on_end,
        .owner = connection,
    };
    struct err err = ERR_INIT;

    if (!make_room(service)) {
        close(fd_taken); // without a greeting, so the caller tries again later
        service_note_refusal(service, "?", "too many connections, whose handshakes take time");
        free(connection);
        return;
    }
    if (stream_accept(&connection->stream, service->loop, fd_taken, &config, &err) != 0) {
        service_note_refusal(service, "?", err.text);
        free(connection);
        return;
    }
    connection->service = service;
    connection->party = party_of_new(service, connection->stream);
    connection->party->uses++;
    turns_member_init(&connection->work.turn, &connection->party->turns);
    connection->work.run = serving_run_connection;
    connection->greet_by_ms = uv_now(service->loop) + service->config.greeting_ms;
    connection->served_ms = uv_now(service->loop);
    DL_APPEND(service->connections, connection);
    count(connection, true);
    if (!uv_is_active((uv_handle_t *)&service->greeting)) {
        (void)uv_timer_start(&service->greeting, service_on_greeting_due,
                             service->config.greeting_ms, 0);
    }
}
