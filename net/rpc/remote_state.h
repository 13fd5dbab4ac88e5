// What net/rpc/remote.c (calls) and net/rpc/link.c (the connection) share. Nobody else includes it.
#ifndef NET_RPC_REMOTE_STATE_H
#define NET_RPC_REMOTE_STATE_H

#include "common/strbuf.h"
#include "net/rpc/remote.h"
#include "net/rpc/resolve.h"
#include "net/rpc/stream.h"
#include "net/rpc/url.h"
#include <uthash.h>

struct call {
    struct remote *remote;
    uint64_t id;
    struct strbuf frame; // until it is sent
    bool sent;
    uint64_t deadline_ns;         // uv_hrtime
    const struct message *answer; // what the reply's body is
    remote_callback *callback;
    void *owner;
    struct err err;    // it has ended so
    UT_hash_handle hh; // in remote->calls
    struct call *prev; // in remote->ending
    struct call *next;
};

enum link_state { LINK_DOWN, LINK_RESOLVING, LINK_CONNECTING, LINK_UP };

struct remote {
    uv_loop_t *loop;
    char *url;
    struct url address;
    struct tls *tls;   // NULL: tcp://
    char *token;       // NULL: none
    char *name;        // whom the certificate must name; NULL: the url's host
    uint64_t token_id; // of the request that showed it last
    uv_timer_t timer;
    uv_async_t wake;   // there are calls in `ending`
    int handles;       // not closed yet
    uint64_t timer_ns; // when it fires; UINT64_MAX: it does not
    enum link_state state;
    uint64_t connections;    // that have been up, with the present one
    uint64_t retry_ns;       // DOWN: not before
    uint64_t link_due_ns;    // the address is given up, unless it has greeted by then
    uint64_t backoff_ns;     // after the last attempt; 0: it succeeded
    const char *wanted;      // the program whose HELLO is asked for; NULL: none
    bool was_slow;           // since HELLO was sent, a connection was taken and came to nothing
    struct resolve *resolve; // RESOLVING
    struct stream *stream;   // CONNECTING, UP
    struct err trouble;      // why there is no connection
    bool trouble_is_old;     // of an earlier attempt than the one under way
    struct sockaddr_storage addresses[RESOLVE_MAX];
    size_t address_count;
    size_t address_next; // to try
    size_t request_max;  // bytes of a frame
    uint64_t next_id;
    struct call *calls; // by id
    size_t unsent;      // of these
    struct call *ending;
    bool closing;
};

// The timer fires then, or earlier.
void remote_arm(struct remote *remote, uint64_t at_ns);
// Ends all calls, or only those that were sent; their callbacks run later.
void remote_end_calls(struct remote *remote, const struct err *why, bool sent_only);
// ERR_UNREACHABLE, for who has asked for a program by HELLO and got no connection.
int remote_nobody(const struct remote *remote, struct err *err);
// Sends what waits. There is a connection.
void remote_send_calls(struct remote *remote);
// Shows the token, where there is one. There is a connection.
void remote_send_token(struct remote *remote);
// A frame of the other side: stream_config.on_frame, with the remote as owner.
bool remote_on_frame(void *owner, const void *data, size_t len);

// Arms the timer for what the link waits for.
void link_arm(struct remote *remote);
// What is due: begins to connect when a call waits, gives up an address that does not answer.
void link_on_time(struct remote *remote, uint64_t now_ns);
// Since HELLO was sent the other side has taken a connection, and did not refuse or end it soon.
bool link_is_slow(const struct remote *remote);
// No callback of the link runs any more.
void link_close(struct remote *remote);

#endif
