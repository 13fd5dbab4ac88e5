// A language-model endpoint for tests: an HTTP/1.1 server on the loop of the test, which answers as
// the test says, well or badly. It understands just enough of HTTP to know where a request ends.
#ifndef TESTS_SUPPORT_ENDPOINT_STUB_H
#define TESTS_SUPPORT_ENDPOINT_STUB_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

struct stub;

struct stub_request {
    const char *head; // request line and headers, NUL-terminated
    const char *body; // NUL-terminated
    size_t number;    // from 0
};

// What to do with a request.
struct stub_reply {
    int status;          // with body; 0: raw is sent as it is
    const char *headers; // more of them, each with "\r\n"; NULL: none
    const char *body;    // copied
    const char *raw;     // copied, raw_len bytes
    size_t raw_len;
    unsigned delay_ms;
    unsigned drip_ms; // > 0: a byte each so many milliseconds
    bool endless;     // the body is sent again and again
    bool reset;       // the connection is broken off instead
    bool silent;      // no answer at all
    bool cut;         // announced with more bytes than are sent, then closed
};

// *reply is zeroed before.
typedef void stub_answer(void *owner, const struct stub_request *request, struct stub_reply *reply);

struct stub *stub_start(uv_loop_t *loop, stub_answer *answer, void *owner);
const char *stub_url(const struct stub *stub); // "http://127.0.0.1:PORT/v1"
size_t stub_requests(const struct stub *stub);
size_t stub_connections(const struct stub *stub); // that were accepted
void stub_stop(struct stub *stub);                // gone when the loop has nothing of it left

#endif
