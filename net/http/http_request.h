// The parser for the head of an HTTP request: a GET without a body, as monitoring systems, health
// probes and browsers send it. A pure function of bytes, which net/http/http_server.c calls. It
// knows no sockets and none of the paths that are served.
#ifndef NET_HTTP_HTTP_REQUEST_H
#define NET_HTTP_HTTP_REQUEST_H

#include <stddef.h>

#define HTTP_HEAD_MAX 8192 // bytes, with the empty line at the end
#define HTTP_PATH_MAX 256  // bytes, with the NUL at the end
#define HTTP_HOST_MAX 256  // bytes, with the NUL at the end

struct http_request {
    char path[HTTP_PATH_MAX]; // as it was sent, beginning with '/', without the query
    char host[HTTP_HOST_MAX]; // the Host field, with its port; "" when HTTP/1.0 sent none
};

// Reads the head at the beginning of data, by the rules of RFC 9112 for requests without a body.
// Returns 0 when more bytes are needed, 200 with *ret filled, or else the status with which the
// request is to be refused: 400, 405, 414, 431 or 505.
unsigned http_request_read(struct http_request *ret, const char *data, size_t len);

// Returns the reason phrase of a status, such as "Not Found" for 404.
const char *http_status_text(unsigned status);

#endif
