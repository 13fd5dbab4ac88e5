// Compares what is read from a cubin with its source (tests/data/cuda/variables.cu).
#include "common/file.h"
#include "executor/gpu/compile/cubin.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct bytes load(void)
{
    const char *root = getenv("KCAST_ROOT");
    char *path = xasprintf("%s/tests/data/cuda/variables.cubin", root ? root : ".");
    struct err err = ERR_INIT;
    struct bytes bytes;

    assert_int_equal(file_read(&bytes, path, 1 << 20, &err), 0);
    free(path);
    return bytes;
}

static void variables_and_sizes_are_found(void **state)
{
    struct bytes cubin = load();
    uint64_t code, constants;

    (void)state;
    struct cuda_global *list = NULL;
    struct err err = ERR_INIT;
    size_t count = 0;
    assert_int_equal(cubin_globals(&cubin, &list, &count, &err), 0);
    assert_true(count >= 1);
    assert_int_equal(cubin_sizes(&cubin, &code, &constants, &err), 0);
    assert_true(code > 0 && constants > 0);
    char forbidden[64];
    assert_int_equal(cubin_forbidden(&cubin, forbidden, &err), 0);
    assert_string_equal(forbidden, "");
    for (size_t i = 0; i < count; i++) {
        message_clear(&cuda_global_message, &list[i]);
    }
    free(list);
    bytes_clear(&cubin);
}

static void no_kernel_of_that_name_is_said(void **state)
{
    struct bytes cubin = load();

    (void)state;
    struct cuda_kernel kernel;
    message_init(&cuda_kernel_message, &kernel);
    struct err err = ERR_INIT;
    assert_int_equal(cubin_parameters(&cubin, "nobody", &kernel, &err), ERR_NOT_FOUND);
    message_clear(&cuda_kernel_message, &kernel);
    bytes_clear(&cubin);
}

static void every_cut_is_refused_or_harmless(void **state)
{
    struct bytes cubin = load();

    (void)state;
    for (size_t len = 0; len < cubin.len; len += 7) {
        struct bytes cut = {.data = malloc(len + 1),
                            .len = len}; // a copy, so that sanitizers notice reads beyond its end
        struct cuda_global *list = NULL;

        memcpy(cut.data, cubin.data, len);
        struct err err = ERR_INIT;
        size_t count = 0;
        (void)!cubin_globals(&cut, &list, &count, &err);
        for (size_t i = 0; i < count; i++) {
            message_clear(&cuda_global_message, &list[i]);
        }
        free(list);
        free(cut.data);
    }
    bytes_clear(&cubin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_and_sizes_are_found),
        cmocka_unit_test(no_kernel_of_that_name_is_said),
        cmocka_unit_test(every_cut_is_refused_or_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
