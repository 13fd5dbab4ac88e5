// Which URLs have the same origin, so that a key may be sent again.
#include "worker/endpoint/origin.h"

#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_key_goes_only_where_it_belongs(void **state)
{
    static const struct {
        const char *a, *b;
        bool same;
    } row[] = {
        {"https://h/v1", "https://h/v2?x#y", true},
        {"https://h", "https://h:443/", true}, // the port that the scheme has
        {"http://h:80/", "http://h/", true},
        {"HTTPS://Host.Example/", "https://host.example/", true},
        {"https://[::1]:8443/", "https://[::1]:8443/x", true},
        {"https://h/", "http://h/", false}, // no longer encrypted
        {"http://h:443/", "https://h:443/", false},
        {"https://h/", "https://h:8443/", false},
        {"https://h/", "https://h.evil/", false},
        {"https://h/", "https://evil/h/", false},
        {"https://h/", "https://h@evil/", false},
        {"https://h/", "https://evil#@h/", false},
        {"https://h/", "https://h./", false},
        {"https://h/", "//h/", false},
        {"https://h/", "", false},
        {"", "", false},
        {"no url at all", "no url at all", false},
        {"https://h:99999/", "https://h:99999/", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        if (origin_is_same(row[i].a, row[i].b) != row[i].same ||
            origin_is_same(row[i].b, row[i].a) != row[i].same) {
            fail_msg("\"%s\" and \"%s\"", row[i].a, row[i].b);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_goes_only_where_it_belongs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
