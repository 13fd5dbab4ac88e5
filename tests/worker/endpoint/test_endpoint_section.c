// Sections [endpoint NAME] of a configuration file, and the keys that go with them.
#include "worker/endpoint/endpoint_section.h"

#include "common/file.h"
#include "common/mem.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct own {
    char *name;
};

static const struct option_row own_table[] = {
    {"name", 0, OPTION_TEXT, offsetof(struct own, name), "TEXT", NULL, 0, 0, NULL, "a name"},
    {.name = NULL},
};

static int in_folder(void **state)
{
    return file_make_temp_dir((char **)state, "kcast-section", NULL);
}

static int folder_gone(void **state)
{
    int rc = file_remove_tree(*state, NULL);

    free(*state);
    return rc;
}

// Reads a file with this text.
static int read_text(const char *dir, const char *text, struct endpoint_sections *sections,
                     struct err *err)
{
    const struct options_group group = {.prefix = "endpoint",
                                        .table = endpoint_section_table,
                                        .open = endpoint_sections_open,
                                        .owner = sections};
    char *path = xasprintf("%s/worker.ini", dir);
    struct own own = {.name = NULL};

    assert_int_equal(file_replace(path, text, strlen(text), false, NULL), 0);
    int rc = options_read_ini_groups(own_table, &own, path, "worker", &group, err);
    options_release(own_table, &own);
    free(path);
    return rc;
}

static void each_section_is_an_endpoint_of_its_own(void **state)
{
    static const char text[] = "[worker]\n"
                               "name = w\n"
                               "[endpoint claude]\n"
                               "url = https://api.anthropic.com/\n"
                               "model = claude-opus\n"
                               "api = anthropic\n"
                               "price-cache-write = 6.25\n"
                               "  [endpoint azure]\n"
                               "url = https://r.openai.azure.com\n"
                               "model = gpt\n"
                               "api = azure\n"
                               "api-version = 2024-10-21\n"
                               "header = X-Gateway-Key\n"
                               "body = {\"user\":\"k\"}\n"
                               "weight = 2\n"
                               "max-tokens = 9000\n";
    struct endpoint_sections sections = {.count = 0};
    struct err err = ERR_INIT;

    if (read_text(*state, text, &sections, &err) != 0) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(sections.count, 2);
    struct endpoint_config config;
    assert_int_equal(endpoint_section_read(&config, &sections.section[0], &err), 0);
    assert_string_equal(config.name, "claude");
    assert_string_equal(config.url, "https://api.anthropic.com");
    assert_int_equal(config.form, API_ANTHROPIC);
    assert_true(config.price_cache_write == 6.25 && config.weight == 1 && config.temperature == -1);
    assert_null(config.key);
    assert_null(config.extra);
    free((char *)(uintptr_t)config.url);
    assert_int_equal(endpoint_section_read(&config, &sections.section[1], &err), 0);
    assert_int_equal(config.form, API_AZURE);
    assert_string_equal(config.header, "X-Gateway-Key");
    assert_string_equal(config.api_version, "2024-10-21");
    assert_int_equal(config.max_tokens, 9000);
    assert_string_equal(json_string_value(json_object_get(config.extra, "user")), "k");
    json_decref((json_t *)(uintptr_t)config.extra);
    free((char *)(uintptr_t)config.url);
    endpoint_sections_release(&sections);
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"[endpoint a]\nurl = x\n[endpoint a]\nurl = y\n", ":3: a second section [endpoint a]"},
        {"[endpoint]\nurl = x\n", "unknown section [endpoint]"},
        {"[endpoint ]\nurl = x\n", ":1: the name of an endpoint has 1 to 32 characters"},
        {"[endpoint a b]\n", ":1: the name of an endpoint has letters"},
        {"[endpoint a]\ncolour = red\n", ":2: unknown key 'colour'"},
        {"[endpoint a]\napi = gopher\n", ":2: api: 'gopher' is none of"},
        {"[endpoint a]\nweight = 0\n", ":2: weight"},
        {"[endpoints a]\nurl = x\n", "unknown section [endpoints a]"},
        {"[worker]\nurl = x\n", ":2: unknown key 'url'"},
        {"[endpoint a]\nurl = x\n[worker]\nurl = x\n", ":4: unknown key 'url'"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct endpoint_sections sections = {.count = 0};
        struct err err = ERR_INIT;

        assert_int_equal(read_text(*state, bad[i].text, &sections, &err), ERR_INVALID);
        if (!strstr(err.text, bad[i].why)) {
            fail_msg("%s: %s", bad[i].text, err.text);
        }
        endpoint_sections_release(&sections);
    }
}

static void a_section_that_cannot_be_an_endpoint_names_itself(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"model = m", "[endpoint a] url is missing"},
        {"url = https://h/v1", "[endpoint a] model is missing"},
        {"url = h/v1\nmodel = m", "not a http:// or https:// url"},
        {"url = https://h\nmodel = m\nheader = Host", "no name of a header for a key"},
        {"url = https://h\nmodel = m\nheader = a b", "no name of a header for a key"},
        {"url = https://h\nmodel = m\nbody = [1]", "body is no JSON object"},
        {"url = https://h\nmodel = m\nbody = {", "body is no JSON object"},
        {"url = https://h\nmodel = m\nbody = {\"stream\":true}", "body has \"stream\""},
        {"url = https://h\nmodel = m\nbody = {\"max_tokens\":9}", "body has \"max_tokens\""},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct endpoint_sections sections = {.count = 0};
        struct endpoint_config config;
        struct err err = ERR_INIT;
        char *text = xasprintf("[endpoint a]\n%s\n", bad[i].text);

        assert_int_equal(read_text(*state, text, &sections, &err), 0);
        assert_int_equal(endpoint_section_read(&config, &sections.section[0], &err), ERR_USAGE);
        if (!strstr(err.text, bad[i].why)) {
            fail_msg("%s: %s", bad[i].text, err.text);
        }
        endpoint_sections_release(&sections);
        free(text);
    }
}

#define IN_FOLDER(name) cmocka_unit_test_setup_teardown(name, in_folder, folder_gone)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(each_section_is_an_endpoint_of_its_own),
        IN_FOLDER(what_is_wrong_is_said_with_its_place),
        IN_FOLDER(a_section_that_cannot_be_an_endpoint_names_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
