// What the report's tile says of the candidates that were never measured.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/policy/guarantee.h"
#include "client/report/report.h"
#include "client/report/report_html.h"
#include <stdlib.h>
#include <string.h>

// The text of the tile with the title, malloc'd; NULL: the page has none.
static char *tile(const struct run_state *run_state, const char *title)
{
    struct report report;
    report_init(&report, run_state);
    const struct report_page page = {.report = &report};
    struct strbuf out = STRBUF_INIT;
    report_html(&out, &page);
    const char *at = strstr(strbuf_text(&out), title);
    const char *end = at ? strstr(at, "</dd></div>") : NULL;
    char *ret = end ? xstrndup(at, (size_t)(end - at)) : NULL;
    strbuf_release(&out);
    report_release(&report);
    return ret;
}

static void expect(const struct run_state *run_state, const char *title, const char *part)
{
    char *text = tile(run_state, title);
    assert_non_null(text);
    if (!strstr(text, part)) {
        fail_msg("the tile %s lacks: %s", text, part);
    }
    free(text);
}

static void what_is_guaranteed_is_said_before_what_is_estimated(void **state)
{
    (void)state;
    double beyond[GUARANTEE_LEVELS], expected[GUARANTEE_LEVELS];
    guarantee_levels(beyond);
    for (size_t i = 0; i < GUARANTEE_LEVELS; i++) {
        expected[i] = 1e-6;
    }
    struct run_state run_state;
    run_state_init(&run_state);
    run_state.measured = 100;
    expect(&run_state, "Improvements missed", "nothing was left unmeasured");

    run_state.surveys = 1;
    run_state.surveyed = (struct run_surveyed){.unmeasured = 652,
                                               .forecast = 652,
                                               .beyond_log2 = beyond,
                                               .beyond_log2_count = GUARANTEE_LEVELS,
                                               .expected = expected,
                                               .expected_count = GUARANTEE_LEVELS};
    expect(&run_state, "Never measured", "at most +1");
    expect(&run_state, "Never measured", "none of the 652 that were never measured is more than 1");
    char *other = tile(&run_state, "Improvements missed");
    assert_null(other);
    run_state.measured = 3; // too few to say anything
    expect(&run_state, "Improvements missed", "3 measurements are too few");
    run_state.surveyed = (struct run_surveyed){0};
    run_state_release(&run_state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_guaranteed_is_said_before_what_is_estimated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
