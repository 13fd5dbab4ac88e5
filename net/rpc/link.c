// Design note. The states of the connection are
//
//   DOWN ──(a call waits, retry_ns)──▶ RESOLVING ─▶ CONNECTING ──(greeting)──▶ UP
//    ▲                                     │    each address in turn │          │
//    └──────────(none left)────────────────┴─────────────────────────┴──(broke)─┘
//
// A call is sent when the state is UP, which the other side's greeting brings about. When the
// connection breaks, the calls that were sent end, and those that were not wait for the next one.
//
// The pause between attempts doubles from BACKOFF_MIN_NS to BACKOFF_MAX_NS. Calls wait through
// failed attempts until their deadlines, with four exceptions that end them at once: the other
// side speaks another protocol, or the framing of an older release, a certificate is not accepted,
// or a HELLO is waiting and the connection was refused or the host is not known.
#include "net/rpc/remote_state.h"

#include "common/clock.h"
#include <errno.h>
#include <string.h>

#define REPLY_MAX ((size_t)17 << 20)  // bytes of a reply's frame
#define CONNECT_NS (3000 * NS_PER_MS) // for connecting to one address, with the greeting
#define BACKOFF_MIN_NS (50 * NS_PER_MS)
#define BACKOFF_MAX_NS (1000 * NS_PER_MS)

void link_arm(struct remote *remote)
{
    if (remote->state == LINK_CONNECTING) {
        remote_arm(remote, remote->connect_deadline_ns);
    } else if (remote->state == LINK_DOWN && remote->unsent > 0) {
        remote_arm(remote, remote->retry_ns);
    }
}

static void on_greeting(void *owner)
{
    struct remote *remote = owner;

    remote->state = LINK_UP;
    remote->connections++;
    remote->backoff_ns = 0;
    err_clear(&remote->failure);
    remote_send_token(remote);
    remote_send_calls(remote);
}

// All addresses have failed. Calls go on waiting, but for the exceptions of the design note.
// refused: the last address refused the connection.
static void attempt_failed(struct remote *remote, bool refused)
{
    const char *reason = remote->failure.text;

    remote->backoff_ns =
        remote->backoff_ns < BACKOFF_MIN_NS / 2 ? BACKOFF_MIN_NS : 2 * remote->backoff_ns;
    if (remote->backoff_ns > BACKOFF_MAX_NS) {
        remote->backoff_ns = BACKOFF_MAX_NS;
    }
    remote->state = LINK_DOWN;
    remote->retry_ns = uv_hrtime() + remote->backoff_ns;
    struct err err = ERR_INIT;
    if (remote->failure.code == ERR_VERSION) {
        (void)err_set(&err, ERR_VERSION, "%s: %s; bring both to the same release", remote->url,
                      reason);
    } else if (remote->failure.code == ERR_DENIED) {
        const char *name = remote->expected_name;

        (void)err_set(&err, ERR_DENIED, "%s%s%s%s: %s", remote->url, name ? " (" : "",
                      name ? name : "", name ? ")" : "", reason);
    } else if (remote->failure.code == ERR_PROTOCOL) {
        (void)err_set(&err, ERR_PROTOCOL,
                      "%s does not speak kernelcast's protocol (%s); check --pool and --worker",
                      remote->url, reason);
    } else if (remote->wanted && remote->failure.code == ERR_NOT_FOUND) {
        (void)err_set(&err, ERR_UNREACHABLE, "%s: host \"%s\" is not known: %s", remote->url,
                      remote->address.host, reason);
    } else if (remote->wanted && refused) {
        (void)remote_no_answer(remote, &err);
    }
    if (err.code != ERR_NONE) {
        remote_end_calls(remote, &err, false);
    }
    link_arm(remote);
}

static void on_end(void *owner, const struct err *why);

static void try_next_address(struct remote *remote, bool refused)
{
    struct stream_config config = {
        .message_max = REPLY_MAX,
        .tls = remote->tls,
        .tls_host = remote->expected_name ? remote->expected_name
                    : remote->tls         ? remote->address.host
                                          : NULL,
        .on_greeting = on_greeting,
        .on_frame = remote_on_frame,
        .on_end = on_end,
        .owner = remote,
    };

    if (remote->address_next == remote->address_count) {
        attempt_failed(remote, refused);
        return;
    }
    remote->state = LINK_CONNECTING;
    remote->connect_deadline_ns = uv_hrtime() + CONNECT_NS;
    remote->stream = stream_connect(
        remote->loop, (struct sockaddr *)&remote->addresses[remote->address_next++], &config);
    link_arm(remote);
}

// Remembers why an address failed. Another protocol or release and a refused certificate are kept,
// whatever happens at the other addresses of the same attempt.
static void note_failure(struct remote *remote, enum err_code code, const char *reason)
{
    enum err_code kept = remote->failure.code;

    if (remote->failure_is_old ||
        (kept != ERR_PROTOCOL && kept != ERR_VERSION && kept != ERR_DENIED)) {
        remote->failure_is_old = false;
        err_clear(&remote->failure);
        (void)err_set(&remote->failure, code, "%s", reason);
    }
}

static void on_end(void *owner, const struct err *why)
{
    struct remote *remote = owner;
    bool refused = !stream_was_connected(remote->stream);

    remote->stream = NULL;
    if (remote->state != LINK_UP) {
        bool shut = !refused && !remote->tls && why->code == ERR_UNREACHABLE;
        note_failure(remote, why->code,
                     shut ? "it takes connections and closes them; if it listens with TLS, its "
                            "address begins with tls://"
                          : why->text);
        try_next_address(remote, refused);
        return;
    }
    remote->state = LINK_DOWN;
    remote->retry_ns = uv_hrtime();
    remote->was_slow |= remote->retry_ns >= remote->connect_deadline_ns;
    struct err err = ERR_INIT;
    (void)err_set(&err, why->code,
                  why->code == ERR_PROTOCOL ? "%s sent no valid reply: %s"
                                            : "the connection to %s broke: %s",
                  remote->url, why->text);
    remote_end_calls(remote, &err, true);
    link_arm(remote);
}

static void on_resolved(void *owner, const struct sockaddr_storage *addresses, size_t count,
                        const struct err *why)
{
    struct remote *remote = owner;

    remote->resolve = NULL;
    remote->address_count = count;
    remote->address_next = 0;
    if (count > 0) {
        memcpy(remote->addresses, addresses, count * sizeof(*addresses));
    } else {
        note_failure(remote, ERR_NOT_FOUND, why->text);
    }
    try_next_address(remote, false);
}

static void begin_attempt(struct remote *remote)
{
    remote->failure_is_old = true;
    struct sockaddr_storage address;
    struct err err = ERR_INIT;
    if (url_address(&remote->address, &address)) {
        on_resolved(remote, &address, 1, NULL);
    } else if (resolve_start(&remote->resolve, remote->loop, &remote->address, on_resolved, remote,
                             &err) == 0) {
        remote->state = LINK_RESOLVING;
    } else {
        on_resolved(remote, NULL, 0, &err);
    }
}

void link_on_time(struct remote *remote, uint64_t now_ns)
{
    if (remote->state == LINK_DOWN && remote->unsent > 0 && remote->retry_ns <= now_ns) {
        begin_attempt(remote);
    } else if (remote->state == LINK_CONNECTING && remote->connect_deadline_ns <= now_ns) {
        bool connected = stream_was_connected(remote->stream);

        remote->was_slow |= connected;
        note_failure(remote, ERR_UNREACHABLE,
                     connected ? "it takes connections but does not greet" : strerror(ETIMEDOUT));
        stream_close(remote->stream);
        remote->stream = NULL;
        try_next_address(remote, false); // not refused: a lost packet may arrive the next time
    }
    link_arm(remote);
}

bool link_is_slow(const struct remote *remote)
{
    return remote->was_slow || (remote->stream && stream_was_connected(remote->stream));
}

void link_close(struct remote *remote)
{
    resolve_cancel(remote->resolve);
    stream_close(remote->stream);
    remote->resolve = NULL;
    remote->stream = NULL;
    remote->state = LINK_DOWN;
}
