// How much of a cuda source is compiled: what the features need at first, and the rest when it is
// to be measured; what is known already goes with the plan.
#include "daemon/run/compiler.h"
#include "daemon/store/blob.h"
#include "proto/verdict.h"
#include "tests/support/gpu_object.h"
#include "tests/support/workshop.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SOURCE "a source"
#define KERNELS "fk_scale 8 8 4 4"

enum need { FEATURES, FEATURES_PLAIN, ALL, ALL_PLAIN }; // plain: without those of machine code

struct asked {
    struct compile_request request;
    bool done, lost;
    struct compiled compiled; // a copy of the answer
    double seconds;
};

struct fixture {
    struct workshop w;
    struct compiler *compiler; // the one that is tested, beside the workshop's own
    struct device_class device_class;
    struct digest source;
    bool may_start;
    struct asked asked[4];
};

static bool may_start(void *owner)
{
    return ((struct fixture *)owner)->may_start;
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
    f->source = workshop_put(&f->w, SOURCE);
    f->may_start = true;
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
    for (size_t i = 0; i < ARRAY_LEN(f->asked); i++) {
        message_clear(&compiled_message, &f->asked[i].compiled);
    }
    workshop_close(&f->w);
    free(f);
    return 0;
}

static void on_done(struct compile_request *request, const struct compile_answer *answer)
{
    struct asked *asked = request->owner;

    assert_false(asked->done);
    asked->done = true;
    asked->lost = !answer->compiled;
    asked->seconds = answer->seconds;
    if (answer->compiled) {
        message_copy(&compiled_message, &asked->compiled, answer->compiled);
    }
}

static struct asked *ask(struct fixture *f, size_t i, enum need need)
{
    struct asked *asked = &f->asked[i];
    const struct compile_input input = {
        .source = f->source,
        .header = "",
        .glue = "",
        .name = "candidate.cu",
        .device_class = &f->device_class,
        .problem = f->w.problem,
        .features_only = need == FEATURES || need == FEATURES_PLAIN,
        .machine_code = need == FEATURES || need == ALL,
    };

    message_clear(&compiled_message, &asked->compiled);
    *asked = (struct asked){.request = {.on_done = on_done, .owner = asked}};
    compiler_request(f->compiler, &asked->request, &input);
    return asked;
}

static void wait_for(struct fixture *f, const struct asked *asked)
{
    while (!asked->done) {
        workshop_turn(&f->w);
    }
}

static void read_plan(struct fixture *f, struct compile_plan *ret)
{
    struct execution *execution = workshop_execution(&f->w, "cuda-compile");

    assert_int_equal(
        message_read(&compile_plan_message, ret, execution->plan.data, execution->plan.len, NULL),
        0);
}

// An object of one variant, or of two.
static struct bytes object_of(bool complete)
{
    static const int64_t values[] = {1000, 100};
    struct cuda_object object;

    gpu_object_init(&object, SOURCE);
    for (size_t i = 0; i < (complete ? 2 : 1); i++) {
        gpu_object_add(&object, NULL, KERNELS, &values[i], 1);
    }
    return gpu_object_pack(&object);
}

// Ends the run with what its plan asks for, or with less.
static void compile(struct fixture *f, bool less)
{
    struct compile_plan plan;
    read_plan(f, &plan);
    bool complete = !plan.features_only && !less;
    struct fact features[] = {{.name = (char[]){"registers"}, .value = 32},
                              {.name = (char[]){"sass_total"}, .value = 7}};
    struct compiled compiled;
    message_init(&compiled_message, &compiled);
    compiled.features = features;
    compiled.features_count = plan.no_machine_code ? 1 : 2;
    compiled.no_machine_code = plan.no_machine_code;
    compiled.incomplete = !complete;
    struct compile_outcome outcome;
    message_init(&compile_outcome_message, &outcome);
    outcome.compiled = &compiled;
    outcome.object = object_of(complete);
    workshop_compile_outcome(&f->w, workshop_execution(&f->w, "cuda-compile"), &outcome);
    bytes_clear(&outcome.object);
    message_clear(&compile_plan_message, &plan);
}

static void assert_known(const struct compile_plan *plan, bool complete, size_t features)
{
    struct bytes known = object_of(complete);

    assert_int_equal(plan->known.len, known.len);
    assert_memory_equal(plan->known.data, known.data, known.len);
    assert_int_equal(plan->known_features_count, features);
    bytes_clear(&known);
}

static void a_measurement_has_the_rest_compiled_and_later_requests_find_both(void **state)
{
    struct fixture *f = *state;
    struct asked *features = ask(f, 0, FEATURES), *all, *again;
    struct compile_plan plan;

    read_plan(f, &plan);
    assert_true(plan.features_only);
    assert_false(plan.no_machine_code);
    assert_int_equal(plan.known.len, 0);
    message_clear(&compile_plan_message, &plan);
    compile(f, false);
    wait_for(f, features);
    assert_true(features->compiled.incomplete);
    all = ask(f, 1, ALL);
    read_plan(f, &plan);
    assert_false(plan.features_only);
    assert_known(&plan, false, 2);
    assert_string_equal(plan.known_features[1].name, "sass_total");
    message_clear(&compile_plan_message, &plan);
    compile(f, false);
    wait_for(f, all);
    assert_false(all->compiled.incomplete || all->compiled.cached);
    for (enum need need = FEATURES; need <= ALL_PLAIN; need++) {
        again = ask(f, 2, need);
        wait_for(f, again);
        assert_true(again->compiled.cached);
        assert_true(digest_equal(&again->compiled.object, &all->compiled.object));
        assert_int_equal(again->compiled.features_count, 2);
    }
    assert_int_equal(f->w.begun, 2);
}

static void features_of_machine_code_are_added_when_they_are_needed(void **state)
{
    struct fixture *f = *state;
    struct asked *plain = ask(f, 0, ALL_PLAIN), *features;
    struct compile_plan plan;

    read_plan(f, &plan);
    assert_true(plan.no_machine_code);
    message_clear(&compile_plan_message, &plan);
    compile(f, false);
    wait_for(f, plain);
    assert_true(plain->compiled.no_machine_code);
    features = ask(f, 1, FEATURES);
    read_plan(f, &plan);
    assert_false(plan.no_machine_code);
    assert_known(&plan, true, 0); // so that its first variant is compiled again, and no other
    message_clear(&compile_plan_message, &plan);
    compile(f, false);
    wait_for(f, features);
    assert_int_equal(features->compiled.features_count, 2);
}

static void one_run_serves_those_who_wait_with_what_they_need_together(void **state)
{
    struct fixture *f = *state;
    struct compile_plan plan;

    f->may_start = false;
    struct asked *features = ask(f, 0, FEATURES), *all = ask(f, 1, ALL_PLAIN);
    f->may_start = true;
    read_plan(f, &plan);
    assert_false(plan.features_only || plan.no_machine_code);
    message_clear(&compile_plan_message, &plan);
    compile(f, false);
    wait_for(f, features);
    wait_for(f, all);
    assert_int_equal(f->w.begun, 1);
}

static void who_needs_more_than_is_being_compiled_waits_for_the_rest(void **state)
{
    struct fixture *f = *state;
    struct asked *features = ask(f, 0, FEATURES);
    struct compile_plan plan;

    (void)workshop_execution(&f->w, "cuda-compile");
    struct asked *all = ask(f, 1, ALL), *cancelled = ask(f, 2, ALL);
    compile(f, false);
    wait_for(f, features);
    assert_true(features->seconds > 0);
    assert_false(all->done);
    compiler_cancel(f->compiler, &cancelled->request);
    read_plan(f, &plan);
    assert_known(&plan, false, 2);
    message_clear(&compile_plan_message, &plan);
    compile(f, false);
    wait_for(f, all);
    assert_false(all->compiled.incomplete);
    assert_true(all->seconds > 0); // each pays for its own run
    assert_false(cancelled->done);
}

static void what_is_known_but_has_gone_is_compiled_again(void **state)
{
    struct fixture *f = *state;
    struct asked *features = ask(f, 0, FEATURES), *all;
    struct compile_plan plan;

    compile(f, false);
    wait_for(f, features);
    f->may_start = false;
    all = ask(f, 1, ALL);
    workshop_settle(&f->w); // the cache has been asked
    char *root = xasprintf("%s/blobs", f->w.dir);
    char *path = blob_path(root, &features->compiled.object);
    assert_int_equal(unlink(path), 0);
    free(path);
    free(root);
    f->may_start = true;
    compiler_kick(f->compiler);
    read_plan(f, &plan);
    assert_int_equal(plan.known.len, 0);
    message_clear(&compile_plan_message, &plan);
    compile(f, false);
    wait_for(f, all);
    assert_false(all->lost || all->compiled.incomplete);
}

static void an_outcome_with_less_than_was_asked_for_is_no_outcome(void **state)
{
    struct fixture *f = *state;
    struct asked *all = ask(f, 0, ALL);

    compile(f, true);
    compile(f, true);
    wait_for(f, all);
    assert_true(all->lost);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_measurement_has_the_rest_compiled_and_later_requests_find_both),
        TEST(features_of_machine_code_are_added_when_they_are_needed),
        TEST(one_run_serves_those_who_wait_with_what_they_need_together),
        TEST(who_needs_more_than_is_being_compiled_waits_for_the_rest),
        TEST(what_is_known_but_has_gone_is_compiled_again),
        TEST(an_outcome_with_less_than_was_asked_for_is_no_outcome),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
