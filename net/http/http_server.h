// A small HTTP server for those who watch a program: GET on loopback, one request per connection,
// everything bounded. Owns the listener and the connections; knows nothing of what is served. Runs
// on the loop that its program has, and never blocks it. The program ignores SIGPIPE.
#ifndef NET_HTTP_HTTP_SERVER_H
#define NET_HTTP_HTTP_SERVER_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdint.h>
#include <uv.h>

struct http_server;

#define HTTP_CONNECTIONS_MAX 64 // more are closed at once
#define HTTP_TIMEOUT_MS 10000   // from accepting a connection to its end

struct http_answer {
    unsigned status;    // 200 unless the callee says otherwise
    const char *type;   // of the body, static; text/plain unless the callee says otherwise
    struct strbuf body; // filled by the callee, released by the server
};

struct http_server_config {
    const char *address; // "127.0.0.1:7412" or "[::1]:7412"; port 0 picks a free one
    uint64_t timeout_ms; // 0: HTTP_TIMEOUT_MS
    // A GET of path (without query). False: there is nothing at this path.
    bool (*on_get)(void *owner, const char *path, struct http_answer *answer);
    void *owner;
};

// Listens. ERR_INVALID when address is none, ERR_DENIED unless it is loopback, ERR_BUSY or
// ERR_SYSTEM when it cannot be had. A request whose Host is not loopback is refused with 421, so
// that no web page can read what is served through a name of its own.
MUST_CHECK int http_server_create(struct http_server **ret, uv_loop_t *loop,
                                  const struct http_server_config *config, struct err *err);
// "http://127.0.0.1:7412", with the real port.
const char *http_server_url(const struct http_server *server);
// Closes the port and the connections. Freed when the loop has closed the handles. NULL is fine.
void http_server_close(struct http_server *server);

#endif
