#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void sizes_of_zero_give_a_pointer(void **state)
{
    void *a = xmalloc(0);
    void *b = xcalloc(0, 8);
    void *c = xrealloc(NULL, 0, 8);

    (void)state;
    assert_non_null(a);
    assert_non_null(b);
    assert_non_null(c);
    free(a);
    free(b);
    free(c);
}

static void copies_are_equal_and_separate(void **state)
{
    char *text = xstrdup("kernel");
    char *part = xstrndup("kernel", 3);
    char *whole = xstrndup("ab", 10);
    char *data = xmemdup("a\0b", 3);
    char *formatted = xasprintf("%s-%d", "k", 7);

    (void)state;
    assert_string_equal(text, "kernel");
    assert_string_equal(part, "ker");
    assert_string_equal(whole, "ab");
    assert_memory_equal(data, "a\0b", 3);
    assert_string_equal(formatted, "k-7");
    free(text);
    free(part);
    free(whole);
    free(data);
    free(formatted);
}

static void an_array_grows_one_by_one(void **state)
{
    (void)state;
    int *array = NULL;
    for (int i = 0; i < 1000; i++) {
        array = xgrow(array, (size_t)i, sizeof(*array));
        array[i] = i;
    }
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(array[i], i);
    }
    free(array);
}

static void overflowing_product_ends_the_program(void **state)
{
    pid_t pid = fork();

    (void)state;
    assert_true(pid >= 0);
    if (pid == 0) {
        int null_fd = open("/dev/null", O_WRONLY);

        signal(SIGABRT, SIG_DFL);
        dup2(null_fd, STDERR_FILENO);
        volatile size_t count = SIZE_MAX;
        free(xrealloc(NULL, count, 2));
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void try_alloc_zeroes_and_respects_the_limit(void **state)
{
    static const unsigned char zero[64];

    (void)state;
    struct err err = ERR_INIT;
    void *data = NULL;
    assert_int_equal(mem_try_alloc(&data, 8, 8, 64, "table", &err), 0);
    assert_memory_equal(data, zero, 64);
    free(data);
    data = &err;
    assert_int_equal(mem_try_alloc(&data, 9, 8, 64, "table", &err), ERR_LIMIT);
    assert_ptr_equal(data, &err);
    assert_non_null(strstr(err.text, "table"));
}

static void try_alloc_refuses_overflow(void **state)
{
    (void)state;
    struct err err = ERR_INIT;
    void *data = NULL;
    assert_int_equal(mem_try_alloc(&data, SIZE_MAX, 2, SIZE_MAX, "x", &err), ERR_LIMIT);
    assert_null(data);
}

static void try_alloc_of_nothing_gives_null(void **state)
{
    struct err err = ERR_INIT;
    void *data = &err;

    (void)state;
    assert_int_equal(mem_try_alloc(&data, 0, 8, 0, "x", &err), 0);
    assert_null(data);
}

static void bytes_copy_and_clear(void **state)
{
    struct bytes some = bytes_copy("abc", 3);
    struct bytes none = bytes_copy(NULL, 0);

    (void)state;
    assert_int_equal(some.len, 3);
    assert_memory_equal(some.data, "abc", 3);
    assert_null(none.data);
    bytes_clear(&some);
    assert_null(some.data);
    assert_int_equal(some.len, 0);
    bytes_clear(&some);
    bytes_clear(&none);
    bytes_clear(NULL);
}

// A message of 200 kB after the other finds its pages where the one before has left them.
static void freed_buffers_are_used_again(void **state)
{
    enum { ROUNDS = 200, LEN = 200000, PAGES = LEN / 4096 };
    struct rusage before, after;

    (void)state;
    mem_reuse_buffers();
    for (int i = 0; i < ROUNDS + 10; i++) {
        if (i == 10) {
            assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
        }
        char *in = xmalloc(LEN);
        memset(in, i, LEN);
        char *out = xmemdup(in, LEN);
        assert_int_equal(out[LEN - 1], (char)i);
        free(in);
        free(out);
    }
    assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
#ifndef __SANITIZE_ADDRESS__ // which keeps what was freed out of use
    assert_true(after.ru_minflt - before.ru_minflt < ROUNDS * PAGES / 10);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_buffers_are_used_again),
        cmocka_unit_test(sizes_of_zero_give_a_pointer),
        cmocka_unit_test(copies_are_equal_and_separate),
        cmocka_unit_test(an_array_grows_one_by_one),
        cmocka_unit_test(overflowing_product_ends_the_program),
        cmocka_unit_test(try_alloc_zeroes_and_respects_the_limit),
        cmocka_unit_test(try_alloc_refuses_overflow),
        cmocka_unit_test(try_alloc_of_nothing_gives_null),
        cmocka_unit_test(bytes_copy_and_clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
