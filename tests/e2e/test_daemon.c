// kcastd as a whole, over the wire, with an executor that does as it is told.
#include "contract/verdict.h"
#include "tests/support/daemon_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void measured_job_gives_a_result(void **state)
{
    struct daemon_client client;
    struct job_info info;
    uint64_t job;

    (void)state;
    daemon_client_init(&client);
    assert_true(daemon_client_start(&client));
    job = daemon_client_accepted(&client, "k1", "//! log2 0.75\n");
    daemon_client_wait(&client, job, &info);
    assert_int_equal(info.state, JOB_DONE);
    assert_non_null(info.result);
    assert_int_equal(info.result->verdict, VERDICT_FASTER);
    assert_float_equal(info.result->speedup->log2, 0.75, 1e-9);
    assert_non_null(info.result->control);
    assert_non_null(info.result->compiled);
    assert_string_equal(info.result->device, "cpu0");
    message_clear(&job_info_message, &info);
    daemon_client_ack(&client, job);
    assert_int_equal(program_stop(&client.program), 0);
    daemon_client_release(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measured_job_gives_a_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
