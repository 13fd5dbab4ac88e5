// One TCP connection as frames in both directions, on a libuv loop: the only place through which
// bytes go in and out. Encrypts and decrypts when it is given certificates, greets, cuts what
// arrives into frames, gathers what is sent. Knows nothing of what the frames mean, nor which side
// it is on once it is connected. The program ignores SIGPIPE.
#ifndef NET_RPC_STREAM_H
#define NET_RPC_STREAM_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <uv.h>

struct stream;
struct tls;

// All of them run on the loop, never inside a function of this module but stream_resume, and may
// call any function of this module.
struct stream_config {
    size_t frame_max;     // bytes; a longer frame ends the stream
    struct tls *tls;      // encrypted with these certificates; NULL: in the clear
    const char *tls_host; // for stream_connect: whom the other side's certificate is to name
    // The other side's greeting has arrived. NULL: need not be told.
    void (*on_greeting)(void *owner);
    // A frame; data is valid during the call. False: it is not taken. Nothing more is read until
    // stream_resume, which hands it out again.
    bool (*on_frame)(void *owner, const void *data, size_t len);
    // Something that was sent has left for the kernel. NULL: need not be told.
    void (*on_sent)(void *owner);
    // The stream is over and is freed after this call. ERR_UNREACHABLE (not connected, closed by
    // the other side, broken), ERR_PROTOCOL (other bytes than frames), ERR_DENIED (one side does
    // not accept the other's certificate), or what stream_end gave; the text is the reason alone.
    void (*on_end)(void *owner, const struct err *why);
    void *owner;
};

// Connects. Does not fail: on_end tells. Once it is connected on_end also tells, within some ten
// seconds, that the other host says nothing any more: ERR_UNREACHABLE.
struct stream *stream_connect(uv_loop_t *loop, const struct sockaddr *address,
                              const struct stream_config *config);
// Takes over fd, a connected socket, in every case. ERR_SYSTEM when it is none.
MUST_CHECK int stream_accept(struct stream **ret, uv_loop_t *loop, int fd_taken,
                             const struct stream_config *config, struct err *err);
// Connected, certificates are accepted, and not on its way to on_end. Frames sent while this is
// false are thrown away.
bool stream_is_open(const struct stream *stream);
// Was connected at any time (in on_end: whether it broke or never came to be).
bool stream_was_connected(const struct stream *stream);
// "127.0.0.1:4711", or "?" before it is connected.
const char *stream_peer(const struct stream *stream);

// Sends a buffer that frame_begin and frame_end have made; it is empty afterwards. Several that are
// sent inside on_frame leave together.
void stream_send(struct stream *stream, struct strbuf *frame_taken);
// Bytes that the kernel has not taken yet.
size_t stream_unsent(const struct stream *stream);
// Allows other frames from now on than the config did.
void stream_allow(struct stream *stream, size_t frame_max);
// After on_frame gave false: hands out what is there, inside this call, and reads on.
void stream_resume(struct stream *stream);

// Ends it for this reason; on_end follows, never inside.
void stream_end(struct stream *stream, enum err_code code, const char *reason);
// Ends it without any further callback. NULL is fine.
void stream_close(struct stream *stream);

#endif
