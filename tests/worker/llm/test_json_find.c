// Objects inside other text: which are found, and that hostile text ends the search.
#include "worker/llm/json_find.h"

#include "common/mem.h"
#include "common/strbuf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Fails unless the objects in the text are these, written compactly and each ended by a blank.
static void finds(const char *text, const char *objects)
{
    struct strbuf found = STRBUF_INIT;
    struct json_find find;
    json_t *object;

    json_find_init(&find, text);
    while ((object = json_find_next(&find))) {
        char *compact = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);

        strbuf_addf(&found, "%s ", compact);
        free(compact);
        json_decref(object);
    }
    if (strcmp(strbuf_text(&found), objects) != 0) {
        fail_msg("%s: found %s", text, strbuf_text(&found));
    }
    strbuf_release(&found);
}

static void objects_are_found_wherever_they_stand(void **state)
{
    static const struct {
        const char *text, *objects;
    } row[] = {
        {"", ""},
        {"no object", ""},
        {"{}", "{} "},
        {"```json\n{\"a\": 1}\n```", "{\"a\":1} "},
        {"<think>if (x) { y; }</think>{\"a\":1}", "{\"a\":1} "},
        {"{\"a\":{\"b\":{}}}{\"c\":2}", "{\"a\":{\"b\":{}}} {\"c\":2} "}, // outermost ones only
        {"{{\"a\":1}", "{\"a\":1} "},
        {"{\"a\":\"}{\"} {\"b\":\"\\\"}\"}", "{\"a\":\"}{\"} {\"b\":\"\\\"}\"} "},
        {"{\"cut\": {\"b\":2}, \"off\": ", "{\"b\":2} "},
        {"{'a': 1} [1] \"{\" {\"z\":[{}]}", "{\"z\":[{}]} "},
        {"}}}{\"a\":null}{{{", "{\"a\":null} "},
        {"{\"\xff\": 1} {\"b\":1}", "{\"b\":1} "}, // not UTF-8
        {"{\"a\": 1e999} {\"b\":1}", "{\"b\":1} "},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        finds(row[i].text, row[i].objects);
    }
}

static void after_the_last_object_there_is_none(void **state)
{
    struct json_find find;

    (void)state;
    json_find_init(&find, "{} and nothing more");
    json_t *object = json_find_next(&find);
    assert_non_null(object);
    json_decref(object);
    for (int i = 0; i < 3; i++) {
        assert_null(json_find_next(&find));
    }
}

static void braces_without_end_are_given_up(void **state)
{
    struct strbuf text = STRBUF_INIT;

    (void)state;
    for (int i = 0; i < JSON_FIND_TRIES - 1; i++) {
        strbuf_addc(&text, '{');
    }
    strbuf_adds(&text, "\"a\"{\"b\":1}");
    finds(strbuf_text(&text), "{\"b\":1} ");
    strbuf_reset(&text);
    for (int i = 0; i < JSON_FIND_TRIES; i++) {
        strbuf_addc(&text, '{');
    }
    strbuf_adds(&text, "\"a\"{\"b\":1}");
    finds(strbuf_text(&text), "");
    // Nesting far beyond what any answer has ends, too.
    strbuf_reset(&text);
    for (int i = 0; i < 100000; i++) {
        strbuf_adds(&text, "{\"a\":");
    }
    finds(strbuf_text(&text), "");
    strbuf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_found_wherever_they_stand),
        cmocka_unit_test(after_the_last_object_there_is_none),
        cmocka_unit_test(braces_without_end_are_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
