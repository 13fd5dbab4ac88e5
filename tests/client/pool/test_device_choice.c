// Which of a daemon's devices a problem is measured on, and the sentence when there is none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/pool/device_choice.h"
#include "common/mem.h"
#include <string.h>

static char *text_of(const char *literal)
{
    return (char *)(uintptr_t)literal;
}

static struct device_info device_of(const char *name, const char *device_class, const char *state,
                                    const char *language)
{
    return (struct device_info){.name = text_of(name),
                                .device_class = text_of(device_class),
                                .state = text_of(state),
                                .language = text_of(language)};
}

static int choose(struct device_info *device, size_t count, const char *device_class,
                  const char *language, struct device_info *ret, struct err *err)
{
    const struct status status = {.devices = device, .devices_count = count};
    const struct problem problem = {.language = text_of(language),
                                    .cuda = strcmp(language, "cuda") == 0};
    return device_choose(&status, device_class, &problem, ret, err);
}

// The chosen device's name is this one.
static void expect(struct device_info *device, size_t count, const char *device_class,
                   const char *language, const char *name)
{
    struct device_info chosen = {0};
    struct err err = ERR_INIT;
    if (choose(device, count, device_class, language, &chosen, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(chosen.name, name);
    message_clear(&device_info_message, &chosen);
}

static void refuse(struct device_info *device, size_t count, const char *device_class,
                   const char *language, int rc, const char *words)
{
    struct device_info chosen = {0};
    struct err err = ERR_INIT;
    assert_int_equal(choose(device, count, device_class, language, &chosen, &err), rc);
    if (!strstr(err.text, words)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    }
    assert_null(chosen.name); // nothing was written
}

static void the_first_that_fits_is_chosen(void **state)
{
    (void)state;
    struct device_info device[] = {
        device_of("gpu0", "cuda: H200", "idle", "cuda"),
        device_of("core0", "cpu: a", "out-of-service", "c"),
        device_of("core1", "cpu: a", "busy", "c"),
        device_of("core2", "cpu: a", "idle", "c"),
        device_of("core3", "cpu: b", "idle", "c"),
    };
    expect(device, ARRAY_LEN(device), NULL, "c", "core1"); // a busy one is free later
    expect(device, ARRAY_LEN(device), NULL, "cuda", "gpu0");
    expect(device, ARRAY_LEN(device), "cpu: b", "c", "core3");
    expect(device, ARRAY_LEN(device), "cpu: a", "c", "core1");
}

static void a_device_without_a_language_is_for_c(void **state)
{
    (void)state;
    struct device_info old = device_of("core0", "cpu: a", "idle", NULL);
    expect(&old, 1, NULL, "c", "core0");
    refuse(&old, 1, NULL, "cuda", ERR_NO_DEVICE, "no device for problems in CUDA");
}

static void the_choice_is_a_copy(void **state)
{
    (void)state;
    struct device_info device = device_of("core0", "cpu: a", "idle", "c");
    struct fact fact = {.name = text_of("mhz"), .value = 3000};
    device.facts = &fact;
    device.facts_count = 1;
    struct device_info chosen = {0};
    assert_int_equal(choose(&device, 1, NULL, "c", &chosen, NULL), 0);
    assert_ptr_not_equal(chosen.name, device.name);
    assert_ptr_not_equal(chosen.facts, &fact);
    assert_string_equal(chosen.facts[0].name, "mhz");
    assert_true(chosen.facts[0].value == 3000);
    message_clear(&device_info_message, &chosen);
}

static void without_a_device_the_sentence_says_what_is_missing(void **state)
{
    (void)state;
    refuse(NULL, 0, NULL, "c", ERR_NO_DEVICE, "the daemon has no device");
    struct device_info gpu = device_of("gpu0", "cuda: H200", "idle", "cuda");
    refuse(&gpu, 1, NULL, "c", ERR_NO_DEVICE, "no device for problems in C;");
    // Its class is not what is wrong with it.
    refuse(&gpu, 1, "cuda: H200", "c", ERR_NO_DEVICE, "no device for problems in C;");
}

static void out_of_service_has_two_spellings_and_a_reason(void **state)
{
    static const char *const spelling[] = {"out-of-service", "out of service"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spelling); i++) {
        struct device_info device = device_of("core0", "cpu: a", spelling[i], "c");
        refuse(&device, 1, NULL, "c", ERR_NO_DEVICE, "in service: no reason given");
        device.reason = text_of("its clock drifts");
        refuse(&device, 1, "cpu: a", "c", ERR_NO_DEVICE, "in service: its clock drifts");
        assert_false(device_takes_jobs(&device));
    }
}

static void another_class_is_named_unless_the_wanted_one_is_out_of_service(void **state)
{
    (void)state;
    struct device_info device[] = {device_of("core0", "cpu: a", "idle", "c"),
                                   device_of("core1", "cpu: b", "out-of-service", "c")};
    refuse(device, 1, "cpu: b", "c", ERR_INVALID, "of class \"cpu: b\" (it has \"cpu: a\")");
    refuse(device, 2, "cpu: b", "c", ERR_NO_DEVICE, "no device of the daemon is in service");
}

static void hostile_texts_are_cut_and_not_the_sentence(void **state)
{
    enum { LONG = 4096 };
    static char text[LONG];
    (void)state;
    memset(text, 'x', LONG - 1);
    struct device_info device = device_of("core0", text, "idle", "c");
    refuse(&device, 1, "cpu: b", "c", ERR_INVALID, "cannot be compared");
    device.state = text_of("out-of-service");
    device.reason = text;
    refuse(&device, 1, NULL, "c", ERR_NO_DEVICE, "in service: xxx");
}

static void states_that_last_take_no_jobs(void **state)
{
    static const struct {
        const char *state;
        bool takes;
    } cases[] = {
        {"idle", true},         {"busy", true},          {"draining", false},
        {"quarantined", false}, {"lost", false},         {"out-of-service", false},
        {"probing", true},      {"something new", true}, {"", true},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct device_info device = device_of("core0", "cpu: a", cases[i].state, "c");
        if (device_takes_jobs(&device) != cases[i].takes) {
            fail_msg("\"%s\" is wrong", cases[i].state);
        }
    }
}

static void devices_of_a_class_are_counted_with_and_without_those_that_rest(void **state)
{
    (void)state;
    struct device_info device[] = {
        device_of("core0", "cpu: a", "idle", "c"),
        device_of("core1", "cpu: a", "draining", "c"),
        device_of("core2", "cpu: a", "out of service", "c"),
        device_of("core3", "cpu: ab", "idle", "c"),
        device_of("core4", "cpu: a", "busy", "c"),
    };
    const struct status status = {.devices = device, .devices_count = ARRAY_LEN(device)};
    size_t every = 77;
    assert_int_equal(device_count(&status, "cpu: a", &every), 2);
    assert_int_equal(every, 4);
    assert_int_equal(device_count(&status, "cpu: ab", NULL), 1);
    assert_int_equal(device_count(&status, "cpu:", &every), 0);
    assert_int_equal(every, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_fits_is_chosen),
        cmocka_unit_test(a_device_without_a_language_is_for_c),
        cmocka_unit_test(the_choice_is_a_copy),
        cmocka_unit_test(without_a_device_the_sentence_says_what_is_missing),
        cmocka_unit_test(out_of_service_has_two_spellings_and_a_reason),
        cmocka_unit_test(another_class_is_named_unless_the_wanted_one_is_out_of_service),
        cmocka_unit_test(hostile_texts_are_cut_and_not_the_sentence),
        cmocka_unit_test(states_that_last_take_no_jobs),
        cmocka_unit_test(devices_of_a_class_are_counted_with_and_without_those_that_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
