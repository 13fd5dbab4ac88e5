// How many A/A controls a search has had: a control stands in many results.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/report/report.h"
#include "tests/client/report/report_run.h"

// A result of a device with this control; none when half is NaN.
static struct result *result_with(const char *device, double log2, double half)
{
    struct result *result = xcalloc(1, sizeof *result);

    message_init(&result_message, result);
    result->verdict = VERDICT_WRONG;
    result->device = xstrdup(device);
    result->control = isnan(half) ? NULL : made_estimate(log2, half, 16);
    return result;
}

// Two devices; the control of the first is renewed. The one that is off is in three results.
static void a_control_counts_once_however_many_results_have_it(void **state)
{
    static const struct {
        const char *device;
        double log2, half;
    } rows[] = {
        {"cuda0", 0.001, 0.01}, {"cuda1", 0.001, 0.01}, {"cuda0", 0.001, 0.01},
        {"cuda1", 0.02, 0.01},  {"cuda0", 0, NAN},      {"cuda1", 0.02, 0.01},
        {"cuda0", 0.002, 0.01}, {"cuda1", 0.02, 0.01},  {"cuda0", 0.001, 0.01},
    };
    struct run_state run_state;
    struct report report;

    (void)state;
    run_state_init(&run_state);
    run_state.candidate_count = ARRAY_LEN(rows);
    run_state.candidate = xcalloc(ARRAY_LEN(rows), sizeof *run_state.candidate);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct result *result = result_with(rows[i].device, rows[i].log2, rows[i].half);

        *(i == 7 ? &run_state.candidate[i].record : &run_state.candidate[i].result) = result;
    }
    report_init(&report, &run_state);
    assert_int_equal(report.controls, 4);
    assert_int_equal(report.controls_off, 1);
    report_release(&report);
    run_state_release(&run_state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_control_counts_once_however_many_results_have_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
