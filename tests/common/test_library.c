#include "common/library.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <string.h>

static struct {
    double (*cosine)(double);
    double (*absent)(double);
} functions;

static void fills_pointers_from_the_first_that_opens(void **state)
{
    const struct library_symbol symbols[] = {
        {"cos", &functions.cosine, true},
        {"kcast_absent", &functions.absent, false},
    };

    (void)state;
    memset(&functions, 0xff, sizeof(functions));
    const char *const names[] = {"libkcast-absent.so.9", "libm.so.6", NULL};
    struct err err = ERR_INIT;
    void *library = NULL;
    assert_int_equal(library_open(&library, names, symbols, 2, &err), 0);
    assert_non_null(library);
    assert_true(functions.cosine(0.0) == 1.0);
    assert_null(functions.absent);
    library_close(library);
    library_close(NULL);
}

static void missing_library_is_named(void **state)
{
    const struct library_symbol symbols[] = {{"cos", &functions.cosine, true}};
    void *library = &functions;

    (void)state;
    memset(&functions, 0xff, sizeof(functions));
    const char *const names[] = {"libkcast-absent.so.9", "libkcast-absent.so.8", NULL};
    struct err err = ERR_INIT;
    assert_int_equal(library_open(&library, names, symbols, 1, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "cannot load libkcast-absent.so.9, libkcast-absent.so.8: "));
    assert_null(functions.cosine);
    assert_ptr_equal(library, &functions);
}

static void missing_required_symbol_is_named(void **state)
{
    const struct library_symbol symbols[] = {
        {"cos", &functions.cosine, true},
        {"kcast_absent", &functions.absent, true},
    };

    (void)state;
    const char *const names[] = {"libm.so.6", NULL};
    struct err err = ERR_INIT;
    void *library = NULL;
    assert_int_equal(library_open(&library, names, symbols, 2, &err), ERR_VERSION);
    assert_string_equal(err.text, "libm.so.6 has no function kcast_absent: it is too old");
    assert_null(functions.cosine); // found, but not to be used
    assert_null(library);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_pointers_from_the_first_that_opens),
        cmocka_unit_test(missing_library_is_named),
        cmocka_unit_test(missing_required_symbol_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
