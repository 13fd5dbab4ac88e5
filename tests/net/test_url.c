// The urls of servers: what is parsed, what is refused, what is loopback and what is an address.
#include "net/url.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urls_are_parsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
