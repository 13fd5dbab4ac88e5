// Looking up addresses off the loop: the answer comes later and once, a failure has a reason, and a
// lookup that was given up says nothing.
#include "net/rpc/resolve.h"

#include "common/mem.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    int calls;
    size_t count;
    struct sockaddr_storage first;
    struct err why;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(uv_loop_init(&f->loop), 0);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(uv_run(&f->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&f->loop), 0); // nothing is left of the lookups
    free(f);
    return 0;
}

static void on_end(void *owner, const struct sockaddr_storage *addresses, size_t count,
                   const struct err *why)
{
    struct fixture *f = owner;

    f->calls++;
    f->count = count;
    if (count > 0) {
        f->first = addresses[0];
    }
    f->why = *why;
}

static struct resolve *start(struct fixture *f, const char *text)
{
    struct resolve *resolve = NULL;
    struct err err = ERR_INIT;
    struct url url;

    assert_int_equal(url_parse(&url, text, &err), 0);
    if (resolve_start(&resolve, &f->loop, &url, on_end, f, &err) != 0) {
        fail_msg("%s", err.text);
    }
    memset(&url, 0, sizeof(url)); // which is only read while it starts
    return resolve;
}

static void a_numeric_address_is_its_own_answer(void **state)
{
    static const struct {
        const char *url, *address;
        int family;
        unsigned port;
    } row[] = {
        {"tcp://127.0.0.1:7411", "127.0.0.1", AF_INET, 7411},
        {"tls://10.255.0.1:65535", "10.255.0.1", AF_INET, 65535},
        {"tcp://[::1]:1", "::1", AF_INET6, 1},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        char text[INET6_ADDRSTRLEN];

        f->calls = 0;
        (void)start(f, row[i].url);
        assert_int_equal(f->calls, 0); // never inside the call
        (void)uv_run(&f->loop, UV_RUN_DEFAULT);
        assert_int_equal(f->calls, 1);
        assert_int_equal(f->count, 1);
        assert_int_equal(f->why.code, ERR_NONE);
        assert_int_equal(f->first.ss_family, row[i].family);
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&f->first;
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&f->first;
        bool old = row[i].family == AF_INET;
        assert_int_equal(ntohs(old ? v4->sin_port : v6->sin6_port), row[i].port);
        assert_non_null(inet_ntop(row[i].family,
                                  old ? (const void *)&v4->sin_addr : (const void *)&v6->sin6_addr,
                                  text, sizeof(text)));
        assert_string_equal(text, row[i].address);
    }
}

static void a_host_without_an_address_has_a_reason(void **state)
{
    struct fixture *f = *state;

    // No resolver has an address for a label that is longer than names allow.
    (void)start(f, "tcp://0123456789012345678901234567890123456789012345678901234567890123456789"
                   ".invalid:1");
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->calls, 1);
    assert_int_equal(f->count, 0);
    assert_int_equal(f->why.code, ERR_UNREACHABLE);
    assert_true(f->why.text[0] != '\0');
}

static void a_lookup_that_was_given_up_says_nothing(void **state)
{
    struct fixture *f = *state;
    struct resolve *many[20];

    for (size_t i = 0; i < ARRAY_LEN(many); i++) { // more than the pool has threads
        many[i] = start(f, "tcp://127.0.0.1:1");
    }
    for (size_t i = 0; i < ARRAY_LEN(many); i += 2) {
        resolve_cancel(many[i]);
    }
    resolve_cancel(NULL);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->calls, ARRAY_LEN(many) / 2);
    assert_int_equal(f->why.code, ERR_NONE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_numeric_address_is_its_own_answer),
        TEST(a_host_without_an_address_has_a_reason),
        TEST(a_lookup_that_was_given_up_says_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
