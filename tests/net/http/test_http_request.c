// The parser of a request's head, on bytes alone: what it needs, what it keeps, and that hostile
// heads are refused with the right status and never read beyond their end.
#include "net/http/http_request.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Reads from a copy that is as long as the bytes, so that a read behind them shows.
static unsigned read_bytes(struct http_request *ret, const char *data, size_t len)
{
    char *copy = xmemdup(data, len);
    unsigned status = http_request_read(ret, copy, len);

    free(copy);
    return status;
}

static void a_request_is_whole_at_its_empty_line(void **state)
{
    static const char text[] = "GET /metrics?x=1?y HTTP/1.1\r\n"
                               "hOST: \t127.0.0.1:7412 \r\n"
                               "X-Empty:\r\nContent-Length: 0\r\n\r\nbehind it";
    struct http_request request = {.path = "unchanged", .host = "unchanged"};
    size_t whole = sizeof(text) - 1 - strlen("behind it");

    (void)state;
    for (size_t len = 0; len < whole; len++) {
        assert_int_equal(read_bytes(&request, text, len), 0);
    }
    assert_string_equal(request.path, "unchanged");
    assert_int_equal(read_bytes(&request, text, whole), 200);
    assert_string_equal(request.path, "/metrics");
    assert_string_equal(request.host, "127.0.0.1:7412");
    assert_int_equal(read_bytes(&request, text, sizeof(text) - 1), 200);
    // An old program sends no host.
    assert_int_equal(read_bytes(&request, "GET / HTTP/1.0\r\n\r\n", 18), 200);
    assert_string_equal(request.path, "/");
    assert_string_equal(request.host, "");
}

static void what_is_no_plain_request_is_refused(void **state)
{
#define HOST "Host: h\r\n"
    static const struct {
        const char *head; // without the empty line
        unsigned status;
    } row[] = {
        {"GET /%00/..;\xc3\xa4 HTTP/1.1\r\n" HOST, 200}, // a path is not decoded here
        {"GET ? HTTP/1.1\r\n" HOST, 400},
        {"GET * HTTP/1.1\r\n" HOST, 400},
        {"GET http://h/ HTTP/1.1\r\n" HOST, 400},
        {"GET  / HTTP/1.1\r\n" HOST, 400},
        {"GET / /x HTTP/1.1\r\n" HOST, 400},
        {"GET /\tx HTTP/1.1\r\n" HOST, 400},
        {"GET /\r\n" HOST, 400},
        {" GET / HTTP/1.1\r\n" HOST, 400},
        {"G\"T / HTTP/1.1\r\n" HOST, 400},
        {"\r\nGET / HTTP/1.1\r\n" HOST, 400},
        {"get / HTTP/1.1\r\n" HOST, 405},
        {"POST / HTTP/1.1\r\n" HOST, 405},
        {"GET / HTTP/2.0\r\n" HOST, 505},
        {"GET / HTTP/1.10\r\n" HOST, 505},
        {"GET / HTTP/\r\n" HOST, 400},
        {"GET / http/1.1\r\n" HOST, 400},
        {"GET / HTTP/1.1\r\n", 400}, // which host?
        {"GET / HTTP/1.1\r\n" HOST HOST, 400},
        {"GET / HTTP/1.0\r\n" HOST "host: i\r\n", 400},
        {"GET / HTTP/1.1\r\nHost: \t \r\n", 400},
        {"GET / HTTP/1.1\r\nHost : h\r\n", 400},
        {"GET / HTTP/1.1\r\n Host: h\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n", 400}, // a continued line
        {"GET / HTTP/1.1\r\n" HOST "no colon\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST ": no name\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "X: \x01\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "X: a\rb\r\n", 400},
        {"GET / HTTP/1.1\n" HOST, 400}, // a bare line feed
        {"GET / HTTP/1.1\r\n" HOST "\nX: y\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "content-length: 00\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Content-Length: 0, 0\r\n", 400},
        {"GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n", 400},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct http_request request = {.path = "unchanged"};
        char *text = xasprintf("%s\r\n", row[i].head);
        unsigned status = read_bytes(&request, text, strlen(text));

        if (status != row[i].status) {
            fail_msg("%u instead of %u: %s", status, row[i].status, row[i].head);
        }
        if (status != 200) {
            assert_string_equal(request.path, "unchanged");
        }
        free(text);
    }
    struct http_request request;
    static const char with_nul[] = "GET /\0 HTTP/1.1\r\n" HOST "\r\n";
    assert_int_equal(read_bytes(&request, with_nul, sizeof(with_nul) - 1), 400);
}

// A request whose path, host and whole head have these lengths. The caller frees the text.
static char *request_of(size_t path, size_t host, size_t head)
{
    char *begin =
        xasprintf("GET /%0*d HTTP/1.1\r\nHost: %0*d\r\nX: ", (int)path - 1, 0, (int)host, 0);
    size_t rest = strlen(begin) + 4;
    char *text = xasprintf("%s%0*d\r\n\r\n", begin, (int)(head > rest ? head - rest : 1), 0);

    free(begin);
    return text;
}

static void lengths_have_limits(void **state)
{
    static const struct {
        size_t path, host, head;
        unsigned status;
    } row[] = {
        {HTTP_PATH_MAX - 1, 10, 0, 200},
        {HTTP_PATH_MAX, 10, 0, 414},
        {5000, 10, 0, 414},
        {10, HTTP_HOST_MAX - 1, 0, 200},
        {10, HTTP_HOST_MAX, 0, 400},
        {10, 10, HTTP_HEAD_MAX, 200},
        {10, 10, HTTP_HEAD_MAX + 1, 431},
        {10, 10, 3 * HTTP_HEAD_MAX, 431},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char *text = request_of(row[i].path, row[i].host, row[i].head);
        struct http_request request;
        unsigned status = read_bytes(&request, text, strlen(text));

        if (status != row[i].status) {
            fail_msg("row %zu: %u", i, status);
        }
        if (status == 200) {
            assert_int_equal(strlen(request.path), row[i].path);
            assert_int_equal(strlen(request.host), row[i].host);
        }
        free(text);
    }
    // A head that has not ended within the limit never will.
    char *endless = xcalloc(HTTP_HEAD_MAX, 1);
    memset(endless, 'a', HTTP_HEAD_MAX);
    struct http_request request;
    assert_int_equal(read_bytes(&request, endless, HTTP_HEAD_MAX - 1), 0);
    assert_int_equal(read_bytes(&request, endless, HTTP_HEAD_MAX), 431);
    free(endless);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_whole_at_its_empty_line),
        cmocka_unit_test(what_is_no_plain_request_is_refused),
        cmocka_unit_test(lengths_have_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
