// A small HTTP server for monitoring: GET on loopback, one request per connection, everything
// bounded. It owns the listener and the connections and knows nothing of what is served. It runs on
// the loop of its program and never blocks it. The program must ignore SIGPIPE.
#ifndef NET_HTTP_HTTP_SERVER_H
#define NET_HTTP_HTTP_SERVER_H

#include "common/err.h"
#include "common/strbuf.h"
#include <stdint.h>
#include <uv.h>

struct http_server;

#define HTTP_CONNECTIONS_MAX 64           // a further connection takes the place of the oldest one
#define HTTP_UNSENT_MAX ((size_t)8 << 20) // bytes of answers, beyond which further ones wait
#define HTTP_TIMEOUT_MS 10000             // the whole life of a connection

struct http_answer {
    unsigned status;    // 200 before on_get, which may change it
    const char *type;   // content type, a static string; text/plain before on_get
    struct strbuf body; // filled by on_get, released by the server
};

struct http_server_config {
    const char *address; // "127.0.0.1:7412" or "[::1]:7412"; port 0 picks a free port
    uint64_t timeout_ms; // 0: HTTP_TIMEOUT_MS
    // Answers a GET of path, which has no query. Returns false when there is nothing at this path.
    bool (*on_get)(void *owner, const char *path, struct http_answer *answer);
    void *owner;
};

// Begins to listen. ERR_INVALID when the address cannot be parsed, ERR_DENIED when it is not on
// loopback, ERR_BUSY when the port is in use, else ERR_SYSTEM. A request whose Host is not loopback
// is refused with 421: otherwise a web page could read what is served, through a host name of its
// own that resolves to loopback.
MUST_CHECK int http_server_create(struct http_server **ret, uv_loop_t *loop,
                                  const struct http_server_config *config, struct err *err);
// Returns "http://127.0.0.1:7412", with the real port.
const char *http_server_url(const struct http_server *server);
// Closes the port and the connections; their memory is freed when the loop has closed the handles.
// NULL is fine.
void http_server_close(struct http_server *server);

#endif
