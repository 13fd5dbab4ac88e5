#include "common/log/log_json.h"
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The JSON object of this event. Checks that it is valid and on one line.
static json_t *object_of(const char *event)
{
    struct log_line line = {"2026-01-31T12:00:00.000Z", "kcastd", "info", event};
    struct strbuf out = STRBUF_INIT;

    log_json(&out, &line);
    assert_null(strchr(strbuf_text(&out), '\n'));
    json_error_t error;
    json_t *root = json_loadb(out.data, out.len, JSON_REJECT_DUPLICATES, &error);
    if (!root) {
        fail_msg("%s: %s", strbuf_text(&out), error.text);
    }
    strbuf_release(&out);
    return root;
}

static void expect(const char *event, const char *key, const char *value)
{
    json_t *root = object_of(event);
    const char *found = json_string_value(json_object_get(root, key));

    assert_non_null(found);
    assert_string_equal(found, value);
    json_decref(root);
}

static void an_event_becomes_an_object(void **state)
{
    static const char event[] = "job-done job=7 search=a key=k verdict=faster";

    (void)state;
    expect(event, "time", "2026-01-31T12:00:00.000Z");
    expect(event, "program", "kcastd");
    expect(event, "level", "info");
    expect(event, "event", "job-done");
    expect(event, "job", "7");
    expect(event, "verdict", "faster");
    expect("stopping", "event", "stopping");
}

static void quoted_values_may_have_anything_inside(void **state)
{
    (void)state;
    expect("x reason=\"two words\" next=1", "reason", "two words");
    expect("x reason=\"two words\" next=1", "next", "1");
    expect("x reason=\"a \"b\" c\" next=1", "reason", "a \"b\" c");
    expect("x reason=\"never ends", "reason", "never ends");
    expect("x reason=\"\"", "reason", "");
    expect("x reason=\"line\nbreak \\ \x01\"", "reason", "line\nbreak \\ \x01");
    expect("x reason=\"\xc3\xa4\"", "reason", "\xc3\xa4");
}

static void bytes_that_are_no_utf8_are_escaped(void **state)
{
    (void)state;
    expect("x v=\xff", "v", "\xc3\xbf");
    expect("x v=\xed\xa0\x80", "v", "\xc3\xad\xc2\xa0\xc2\x80");
    expect("x v=\xc3", "v", "\xc3\x83");
}

static void what_is_no_pair_is_text(void **state)
{
    (void)state;
    expect("x some words a=1 more", "text", "some words more");
    expect("x some words a=1 more", "a", "1");
    expect("x =1", "text", "=1");
    expect("x level=high", "_level", "high");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_becomes_an_object),
        cmocka_unit_test(quoted_values_may_have_anything_inside),
        cmocka_unit_test(bytes_that_are_no_utf8_are_escaped),
        cmocka_unit_test(what_is_no_pair_is_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
