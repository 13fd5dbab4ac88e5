// Who compiles next: no search waits for the many candidates of another one, and nothing quick for
// what is recorded.
#include "daemon/run/compiler.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <utlist.h>

#define REQUESTS 64

struct asked {
    struct compile_request request;
    bool done;
};

struct fixture {
    struct workshop w;
    struct compiler *compiler; // the one that is tested, beside the workshop's own
    struct device_class device_class;
    size_t count;
    struct asked asked[REQUESTS];
};

static bool may_start(void *owner)
{
    (void)owner;
    return true;
}

static void on_idle(void *owner, double seconds)
{
    (void)seconds;
    compiler_kick(((struct fixture *)owner)->compiler);
}

static int set_up(void **state)
{
    static char name[] = "a gpu", language[] = "cuda", target[] = "sm_90",
                toolchain[] = "nvrtc 0.0";
    struct fixture *f = xcalloc(1, sizeof(*f));
    const struct compiler_events events = {.may_start = may_start, .on_idle = on_idle, .owner = f};

    workshop_open(&f->w, 1);
    f->compiler = compiler_create(&f->w.parts, &events);
    f->device_class = (struct device_class){
        .name = name, .language = language, .target = target, .toolchain = toolchain};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    compiler_stop(f->compiler);
    while (compiler_busy(f->compiler)) {
        workshop_turn(&f->w);
    }
    compiler_free(f->compiler);
    workshop_close(&f->w);
    free(f);
    return 0;
}

static void on_done(struct compile_request *request, const struct compile_answer *answer)
{
    (void)answer;
    ((struct asked *)request->owner)->done = true;
}

// Searches below 50 are tenant 1's, the others 2's.
static struct asked *ask_for(struct fixture *f, uint64_t search, const char *source)
{
    struct asked *asked = &f->asked[f->count++];
    const struct compile_input input = {
        .source = workshop_put(&f->w, source),
        .header = "",
        .glue = "",
        .name = "candidate.cu",
        .device_class = &f->device_class,
        .problem = f->w.problem,
    };

    assert_true(f->count <= REQUESTS);
    *asked = (struct asked){
        .request = {.on_done = on_done,
                    .owner = asked,
                    .tenant = search < 50 ? 1 : 2,
                    .search = search},
    };
    compiler_request(f->compiler, &asked->request, &input);
    workshop_settle(&f->w);
    return asked;
}

// A source of its own, which is compiled or recorded.
static struct asked *ask(struct fixture *f, uint64_t search, bool recorded)
{
    char source[64];

    (void)snprintf(source, sizeof(source), "%s# %zu\n", recorded ? "import torch\n" : "int a;\n",
                   f->count);
    return ask_for(f, search, source);
}

static size_t running(const struct fixture *f, const char *mode)
{
    const struct execution *execution;
    size_t count = 0;

    DL_FOREACH (f->w.executions, execution) {
        count += strcmp(execution->name, mode) == 0;
    }
    return count;
}

static void assert_running(struct fixture *f, size_t recorded, size_t compiled)
{
    workshop_settle(&f->w);
    assert_int_equal(running(f, "cuda-record"), recorded);
    assert_int_equal(running(f, "cuda-compile"), compiled);
}

static void end_one(struct fixture *f, const char *mode)
{
    workshop_compiled(&f->w, workshop_execution(&f->w, mode), "an error");
    workshop_settle(&f->w);
}

// Ends runs until the answer is there. Returns how many.
static size_t end_until(struct fixture *f, const char *mode, const struct asked *asked)
{
    size_t count = 0;

    for (; !asked->done; count++) {
        end_one(f, mode);
    }
    return count;
}

static void the_search_with_the_fewest_slots_is_next(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 4;
    for (size_t i = 0; i < 20; i++) {
        (void)ask(f, 1, false);
    }
    const struct asked *other = ask(f, 2, false);
    assert_running(f, 0, 4);
    end_one(f, "cuda-compile"); // the other one begins, behind three of the first search
    assert_int_equal(end_until(f, "cuda-compile", other), 4);
}

static void many_searches_of_a_tenant_have_no_more_than_one(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 4;
    for (uint64_t i = 1; i < 20; i++) {
        (void)ask(f, i, false);
    }
    const struct asked *one = ask(f, 50, false);
    const struct asked *two = ask(f, 50, false);
    end_one(f, "cuda-compile");
    end_one(f, "cuda-compile"); // both of the other tenant's go before those of the first
    assert_int_equal(end_until(f, "cuda-compile", one), 3);
    assert_int_equal(end_until(f, "cuda-compile", two), 1);
}

static void of_one_search_the_oldest_is_next(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 1;
    const struct asked *one = ask(f, 1, false);
    const struct asked *two = ask(f, 1, false);
    const struct asked *three = ask(f, 1, false);
    assert_int_equal(end_until(f, "cuda-compile", one), 1);
    assert_int_equal(end_until(f, "cuda-compile", two), 1);
    assert_int_equal(end_until(f, "cuda-compile", three), 1);
}

// What a search with many candidates waits for is no less urgent for a search that has nothing.
static void what_two_searches_wait_for_is_as_urgent_as_for_the_one_with_less(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 2;
    for (size_t i = 0; i < 8; i++) {
        (void)ask(f, 1, false);
    }
    (void)ask_for(f, 1, "both want it");
    const struct asked *other = ask_for(f, 2, "both want it");
    end_one(f, "cuda-compile");
    assert_int_equal(end_until(f, "cuda-compile", other), 2);
}

static void recordings_do_not_keep_a_compilation_waiting(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 8;
    for (uint64_t i = 0; i < 20; i++) {
        (void)ask(f, i, true); // each is a search of its own, so no search has more than one slot
    }
    assert_running(f, 8, 0);
    assert_int_equal(compiler_waiting(f->compiler), 12);
    const struct asked *quick = ask(f, 100, false);
    assert_running(f, 8, 1);
    assert_int_equal(end_until(f, "cuda-compile", quick), 1);
    for (size_t i = 0; i < 10; i++) {
        (void)ask(f, 100, false);
    }
    assert_running(f, 8, 2); // a quarter of the slots twice, and no more
    end_one(f, "cuda-record");
    assert_int_equal(running(f, "cuda-record") + running(f, "cuda-compile"), 10);
}

static void compilations_alone_have_no_more_than_the_slots(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 4;
    for (size_t i = 0; i < 10; i++) {
        (void)ask(f, 1, false);
    }
    assert_running(f, 0, 4);
    (void)ask(f, 2, true); // its kind is known when one of the others has ended
    end_one(f, "cuda-compile");
    assert_running(f, 1, 4);
}

// Nothing is left of the slots of those who no longer want them.
static void a_slot_given_up_is_free_again(void **state)
{
    struct fixture *f = *state;

    f->w.parts.limits.compile_slots = 1;
    struct asked *first = ask(f, 1, true);
    const struct asked *second = ask(f, 1, true);
    assert_running(f, 1, 0);
    assert_int_equal(compiler_waiting(f->compiler), 1);
    compiler_cancel(f->compiler, &first->request);
    workshop_turn(&f->w);
    assert_running(f, 1, 0);
    assert_int_equal(compiler_waiting(f->compiler), 0);
    assert_int_equal(end_until(f, "cuda-record", second), 1);
    assert_int_equal(compiler_running(f->compiler), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_search_with_the_fewest_slots_is_next, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(many_searches_of_a_tenant_have_no_more_than_one, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(of_one_search_the_oldest_is_next, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            what_two_searches_wait_for_is_as_urgent_as_for_the_one_with_less, set_up, tear_down),
        cmocka_unit_test_setup_teardown(recordings_do_not_keep_a_compilation_waiting, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(compilations_alone_have_no_more_than_the_slots, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_slot_given_up_is_free_again, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
