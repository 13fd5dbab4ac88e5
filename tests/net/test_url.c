// The urls of servers: what is parsed, what is refused, what is loopback and what is an address.
#include "net/url.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void urls_are_parsed(void **state)
{
    static const char *const bad[] = {"",         "http://a:1", "tcp://",        "tcp://a",
                                      "tcp://:1", "tcp://a:x",  "tcp://a:70000", "tcp://[::1]"};

    (void)state;
    struct err err = ERR_INIT;
    struct url url;
    assert_int_equal(url_parse(&url, "tcp://[::1]:7410", &err), 0);
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 7410);
    assert_true(url_is_loopback(&url));
    struct sockaddr_storage address;
    assert_true(url_address(&url, &address));
    assert_int_equal(address.ss_family, AF_INET6);
    assert_int_equal(url_parse(&url, "tcp://127.9.9.9:1", &err), 0);
    assert_true(url_is_loopback(&url));
    assert_true(url_address(&url, &address));
    assert_int_equal(address.ss_family, AF_INET);
    assert_int_equal(url_parse(&url, "tcp://gpu1:1", &err), 0);
    assert_false(url_is_loopback(&url));
    assert_false(url_address(&url, &address));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err_clear(&err);
        assert_true(url_parse(&url, bad[i], &err) < 0);
    }
}

// nng says tls+tcp:// for tls://. Both are one address, which is written in one way.
static void both_words_for_tls_are_the_same_url(void **state)
{
    static const struct {
        const char *text, *written;
    } row[] = {
        {"tls://gpu1:7410", "tls://gpu1:7410"},
        {"tls+tcp://gpu1:7410", "tls://gpu1:7410"},
        {"tls+tcp://[::1]:07410", "tls://[::1]:7410"},
        {"tcp://127.0.0.1:0", "tcp://127.0.0.1:0"},
    };
    static const char *const bad[] = {"tls+tcp:/gpu1:1", "tls+tcp://gpu1", "tcp+tls://gpu1:1",
                                      "TLS+TCP://gpu1:1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        struct url url;
        assert_int_equal(url_parse(&url, row[i].text, NULL), 0);
        assert_int_equal(url.tls, row[i].text[1] == 'l');
        char *text = url_text(&url);
        assert_string_equal(text, row[i].written);
        free(text);
    }
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct url url;
        assert_int_equal(url_parse(&url, bad[i], NULL), ERR_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_parsed),
        cmocka_unit_test(both_words_for_tls_are_the_same_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
