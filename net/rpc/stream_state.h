// The struct that net/rpc/stream.c (begin and end), net/rpc/stream_in.c (receiving) and
// net/rpc/stream_out.c (sending) share. Only these three files include it.
#ifndef NET_RPC_STREAM_STATE_H
#define NET_RPC_STREAM_STATE_H

#include "net/rpc/frames.h"
#include "net/rpc/liveness.h"
#include "net/rpc/stream.h"
#include "net/tls/handshake.h"
#include "net/tls/tls.h"
#include <arpa/inet.h>

#define STREAM_PEER_MAX (INET6_ADDRSTRLEN + 16) // bytes

struct stream {
    uv_tcp_t tcp;
    uv_connect_t connect;
    struct stream_config config;
    struct frames frames;    // what has arrived, decrypted
    enum frames_side side;   // ours
    struct tls_session *tls; // NULL: not encrypted
    struct handshake handshake;
    struct liveness *liveness; // NULL before it is connected
    uv_buf_t *gathered;        // frames to be written together; their memory belongs to the stream
    size_t gathered_count;
    size_t gathered_size; // elements allocated
    size_t unsent;        // bytes of frames that are gathered or being written
    bool connected;       // has ever been connected
    bool open;            // connected, and the TLS handshake is complete
    bool greeted;         // our greeting was sent
    bool corked;          // frames are gathered and not written yet
    bool paused;          // on_frame has not taken a frame, or on_memory has refused
    bool large;           // on_memory was told of a large buffer
    bool ending;          // stream_end was called
    bool closed;          // libuv has closed the handle
    bool end_untold;      // on_end is not called
    struct err why;       // why it ends
    char peer[STREAM_PEER_MAX];
    uint64_t host; // a number of the host in it
};

// stream.c

// Ends the stream for an error code of libuv, UV_EOF among them.
void stream_end_by_uv(struct stream *stream, int code);
// Tells the owner and frees the stream. The handle is closed and no handshake step is running.
void stream_finish(struct stream *stream);
// Lets frames go both ways. A caller greets at once.
void stream_open(struct stream *stream);
// Sends our greeting. No-op when it was sent.
void stream_greet(struct stream *stream);

// stream_in.c

// Reads from the socket. Nothing happens when it is being read already.
void stream_read_on(struct stream *stream);
// Begins the next step of the TLS handshake.
void stream_step_handshake(struct stream *stream);

// stream_out.c

// Takes base, malloc'd memory of len bytes, and writes it now or with what is gathered next.
void stream_gather(struct stream *stream, char *base, size_t len);
// Writes what is gathered.
void stream_flush(struct stream *stream);
// Writes what the TLS session has to send. plain_len is the number of bytes of frames in it.
void stream_send_tls_output(struct stream *stream, size_t plain_len);
// Frees what is gathered.
void stream_drop_gathered(struct stream *stream);

#endif
