// One TCP connection on a libuv loop, as frames in both directions. It is the only place through
// which bytes go in and out: it greets, cuts what arrives into frames, gathers what is sent, and
// encrypts and decrypts when it is given certificates. net/rpc/service.c and net/rpc/link.c call
// it. It does not know what frames mean. The program must ignore SIGPIPE.
#ifndef NET_RPC_STREAM_H
#define NET_RPC_STREAM_H

#include "common/err.h"
#include "common/strbuf.h"
#include "net/rpc/frames.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <uv.h>

struct stream;
struct tls;

// The callbacks run on the loop. The only function of this module that calls them before it returns
// is stream_resume. Each of them may call any function of this module.
struct stream_config {
    size_t message_max;   // bytes of a frame without its header; a longer one ends the stream
    struct tls *tls;      // the certificates, held by the stream; NULL: not encrypted
    const char *tls_host; // stream_connect: the name that the other side's certificate must have
    // The other side's greeting has arrived. May be NULL.
    void (*on_greeting)(void *owner);
    // A frame has arrived, which is valid during the call. Returns false when the owner does not
    // take it now: nothing more is read until stream_resume, which gives the same frame again.
    bool (*on_frame)(void *owner, const struct frames_view *frame);
    // Of a message that is longer than message_max, but not than start_max, this much has arrived,
    // some FRAMES_START_MAX bytes. The owner may call stream_allow; otherwise the stream ends.
    void (*on_start)(void *owner, const void *data, size_t len);
    size_t start_max; // bytes; 0: on_start is not called
    // A frame of net/rpc/old_framing.h has come. The owner may send one frame of that framing, and
    // the stream ends after this call. NULL: it ends by the greeting.
    void (*on_old_frame)(void *owner, const void *data, size_t len);
    // The buffer of what arrives is to have so many bytes, more than FRAMES_SIZE_FIRST; 0: it has
    // no more than that again. Returns false when it may not grow: nothing more is read until
    // stream_resume, after which this is called again. May be NULL.
    bool (*on_memory)(void *owner, size_t size);
    // Some of the sent bytes have gone to the kernel. May be NULL.
    void (*on_sent)(void *owner);
    // The stream has ended and is freed after this call. The code is ERR_UNREACHABLE (not
    // connected, broken, or closed by the other side), ERR_PROTOCOL (the bytes are no frames),
    // ERR_VERSION (they are of the framing of before), ERR_DENIED (one side does not accept the
    // certificate of the other), or what stream_end gave. The text is the reason alone.
    void (*on_end)(void *owner, const struct err *why);
    void *owner; // first argument of all of them
};

// Connects to address. Never fails: on_end tells. When the other host falls silent, on_end tells
// that within some ten seconds, with ERR_UNREACHABLE.
struct stream *stream_connect(uv_loop_t *loop, const struct sockaddr *address,
                              const struct stream_config *config);
// Makes a stream of fd, a connected socket, which it closes even when it fails. ERR_SYSTEM when fd
// cannot be used.
MUST_CHECK int stream_accept(struct stream **ret, uv_loop_t *loop, int fd_taken,
                             const struct stream_config *config, struct err *err);
// Returns whether frames can be sent: it is connected, the TLS handshake is complete and the stream
// is not ending. Frames that are sent otherwise are thrown away.
bool stream_is_open(const struct stream *stream);
// Returns whether it has ever been connected. In on_end this tells a broken connection from one
// that was never made.
bool stream_was_connected(const struct stream *stream);
// Returns the other side as "127.0.0.1:4711"; "?" before it is connected.
const char *stream_peer(const struct stream *stream);

// Returns the length of the host in stream_peer, which leaves out the port.
size_t stream_host_len(const struct stream *stream);
// Returns whether a step of its TLS handshake waits or runs: the other side waits for us.
bool stream_is_working(const struct stream *stream);

// Sends a buffer that frame_begin and frame_end have made, and leaves it empty. Frames that are
// sent inside on_frame leave together.
void stream_send(struct stream *stream, struct strbuf *frame_taken);
// Returns the bytes that were sent and that the kernel has not taken yet.
size_t stream_unsent(const struct stream *stream);
// Returns the bytes that have arrived and that the owner has not taken.
size_t stream_unread(const struct stream *stream);
// Replaces the message_max of the config from now on.
void stream_allow(struct stream *stream, size_t message_max);
// Goes on after on_frame or on_memory has returned false: delivers what has arrived, inside this
// call, and reads on.
void stream_resume(struct stream *stream);

// Ends the stream for this reason. on_end runs later, never inside this call.
void stream_end(struct stream *stream, enum err_code code, const char *reason);
// Ends the stream without any further callback. NULL is fine.
void stream_close(struct stream *stream);

#endif
