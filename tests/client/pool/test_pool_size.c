// What a search is told about the size of its pool before it begins.
#include "client/pool/pool_size.h"
#include "tests/client/pool/daemon_pool_fixture.h"

static int ask(struct fixture *f, struct device_info *ret_device, struct pool_size *ret,
               struct err *err)
{
    static const struct problem problem = {.language = "c"};
    return pool_size_ask(f->session, &problem, ret_device, ret, err);
}

// Every other device of a daemon that invents its answers is drained.
static void devices_that_take_jobs_are_counted_at_all_daemons(void **state)
{
    (void)state;
    struct fixture *f = begin(&(struct fake_behaviour){.devices = 3, .compile_slots = 10},
                              &(struct fake_behaviour){.devices = 8, .compile_slots = 32});
    struct device_info device;
    struct pool_size size;
    struct err err = ERR_INIT;
    assert_int_equal(ask(f, &device, &size, &err), 0);
    assert_string_equal(device.device_class, FAKE_CLASS);
    assert_int_equal(size.devices, 2 + 4);
    assert_int_equal(size.compile_slots, 42);
    message_clear(&device_info_message, &device);
    end(f);
}

static void daemons_of_another_class_do_not_count(void **state)
{
    (void)state;
    struct fixture *f = begin(
        &(struct fake_behaviour){.devices = 3, .compile_slots = 10},
        &(struct fake_behaviour){.device_class = "another", .devices = 8, .compile_slots = 32});
    struct device_info device;
    struct pool_size size;
    struct err err = ERR_INIT;
    assert_int_equal(ask(f, &device, &size, &err), 0);
    assert_int_equal(size.devices, 2);
    assert_int_equal(size.compile_slots, 10);
    message_clear(&device_info_message, &device);
    end(f);
}

static void a_daemon_that_is_away_does_not_count(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &(struct fake_behaviour){.devices = 4, .compile_slots = 9});
    fake_stop(&f->fake[0]);
    struct device_info device;
    struct pool_size size;
    struct err err = ERR_INIT;
    assert_int_equal(ask(f, &device, &size, &err), 0);
    assert_int_equal(size.devices, 2);
    assert_int_equal(size.compile_slots, 9);
    message_clear(&device_info_message, &device);
    fake_start(&f->fake[0], 1);
    end(f);
}

static void without_a_device_it_fails_with_the_first_reason(void **state)
{
    (void)state;
    struct fixture *f = begin(&(struct fake_behaviour){.busy = true}, &usual);
    struct device_info device;
    struct pool_size size;
    struct err err = ERR_INIT;
    static const struct problem cuda = {.language = "cuda", .cuda = true};
    assert_int_equal(pool_size_ask(f->session, &cuda, &device, &size, &err), ERR_BUSY);
    assert_non_null(strstr(err.text, "the house is full"));
    end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_that_take_jobs_are_counted_at_all_daemons),
        cmocka_unit_test(daemons_of_another_class_do_not_count),
        cmocka_unit_test(a_daemon_that_is_away_does_not_count),
        cmocka_unit_test(without_a_device_it_fails_with_the_first_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
