// A runner's own copies of its pages: none is shared with the process that it was forked from, and
// all of them still do what they did.
#include "executor/cpu/own_pages.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const double constants[1024] = {1.5, 2.5, 3.5};
static long variables[1024] = {1, 2, 3};

// Returns how many KiB of what is in memory of the mapping that holds the address are not this
// process's own, -1 when nothing of it is in memory. A page of a file is everybody's, also when
// only one process has it in its tables; "Private_Dirty" are pages that were made for this one.
static long others_kib(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    char line[512];
    bool here = false;
    long resident = 0, own = 0, kib;

    while (maps && fgets(line, sizeof(line), maps)) {
        uintptr_t begin, end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2) {
            here = begin <= (uintptr_t)address && (uintptr_t)address < end;
        } else if (here && sscanf(line, "Rss: %ld", &kib) == 1) {
            resident = kib;
        } else if (here && sscanf(line, "Private_Dirty: %ld", &kib) == 1) {
            own = kib;
        }
    }
    if (maps) {
        (void)fclose(maps);
    }
    return resident > 0 ? resident - own : -1;
}

static int ascending(const void *a, const void *b)
{
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static int still_works(void)
{
    int number[] = {3, 1, 2};
    volatile double two = 2;
    char text[32];

    qsort(number, 3, sizeof(number[0]), ascending);
    snprintf(text, sizeof(text), "%d %.3f %.3f", number[0], sin(two), constants[1] + pow(two, 3));
    variables[5]++;
    void *memory = malloc(100000);
    bool ok = memory && strcmp(text, "1 0.909 10.500") == 0 && variables[5] == 1;
    free(memory);
    return ok ? 0 : 1;
}

// What the address of each is in: this program's code, its constants and variables, the
// mathematical library, the C library.
static int count_shared(void)
{
    const void *address[] = {(const void *)(uintptr_t)&count_shared, constants, variables,
                             (const void *)(uintptr_t)&sin, (const void *)(uintptr_t)&memchr};
    int shared = 0;
    volatile double read = constants[2] + sin(constants[1]);

    (void)read;
    for (size_t i = 0; i < sizeof(address) / sizeof(address[0]); i++) {
        shared += others_kib(address[i]) > 0;
    }
    return shared;
}

static int in_child(int (*run)(void), bool own)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct err err = ERR_INIT;
        _exit(own && own_pages(&err) != 0 ? 100 : run());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void every_page_is_the_runners_own(void **state)
{
    (void)state;
    assert_true(in_child(count_shared, false) >= 4);
    assert_int_equal(in_child(count_shared, true), 0);
}

static void everything_still_works(void **state)
{
    (void)state;
    assert_int_equal(in_child(still_works, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_page_is_the_runners_own),
        cmocka_unit_test(everything_still_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
