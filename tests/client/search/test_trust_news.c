// What users are told of trust: what is new of each forecaster, also where two take turns.
#include "client/search/trust_news.h"

#include "common/mem.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

// A run state whose latest event is about this forecaster; the others stay before it.
struct made {
    struct run_state run_state;
    struct run_trusted trust[4];
};

static void say(struct made *made, const char *forecaster, double cut, const char *text)
{
    struct run_state *run_state = &made->run_state;
    size_t i = 0;

    run_state->trust = made->trust;
    while (i < run_state->trust_count && strcmp(made->trust[i].forecaster, forecaster) != 0) {
        i++;
    }
    for (run_state->trust_count -= i < run_state->trust_count; i < run_state->trust_count; i++) {
        made->trust[i] = made->trust[i + 1];
    }
    made->trust[run_state->trust_count++] = (struct run_trusted){
        .forecaster = (char *)(uintptr_t)forecaster, .cut = cut, .text = (char *)(uintptr_t)text};
    run_state->trust_events++;
}

static void of_two_that_take_turns_only_what_is_new_is_told(void **state)
{
    struct made made = {.trust = {{.forecaster = NULL}}};
    struct trust_news *news = trust_news_create(&made.run_state);

    (void)state;
    assert_null(trust_news_next(news));
    say(&made, "one", NAN, "one is not trusted");
    assert_null(trust_news_next(news)); // the first one
    say(&made, "two", NAN, "now two");
    assert_string_equal(trust_news_next(news), "now two");
    assert_null(trust_news_next(news));
    say(&made, "one", 0.5, "one is trusted");
    assert_string_equal(trust_news_next(news), "one is trusted");
    say(&made, "two", NAN, "two is not trusted still");
    assert_null(trust_news_next(news));
    say(&made, "one", 0.4, "one is trusted still");
    assert_null(trust_news_next(news));
    say(&made, "two", NAN, "two is not trusted still");
    assert_null(trust_news_next(news));
    say(&made, "one", NAN, "trust in one is gone");
    assert_string_equal(trust_news_next(news), "trust in one is gone");
    trust_news_free(news);
}

static void alarms_are_told_and_a_resumed_search_repeats_nothing(void **state)
{
    struct made made = {.trust = {{.forecaster = NULL}}};

    (void)state;
    say(&made, "one", 0.5, "one is trusted");
    struct trust_news *news = trust_news_create(&made.run_state);
    assert_null(trust_news_next(news));
    say(&made, "one", 0.5, "one is trusted still");
    assert_null(trust_news_next(news));
    say(&made, "one", NAN, "an alarm");
    made.run_state.trust_alarms++;
    assert_string_equal(trust_news_next(news), "an alarm");
    say(&made, "one", NAN, "another alarm");
    made.run_state.trust_alarms++;
    assert_string_equal(trust_news_next(news), "another alarm");
    trust_news_free(news);
    trust_news_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_two_that_take_turns_only_what_is_new_is_told),
        cmocka_unit_test(alarms_are_told_and_a_resumed_search_repeats_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
