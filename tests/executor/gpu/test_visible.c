// Which of several GPUs a process sees. Each case is a process of its own, since the driver decides
// that once for all.
#include "executor/gpu/gpu.h"
#include "tests/support/gpu.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define UUID "GPU-fa4e0000-0000-4000-8000-00000000000"

// Opens the GPU in a process of its own, which ends with how many GPUs the driver then shows; 100
// when it cannot be opened, 101 when it is another one.
static int seen(const char *name)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct gpu gpu;
        struct err err = ERR_INIT;
        int count = 0;
        if (gpu_open(&gpu, name, &err) != 0) {
            _exit(100);
        }
        bool right = strcmp(gpu.uuid, UUID "2") == 0 && gpu.driver.device_count(&count) == CU_OK;
        gpu_close(&gpu);
        _exit(right ? count : 101);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_process_sees_the_gpu_that_it_uses(void **state)
{
    (void)state;
    gpu_fake_use("count=3;memory=1G");
    assert_int_equal(seen(UUID "2"), 1);
    assert_int_equal(seen("2"), 3); // whose identifier is not known yet
    assert_int_equal(seen(UUID "7"), 100);
}

// Whoever started the daemon may have chosen among the GPUs for it.
static void a_choice_of_before_gives_way(void **state)
{
    (void)state;
    gpu_fake_use("count=3;memory=1G");
    assert_int_equal(setenv("CUDA_VISIBLE_DEVICES", UUID "0," UUID "2", 1), 0);
    assert_int_equal(seen(UUID "2"), 1);
    assert_int_equal(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_sees_the_gpu_that_it_uses),
        cmocka_unit_test(a_choice_of_before_gives_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
