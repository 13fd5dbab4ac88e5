// What a store of outcomes tells a search that begins: other problems and devices with the same
// parameters, each configuration once.
#include "worker/outcomes/recall.h"

#include "common/file.h"
#include "common/mem.h"
#include "proto/verdict.h"
#include "worker/outcomes/outcome.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    char *dir;
    struct outcome_store *store;
    uint64_t keys; // outcomes that were added
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-recall", NULL), 0);
    char *path = xasprintf("%s/worker.db", f->dir);
    assert_int_equal(outcome_store_open(&f->store, path, NULL), 0);
    free(path);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    outcome_store_close(f->store);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f);
    return 0;
}

// Adds an outcome of a candidate with these two parameters; a log2 of NaN is a wrong one.
static void add(struct fixture *f, const char *problem, const char *device_class,
                const char *const names[2], double a, double b, double log2)
{
    struct fact param[] = {{(char *)(uintptr_t)names[0], a}, {(char *)(uintptr_t)names[1], b}};
    struct candidate_facts candidate = {.params = param, .params_count = 2};
    struct outcome outcome;
    struct observe observe;
    char identity[OUTCOME_IDENTITY_MAX];
    bool take = true, added = false;
    int64_t group;
    message_init(&outcome_message, &outcome);
    message_init(&observe_message, &observe);
    outcome.candidate = &candidate;
    outcome.verdict = isnan(log2) ? VERDICT_WRONG : VERDICT_FASTER;
    outcome.log2 = log2;
    outcome.key = xasprintf("s/%llu", (unsigned long long)++f->keys);
    observe.problem = (char *)(uintptr_t)problem;
    observe.device_class = (char *)(uintptr_t)device_class;
    observe.outcomes = &outcome;
    observe.outcomes_count = 1;
    outcome_identity(problem, &observe.problem_digest, identity);
    assert_int_equal(outcome_store_group(f->store, identity, problem, device_class, &group, NULL),
                     0);
    assert_int_equal(outcome_store_add(f->store, group, &observe, &take, &added, NULL), 0);
    assert_true(added);
    free(outcome.key);
}

static void recall(struct fixture *f, const char *problem, const char *device_class,
                   struct recall_reply *ret)
{
    char *names[] = {(char *)"A", (char *)"B"};
    const struct recall_request request = {.problem = (char *)(uintptr_t)problem,
                                           .device_class = (char *)(uintptr_t)device_class,
                                           .params = names,
                                           .params_count = 2};
    struct err err = ERR_INIT;
    if (recall_make(f->store, &request, ret, &err) != 0) {
        fail_msg("%s", err.text);
    }
}

static const char *const ab[] = {"A", "B"}, *const ba[] = {"B", "A"}, *const ac[] = {"A", "C"};

static void others_with_the_same_parameters_are_told_of(void **state)
{
    struct fixture *f = *state;
    struct recall_reply reply;
    add(f, "sgemm", "H100", ab, 1, 2, 0.5);
    add(f, "sgemm", "H100", ba, 4, 3, 1.5); // B is 4 and A is 3
    add(f, "sgemm", "H100", ab, 5, 6, NAN);
    add(f, "sgemm", "H200", ab, 7, 8, 2); // the searched one
    add(f, "dgemm", "H200", ab, 9, 10, 3);
    add(f, "softmax", "H100", ac, 1, 2, 1); // other parameters
    add(f, "wrong", "H100", ab, 1, 2, NAN); // nothing correct
    recall(f, "sgemm", "H200", &reply);
    assert_int_equal(reply.groups_count, 2); // the latest first
    assert_string_equal(reply.groups[0].problem, "dgemm");
    assert_string_equal(reply.groups[0].device_class, "H200");
    assert_int_equal(reply.groups[0].log2_count, 1);
    const struct recalled *group = &reply.groups[1];
    assert_string_equal(group->device_class, "H100");
    assert_int_equal(group->log2_count, 3);
    assert_int_equal(group->values_count, 6);
    static const double values[] = {1, 2, 3, 4, 5, 6};
    assert_memory_equal(group->values, values, sizeof(values));
    assert_true(group->log2[0] == 0.5 && group->log2[1] == 1.5 && isnan(group->log2[2]));
    message_clear(&recall_reply_message, &reply);
    recall(f, "dgemm", "H200", &reply);
    assert_int_equal(reply.groups_count, 2);
    assert_string_equal(reply.groups[0].problem, "sgemm");
    message_clear(&recall_reply_message, &reply);
}

static void of_a_configuration_the_latest_outcome_counts(void **state)
{
    struct fixture *f = *state;
    struct recall_reply reply;
    add(f, "sgemm", "H100", ab, 1, 2, 0.5);
    add(f, "sgemm", "H100", ab, 3, 4, 0.25);
    add(f, "sgemm", "H100", ab, 1, 2, 0.75);
    recall(f, "sgemm", "H200", &reply);
    assert_int_equal(reply.groups_count, 1);
    assert_int_equal(reply.groups[0].log2_count, 2);
    assert_true(reply.groups[0].values[0] == 3 && reply.groups[0].log2[0] == 0.25);
    assert_true(reply.groups[0].values[2] == 1 && reply.groups[0].log2[1] == 0.75);
    message_clear(&recall_reply_message, &reply);
}

static void an_empty_store_and_no_parameters_tell_nothing(void **state)
{
    struct fixture *f = *state;
    struct recall_reply reply;
    recall(f, "sgemm", "H200", &reply);
    assert_int_equal(reply.groups_count, 0);
    message_clear(&recall_reply_message, &reply);
    add(f, "sgemm", "H100", ab, 1, 2, 0.5);
    const struct recall_request nothing = {.problem = (char *)"sgemm",
                                           .device_class = (char *)"H200"};
    assert_int_equal(recall_make(f->store, &nothing, &reply, NULL), 0);
    assert_int_equal(reply.groups_count, 0);
    message_clear(&recall_reply_message, &reply);
}

static void the_latest_sixteen_groups_are_told_of(void **state)
{
    struct fixture *f = *state;
    struct recall_reply reply;
    for (int i = 0; i < RECALL_GROUPS_MAX + 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "p%d", i);
        add(f, name, "H100", ab, 1, i, i);
    }
    recall(f, "sgemm", "H200", &reply);
    assert_int_equal(reply.groups_count, RECALL_GROUPS_MAX);
    assert_string_equal(reply.groups[0].problem, "p18");
    assert_string_equal(reply.groups[RECALL_GROUPS_MAX - 1].problem, "p3");
    message_clear(&recall_reply_message, &reply);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(others_with_the_same_parameters_are_told_of),
        TEST(of_a_configuration_the_latest_outcome_counts),
        TEST(an_empty_store_and_no_parameters_tell_nothing),
        TEST(the_latest_sixteen_groups_are_told_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
