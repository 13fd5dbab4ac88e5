// The head of an HTTP request, as a monitoring system, a probe or a browser sends it: one GET, no
// body. A pure function of bytes; knows no sockets and no paths.
#ifndef NET_HTTP_HTTP_REQUEST_H
#define NET_HTTP_HTTP_REQUEST_H

#include <stddef.h>

#define HTTP_HEAD_MAX 8192 // bytes, the empty line at its end included
#define HTTP_PATH_MAX 256
#define HTTP_HOST_MAX 256

struct http_request {
    char path[HTTP_PATH_MAX]; // begins with '/', as it was sent, without the query
    char host[HTTP_HOST_MAX]; // of the Host field, with its port; "" when HTTP/1.0 sent none
};

// Reads the head at the beginning of data. 0: there is more to come; 200: *ret is what is asked
// for; anything else is the status to refuse it with (400, 405, 414, 431, 505).
// Source: RFC 9112, the parts about requests without a body.
unsigned http_request_read(struct http_request *ret, const char *data, size_t len);

// "Not Found" for 404.
const char *http_status_text(unsigned status);

#endif
