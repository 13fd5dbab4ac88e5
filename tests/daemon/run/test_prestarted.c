// Prestarted processes: who gets which, which are kept ready, and which leave.
// They are processes of the fake executor; the plans say what it does.
#include "common/mem.h"
#include "common/strbuf.h"
#include "daemon/run/prestarted.h"
#include "proto/messages.h"
#include "tests/support/program.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    uv_loop_t loop;
    struct children *children;
    struct prestarted_set *prestarted_set;
    struct clock clock;
};

// A question and its callbacks.
struct question {
    struct prestarted *prestarted;
    bool keeps; // the process is not given back in the callback
    unsigned outcomes, ends;
    char reason[CHILD_REASON_MAX];
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    char *path = program_support_path("fake_exec");

    (void)signal(SIGPIPE, SIG_IGN);
    (void)unsetenv("KCAST_FAKE_START");
    (void)unsetenv("KCAST_FAKE_LOG");
    assert_int_equal(uv_loop_init(&f->loop), 0);
    assert_int_equal(children_create(&f->children, &f->loop, path, NULL, NULL, NULL), 0);
    clock_fake_init(&f->clock, 1000 * NS_PER_S);
    f->prestarted_set = prestarted_set_create(f->children, &f->clock);
    free(path);
    *state = f;
    return 0;
}

static void until_left(struct fixture *f, size_t count)
{
    while (children_count(f->children) > count) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(children_count(f->children), count);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    prestarted_set_stop(f->prestarted_set);
    until_left(f, 0);
    prestarted_set_free(f->prestarted_set);
    children_free(f->children);
    (void)uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f);
    return 0;
}

static struct bytes pack(const struct message *message, const void *value)
{
    struct strbuf packed = STRBUF_INIT;

    assert_int_equal(message_pack(message, value, &packed, NULL), 0);
    return strbuf_detach_bytes(&packed);
}

// A plan whose candidate says these words.
static struct bytes plan_of(const char *words)
{
    struct measure_plan plan;
    struct cuda_variant variant = {.cubin = {0}};
    struct cuda_object object = {.variants = &variant, .variants_count = 1};
    char *text = xasprintf("OBJ%s", words);

    message_init(&measure_plan_message, &plan);
    plan.problem = plan.reference = plan.baseline =
        (struct bytes){(unsigned char *)text, strlen(text)};
    variant.cubin = object.source = plan.problem;
    object.target = text;
    plan.candidate = pack(&cuda_object_message, &object);
    struct bytes packed = pack(&measure_plan_message, &plan);
    bytes_clear(&plan.candidate);
    free(text);
    return packed;
}

static struct prestarted_config config_of(const char *group, bool fresh)
{
    return (struct prestarted_config){
        .mode = "cuda-measure",
        .argument = "GPU-1",
        .on_device = true,
        .group = group,
        .fresh = fresh,
        .grace_ms = PROGRAM_LIMIT_MS,
    };
}

static void on_outcome(void *owner, struct bytes *outcome)
{
    struct question *question = owner;

    assert_true(outcome->len > 0);
    question->outcomes++;
    if (!question->keeps) {
        prestarted_give_back(question->prestarted);
    }
}

static void on_end(void *owner, const struct child_end *end)
{
    struct question *question = owner;

    question->ends++;
    memcpy(question->reason, end->reason, sizeof(question->reason));
}

static void ask(struct fixture *f, struct question *question, struct prestarted_config config,
                const char *words)
{
    struct bytes plan = plan_of(words);
    struct prestarted_question asked = {
        .outcome_max = (size_t)1 << 20,
        .deadline_ms = PROGRAM_LIMIT_MS,
        .on_outcome = on_outcome,
        .on_end = on_end,
        .owner = question,
    };

    question->outcomes = question->ends = 0;
    assert_int_equal(prestarted_set_take(&question->prestarted, f->prestarted_set, &config, NULL),
                     0);
    prestarted_ask(question->prestarted, &asked, &plan);
    assert_null(plan.data);
}

static void until_told(struct fixture *f, const struct question *question)
{
    while (question->outcomes + question->ends == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
}

// Asks and returns the process that has answered.
static struct prestarted *answer(struct fixture *f, struct prestarted_config config)
{
    struct question question = {0};

    ask(f, &question, config, "");
    until_told(f, &question);
    assert_int_equal(question.outcomes, 1);
    return question.prestarted;
}

static void a_group_has_its_process_again_and_others_have_not(void **state)
{
    struct fixture *f = *state;
    struct prestarted *first = answer(f, config_of("a", false));

    assert_ptr_equal(answer(f, config_of("a", false)), first);
    struct prestarted *other = answer(f, config_of("b", false));
    assert_ptr_not_equal(other, first);
    assert_int_equal(children_count(f->children), 2);
    assert_ptr_equal(answer(f, config_of("a", false)), first);
    assert_ptr_equal(answer(f, config_of("b", false)), other);
}

static void a_fresh_process_takes_the_place_of_its_groups(void **state)
{
    struct fixture *f = *state;
    struct prestarted *first = answer(f, config_of("a", false));
    struct prestarted *second = answer(f, config_of("a", true));

    assert_ptr_not_equal(second, first);
    until_left(f, 1);
    assert_ptr_equal(answer(f, config_of("a", false)), second);
}

static void so_many_groups_keep_a_process_and_the_oldest_leaves(void **state)
{
    static const char *const group[] = {"a", "b", "c", "d", "e"};
    struct fixture *f = *state;

    for (size_t i = 0; i < PRESTARTED_GROUPS_MAX; i++) {
        (void)answer(f, config_of(group[i], false));
    }
    assert_int_equal(children_count(f->children), PRESTARTED_GROUPS_MAX);
    (void)answer(f, config_of("a", false)); // now "b" is the least recently used
    (void)answer(f, config_of(group[PRESTARTED_GROUPS_MAX], false));
    until_left(f, PRESTARTED_GROUPS_MAX);
    struct question question = {0};
    ask(f, &question, config_of("b", false), ""); // starts one
    assert_int_equal(children_count(f->children), PRESTARTED_GROUPS_MAX + 1);
    until_told(f, &question);
}

static void until_there(struct fixture *f, size_t count)
{
    while (children_count(f->children) < count) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(children_count(f->children), count);
}

// The same, with what the clock lets begin.
static void until_filled(struct fixture *f, size_t count)
{
    while (children_count(f->children) < count) {
        (void)uv_run(&f->loop, UV_RUN_NOWAIT);
        prestarted_set_tick(f->prestarted_set);
    }
    assert_int_equal(children_count(f->children), count);
}

static void fill(struct fixture *f, struct prestarted_config config, size_t count)
{
    prestarted_set_fill(f->prestarted_set, &config, count, NULL, NULL);
}

static void spares_are_replaced_when_nothing_is_measured(void **state)
{
    struct fixture *f = *state;

    fill(f, config_of("a", false), 2);
    until_there(f, 2);
    fill(f, config_of("a", false), 2); // there are two already
    assert_int_equal(children_count(f->children), 2);
    struct question question = {0};
    ask(f, &question, config_of("a", false), "");
    clock_fake_advance(&f->clock, NS_PER_S);
    prestarted_set_tick(f->prestarted_set);
    assert_int_equal(children_count(f->children), 2); // one owes an answer, one is unused
    until_told(f, &question);
    assert_int_equal(question.outcomes, 1);
    prestarted_set_tick(f->prestarted_set);
    assert_int_equal(children_count(f->children), 2); // the next plan may come at once
    clock_fake_advance(&f->clock, 100 * NS_PER_MS);
    until_filled(f, 3);
    prestarted_set_stop(f->prestarted_set);
    until_left(f, 0);
    prestarted_set_tick(f->prestarted_set);
    assert_int_equal(children_count(f->children), 0);
}

static void a_device_that_is_never_quiet_gets_its_spare_all_the_same(void **state)
{
    struct fixture *f = *state;

    fill(f, config_of("a", false), 2);
    until_there(f, 2);
    struct question question = {0};
    ask(f, &question, config_of("a", false), "//! run-hang\n");
    prestarted_set_tick(f->prestarted_set);
    clock_fake_advance(&f->clock, PRESTARTED_STARVED_NS - NS_PER_MS);
    prestarted_set_tick(f->prestarted_set);
    assert_int_equal(children_count(f->children), 2);
    clock_fake_advance(&f->clock, NS_PER_MS);
    until_filled(f, 3);
    prestarted_stop(question.prestarted);
    until_told(f, &question);
}

static void a_spare_takes_over_from_one_that_crashes(void **state)
{
    struct fixture *f = *state;

    fill(f, config_of("a", false), 2);
    until_there(f, 2);
    struct question question = {0};
    ask(f, &question, config_of("a", false), "//! run-exit 5\n");
    until_told(f, &question);
    assert_int_equal(question.ends, 1);
    until_left(f, 1);
    ask(f, &question, config_of("a", false), "");
    assert_int_equal(children_count(f->children), 1); // nothing has been started for it
    until_told(f, &question);
    assert_int_equal(question.outcomes, 1);
}

static void count_start(void *owner)
{
    ++*(size_t *)owner;
}

// Who needs an unused process learns that one is being started, and when that is over.
static void a_start_is_told_of_until_it_is_over(void **state)
{
    struct fixture *f = *state;
    struct prestarted_config config = config_of("a", false), other = config;
    size_t over = 0;

    other.argument = "GPU-2";
    prestarted_set_watch(f->prestarted_set, count_start, &over);
    assert_false(prestarted_set_is_starting(f->prestarted_set, &config));
    fill(f, config, 1);
    assert_true(prestarted_set_is_starting(f->prestarted_set, &config));
    assert_false(prestarted_set_is_starting(f->prestarted_set, &other));
    while (over == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_false(prestarted_set_is_starting(f->prestarted_set, &config)); // it is ready
    struct question question = {0};
    ask(f, &question, config, "");
    assert_false(prestarted_set_is_starting(f->prestarted_set, &config)); // it is used
    prestarted_set_tick(f->prestarted_set);
    assert_true(prestarted_set_is_starting(f->prestarted_set, &config)); // and replaced
    until_told(f, &question);
    while (over < 2) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    prestarted_set_watch(f->prestarted_set, NULL, NULL);
}

struct first {
    struct fixture *fixture;
    size_t told;
    size_t there; // processes when it was told
    char failure[CHILD_REASON_MAX];
};

static void on_first(void *owner, const char *failure)
{
    struct first *first = owner;

    first->told++;
    first->there = children_count(first->fixture->children);
    (void)snprintf(first->failure, sizeof(first->failure), "%s", failure ? failure : "");
}

// The first process of all is started alone, then one for each device beside the others.
static void devices_get_their_processes_beside_each_other(void **state)
{
    struct fixture *f = *state;
    struct first first[3] = {{.fixture = f}, {.fixture = f}, {.fixture = f}};
    static const char *const name[] = {"GPU-1", "GPU-2", "GPU-3"};

    for (size_t i = 0; i < 3; i++) {
        struct prestarted_config config = config_of("a", false);

        config.argument = name[i];
        prestarted_set_fill(f->prestarted_set, &config, 2, on_first, &first[i]);
        assert_int_equal(children_count(f->children), 1);
    }
    until_there(f, 6);
    assert_int_equal(first[0].there, 1);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(first[i].told, 1);
        assert_true(i == 0 || first[i].there >= 4);
        assert_string_equal(first[i].failure, "");
    }
}

static void one_that_dies_with_a_plan_is_told_to_who_asked(void **state)
{
    struct fixture *f = *state;
    struct question question = {0};

    ask(f, &question, config_of("a", false), "//! run-exit 5\n");
    until_told(f, &question);
    assert_int_equal(question.ends, 1);
    assert_non_null(strstr(question.reason, "ended with exit code 5"));
    until_left(f, 0);
    (void)answer(f, config_of("a", false)); // the next question gets another process
}

static void one_that_is_stopped_gives_no_answer(void **state)
{
    struct fixture *f = *state;
    struct question question = {0};

    ask(f, &question, config_of("a", false), "//! run-hang\n");
    prestarted_stop(question.prestarted);
    until_told(f, &question);
    assert_int_equal(question.outcomes, 0);
    assert_non_null(strstr(question.reason, "was stopped"));
}

static void a_retired_one_is_told_when_it_is_gone(void **state)
{
    struct fixture *f = *state;
    struct question question = {.keeps = true};

    ask(f, &question, config_of("a", false), "");
    until_told(f, &question);
    assert_int_equal(question.outcomes, 1);
    prestarted_retire(question.prestarted); // after the callback has returned
    while (question.ends == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_int_equal(children_count(f->children), 0);
}

// The outcome counts, and its process is not used again.
static void what_comes_while_the_answer_is_read_ends_it(void **state)
{
    struct fixture *f = *state;
    struct question question = {.keeps = true};

    ask(f, &question, config_of("a", false), "//! run-late\n");
    while (question.ends == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_true(question.outcomes <= 1); // both may arrive in one read
    assert_non_null(strstr(question.reason, "went on after its outcome"));
    until_left(f, 0);
}

static void one_that_does_not_become_ready_is_told(void **state)
{
    struct fixture *f = *state;
    char *path = program_support_path("fake_exec");

    (void)setenv("KCAST_FAKE_START", "garbage", 1);
    prestarted_set_free(
        f->prestarted_set); // because the environment is copied when the children are created
    children_free(f->children);
    assert_int_equal(children_create(&f->children, &f->loop, path, NULL, NULL, NULL), 0);
    f->prestarted_set = prestarted_set_create(f->children, &f->clock);
    struct question question = {0};
    ask(f, &question, config_of("a", false), "");
    until_told(f, &question);
    assert_int_equal(question.outcomes, 0);
    assert_non_null(strstr(question.reason, "did not begin with an empty frame"));
    struct first first = {.fixture = f};
    struct prestarted_config config = config_of("a", false);
    config.argument = "GPU-2";
    prestarted_set_fill(f->prestarted_set, &config, 1, on_first, &first);
    while (first.told == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_non_null(strstr(first.failure, "did not begin with an empty frame"));
    // Nobody waits for one that fails.
    size_t over = 0;
    prestarted_set_watch(f->prestarted_set, count_start, &over);
    config.argument = "GPU-3";
    fill(f, config, 1);
    while (over == 0) {
        (void)uv_run(&f->loop, UV_RUN_ONCE);
    }
    assert_false(prestarted_set_is_starting(f->prestarted_set, &config));
    free(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_group_has_its_process_again_and_others_have_not),
        TEST(a_fresh_process_takes_the_place_of_its_groups),
        TEST(so_many_groups_keep_a_process_and_the_oldest_leaves),
        TEST(spares_are_replaced_when_nothing_is_measured),
        TEST(a_device_that_is_never_quiet_gets_its_spare_all_the_same),
        TEST(a_spare_takes_over_from_one_that_crashes),
        TEST(a_start_is_told_of_until_it_is_over),
        TEST(devices_get_their_processes_beside_each_other),
        TEST(one_that_dies_with_a_plan_is_told_to_who_asked),
        TEST(one_that_is_stopped_gives_no_answer),
        TEST(a_retired_one_is_told_when_it_is_gone),
        TEST(what_comes_while_the_answer_is_read_ends_it),
        TEST(one_that_does_not_become_ready_is_told),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
