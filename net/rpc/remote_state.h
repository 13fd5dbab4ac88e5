// The struct that net/rpc/remote.c (calls), net/rpc/hello.c (the first call) and net/rpc/link.c
// (their connection) share. Only these three files include it.
#ifndef NET_RPC_REMOTE_STATE_H
#define NET_RPC_REMOTE_STATE_H

#include "common/strbuf.h"
#include "net/rpc/remote.h"
#include "net/rpc/resolve.h"
#include "net/rpc/stream.h"
#include "net/url.h"
#include <uthash.h>

struct call {
    struct remote *remote;
    uint32_t id;         // with FRAMES_REQUEST
    struct strbuf frame; // the packed request, until it is sent
    bool sent;
    uint64_t deadline_ns;         // uv_hrtime
    const struct message *answer; // describes the reply's body
    remote_callback *callback;
    void *owner;
    struct err err;    // why the call has ended
    UT_hash_handle hh; // in remote->calls
    struct call *prev; // in remote->ended
    struct call *next;
};

enum link_state { LINK_DOWN, LINK_RESOLVING, LINK_CONNECTING, LINK_UP };

struct remote {
    uv_loop_t *loop;
    char *url;
    struct url address;
    struct tls *tls;     // NULL for a tcp:// url
    char *token;         // NULL: none
    char *expected_name; // the name that the certificate must have; NULL: the url's host
    uint32_t token_id;   // id of the request that showed the token last; 0: none was sent
    uv_timer_t timer;
    uv_async_t wake;   // runs on_wake: there are calls in `ended`, or the timer has fired
    int handles;       // handles that are not closed yet
    uint64_t timer_ns; // when the timer fires (uv_hrtime); UINT64_MAX when it is not armed
    enum link_state state;
    uint64_t connections;         // that have been up, the present one included
    uint64_t retry_ns;            // in LINK_DOWN: the earliest next attempt (uv_hrtime)
    uint64_t connect_deadline_ns; // when the address is given up unless it has greeted (uv_hrtime)
    uint64_t backoff_ns;          // the pause after the last attempt; 0 after a success
    const char *wanted;           // the program whose HELLO is awaited; NULL: none
    bool was_slow; // a connection was accepted and led to nothing since the last HELLO was called
    struct resolve *resolve; // in LINK_RESOLVING
    struct stream *stream;   // in LINK_CONNECTING and LINK_UP
    struct err failure;      // why there is no connection
    bool failure_is_old;     // failure is from an earlier attempt than the present one
    struct sockaddr_storage addresses[RESOLVE_MAX];
    size_t address_count;
    size_t address_next; // index of the address to try next
    size_t request_max;  // bytes of a request that the other side takes
    uint32_t last_id;
    struct call *calls; // hash by id: the calls that have not ended
    size_t unsent;      // how many of these are not sent
    struct call *ended; // list of the calls whose callback is still to run
    bool closing;
};

// Makes the timer fire at at_ns (uv_hrtime) or earlier.
void remote_arm(struct remote *remote, uint64_t at_ns);
// Ends all calls, or only those that were sent. Their callbacks run later, from the loop.
void remote_end_calls(struct remote *remote, const struct err *why, bool sent_only);
// Sets ERR_UNREACHABLE with the sentence for a HELLO that found no connection.
int remote_no_answer(const struct remote *remote, struct err *err);
// Sends the calls that wait. The link is up.
void remote_send_calls(struct remote *remote);
// Shows the token, when there is one. The link is up.
void remote_send_token(struct remote *remote);
// Handles a frame of the other side: stream_config.on_frame, with the remote as owner.
bool remote_on_frame(void *owner, const struct frames_view *frame);

// Arms the timer for what the link waits for.
void link_arm(struct remote *remote);
// Does what is due: connects when a call waits, gives up an address that does not answer.
void link_on_time(struct remote *remote, uint64_t now_ns);
// Returns whether, since HELLO was called, the other side has accepted a connection without ending
// it soon.
bool link_is_slow(const struct remote *remote);
// Closes the connection, or stops making one. No callback of the link runs any more.
void link_close(struct remote *remote);

#endif
