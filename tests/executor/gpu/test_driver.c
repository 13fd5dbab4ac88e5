#include "executor/gpu/driver.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "tests/support/gpu.h"
#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// The first two tests must run before a libcuda.so.1 is loaded into this process.

static void absent_library_is_not_found(void **state)
{
    struct driver driver = {.library = &driver};
    void *real = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    (void)state;
    if (real) {
        dlclose(real);
        print_message("skipped because this machine has a driver\n");
        skip();
    }
    struct err err = ERR_INIT;
    assert_int_equal(driver_load(&driver, &err), ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "libcuda.so.1"));
    assert_non_null(strstr(err.text, "install the NVIDIA driver"));
    assert_ptr_equal(driver.library, &driver); // an error leaves the table as it was
}

static void too_old_library_names_what_it_lacks(void **state)
{
    char *folder = gpu_fake_folder(), path[4096];

    (void)state;
    assert_true(snprintf(path, sizeof(path), "%s/old/libcuda.so.1", folder) < (int)sizeof(path));
    pid_t child = fork();
    if (child == 0) { // a child, because a library cannot be unloaded reliably
        struct driver driver;
        struct err err = ERR_INIT;
        int bad = !dlopen(path, RTLD_NOW | RTLD_LOCAL) ? 1 : 0;

        bad += driver_load(&driver, &err) != ERR_VERSION ? 2 : 0;
        bad += !strstr(err.text, "libcuda.so.1 has no function cuGetErrorName") ? 4 : 0;
        _exit(bad);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    free(folder);
}

static void every_function_is_found_and_errors_have_words(void **state)
{
    struct driver driver;
    struct err err = ERR_INIT;
    char buf[256];
    int version;

    (void)state;
    gpu_fake_use("");
    assert_int_equal(driver_load(&driver, &err), 0);
    assert_non_null(driver.library);
#define X(need, field, symbol, parameters) assert_non_null(driver.field);
    DRIVER_FUNCTIONS(X)
#undef X
    assert_int_equal(driver.driver_version(&version), CU_OK);
    assert_int_equal(version, 13000);
    assert_string_equal(driver_error(&driver, CU_ILLEGAL_ADDRESS, buf),
                        "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)");
    assert_string_equal(driver_error(&driver, 12345, buf), "CUDA error 12345");
    assert_int_equal(driver_check(&driver, CU_OK, "copy", &err), 0);
    assert_int_equal(driver_check(&driver, CU_OUT_OF_MEMORY, "allocate 4096 bytes", &err),
                     ERR_SYSTEM);
    assert_string_equal(err.text, "allocate 4096 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_library_is_not_found),
        cmocka_unit_test(too_old_library_names_what_it_lacks),
        cmocka_unit_test(every_function_is_found_and_errors_have_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
