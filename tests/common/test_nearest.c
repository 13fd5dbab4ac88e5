#include "common/options/nearest.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// cmocka.h needs the four above.
#include "common/mem.h"
#include <cmocka.h>
#include <string.h>

static const char *const words[] = {"search", "resume",    "status", "jobs",       "job",
                                    "top",    "token add", "budget", "budget set", "measurements"};

static const char *nearest_of(const char *word)
{
    struct nearest nearest = {.word = word, .len = strlen(word)};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        nearest_try(&nearest, words[i]);
    }
    return nearest.best;
}

static void typing_errors_find_their_word(void **state)
{
    (void)state;
    assert_string_equal(nearest_of("serach"), "search"); // swapped
    assert_string_equal(nearest_of("sarch"), "search");  // left out
    assert_string_equal(nearest_of("searchh"), "search");
    assert_string_equal(nearest_of("resune"), "resume");
    assert_string_equal(nearest_of("job"), "job");
    assert_string_equal(nearest_of("tpo"), "top");
    assert_string_equal(nearest_of("buget set"), "budget set");
}

static void beginnings_find_their_word(void **state)
{
    (void)state;
    assert_string_equal(nearest_of("stat"), "status");
    assert_string_equal(nearest_of("me"), "measurements");
    assert_string_equal(nearest_of("measure"), "measurements");
}

static void other_words_find_nothing(void **state)
{
    char lengthy[80];

    (void)state;
    memset(lengthy, 's', sizeof(lengthy) - 1);
    lengthy[sizeof(lengthy) - 1] = '\0';
    assert_null(nearest_of(""));
    assert_null(nearest_of("x"));
    assert_null(nearest_of("frobnicate"));
    assert_null(nearest_of("\xff\xfe\xfd"));
    assert_null(nearest_of(lengthy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typing_errors_find_their_word),
        cmocka_unit_test(beginnings_find_their_word),
        cmocka_unit_test(other_words_find_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
