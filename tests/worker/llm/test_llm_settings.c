// The options about language models: endpoints with weights, keys from a file or the environment,
// and errors that never show a key.
#include "worker/llm/llm_settings.h"

#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define KEY "sk-4f5e6d"

struct fixture {
    char *dir, *key_file;
    struct llm_settings settings;
};

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));

    assert_int_equal(unsetenv(LLM_KEY_VARIABLE), 0);
    assert_int_equal(file_make_temp_dir(&f->dir, "kcast-settings", NULL), 0);
    f->key_file = xasprintf("%s/key", f->dir);
    f->settings = (struct llm_settings){.endpoint = (char *)(uintptr_t) "http://h/v1",
                                        .model = (char *)(uintptr_t) "m",
                                        .at_once = 4,
                                        .deadline_ns = 1500000000};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(unsetenv(LLM_KEY_VARIABLE), 0);
    assert_int_equal(file_remove_tree(f->dir, NULL), 0);
    free(f->dir);
    free(f->key_file);
    free(f);
    return 0;
}

static void write_key(struct fixture *f, const void *text, size_t len, mode_t mode)
{
    assert_int_equal(file_replace(f->key_file, text, len, false, NULL), 0);
    assert_int_equal(chmod(f->key_file, mode), 0);
    f->settings.key_file = f->key_file;
}

// The settings must be refused, with this code and these words, and without the key.
static void refused(const struct fixture *f, enum err_code code, const char *words)
{
    struct llm_config config;
    struct err err = ERR_INIT;

    assert_int_equal(llm_settings_read(&config, &f->settings, &err), code);
    if (!strstr(err.text, words)) {
        fail_msg("\"%s\" instead of \"%s\"", err.text, words);
    }
    assert_null(strstr(err.text, KEY));
    assert_int_equal(config.count, 0);
    assert_null(config.endpoints);
}

static struct llm_config accepted(const struct fixture *f)
{
    struct llm_config config;
    struct err err = ERR_INIT;

    if (llm_settings_read(&config, &f->settings, &err) != 0) {
        fail_msg("%s", err.text);
    }
    return config;
}

static void without_endpoints_there_is_nothing_to_ask(void **state)
{
    struct fixture *f = *state;

    f->settings.endpoint = NULL;
    f->settings.model = NULL;
    f->settings.key_file = (char *)(uintptr_t) "/nonexistent"; // which nobody reads then
    struct llm_config config = accepted(f);
    assert_int_equal(config.count, 0);
    llm_settings_release(&config);
    f->settings.endpoint = (char *)(uintptr_t) "http://h/v1";
    refused(f, ERR_USAGE, "--endpoint needs --model");
}

static void endpoints_share_the_settings_and_have_their_own_weights(void **state)
{
    struct fixture *f = *state;

    f->settings.endpoint = (char *)(uintptr_t) "http://a/v1//,https://b:8443*2.5,http://c/*d*0.001";
    f->settings.samples = 3;
    f->settings.max_tokens = 500;
    f->settings.temperature = 0.5;
    f->settings.requests_per_minute = 60;
    f->settings.tokens_per_minute = 1e5;
    f->settings.price_input = 1;
    f->settings.price_cached = 0.1;
    f->settings.price_output = 4;
    f->settings.limits.search.tokens = 1e6;
    f->settings.limits.search.cost = 2;
    static const struct {
        const char *url;
        double weight;
    } row[] = {{"http://a/v1", 1}, {"https://b:8443", 2.5}, {"http://c/*d", 0.001}};
    struct llm_config config = accepted(f);
    assert_int_equal(config.count, ARRAY_LEN(row));
    for (size_t i = 0; i < config.count; i++) {
        const struct endpoint_config *endpoint = &config.endpoints[i];

        assert_string_equal(endpoint->url, row[i].url);
        assert_true(endpoint->weight == row[i].weight);
        assert_string_equal(endpoint->model, "m");
        assert_null(endpoint->key);
        assert_true(endpoint->in_flight == 4 && endpoint->requests_per_minute == 60);
        assert_true(endpoint->tokens_per_minute == 1e5 && endpoint->price_input == 1);
        assert_true(endpoint->price_cached == 0.1 && endpoint->price_output == 4);
    }
    assert_int_equal(config.deadline_ms, 1500);
    assert_int_equal(config.samples, 3);
    assert_int_equal(config.max_tokens, 500);
    assert_true(config.temperature == 0.5 && config.limits.search.tokens == 1e6);
    assert_true(config.limits.search.cost == 2);
    llm_settings_release(&config);
    assert_int_equal(config.count, 0);
    llm_settings_release(&config); // a second time is harmless
}

// Each endpoint gets its own key. The variable's and --key-file's is that of --endpoint.
static void no_section_gets_another_s_key(void **state)
{
    struct fixture *f = *state;
    char *path = xasprintf("%s/section.key", f->dir);

    assert_int_equal(file_replace(path, "key-of-b\n", 9, false, NULL), 0);
    assert_int_equal(chmod(path, 0600), 0);
    f->settings.endpoint = (char *)(uintptr_t) "http://a/v1";
    static const char *const names[] = {"b", "c"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        struct endpoint_section *section =
            endpoint_sections_open(&f->settings.sections, names[i], NULL);

        section->url = xstrdup("http://b/v1");
        section->model = xstrdup("other");
        section->key_file = i == 0 ? xstrdup(path) : NULL;
    }
    assert_int_equal(setenv(LLM_KEY_VARIABLE, "key-of-a", 1), 0);
    struct llm_config config = accepted(f);
    assert_int_equal(unsetenv(LLM_KEY_VARIABLE), 0);
    assert_int_equal(config.count, 3);
    assert_string_equal(config.endpoints[0].key, "key-of-a");
    assert_string_equal(config.endpoints[1].key, "key-of-b");
    assert_null(config.endpoints[2].key);
    assert_string_equal(config.endpoints[1].name, "b");
    assert_string_equal(config.endpoints[1].model, "other");
    llm_settings_release(&config);
    // A key file that others may read is refused with the section's name.
    assert_int_equal(chmod(path, 0644), 0);
    refused(f, ERR_DENIED, "[endpoint b]");
    endpoint_sections_release(&f->settings.sections);
    free(path);
}

static void what_is_no_endpoint_is_refused(void **state)
{
    static const struct {
        const char *list, *words;
    } row[] = {
        {"", "not a http:// or https:// url"},
        {"h/v1", "--endpoint h/v1: not a http"},
        {"ftp://h", "--endpoint ftp://h: not a http"},
        {"HTTP://h", "not a http"},
        {"http://", "not a http"},
        {"http://h,", "--endpoint : not a http"},
        {"http://h,,http://i", "--endpoint : not a http"},
        {"http://h, http://i", "--endpoint  http://i: not a http"},
        {"http://h*", "--endpoint URL*WEIGHT"},
        {"http://h*0", "--endpoint URL*WEIGHT"},
        {"http://h*-1", "--endpoint URL*WEIGHT"},
        {"http://h*1001", "--endpoint URL*WEIGHT"},
        {"http://h*nan", "--endpoint URL*WEIGHT"},
        {"http://h*2x", "--endpoint URL*WEIGHT"},
        {"http://h*2,http://i*inf", "--endpoint URL*WEIGHT"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        f->settings.endpoint = (char *)(uintptr_t)row[i].list;
        refused(f, ERR_USAGE, row[i].words);
    }
}

static void there_is_a_largest_number_of_endpoints(void **state)
{
    struct fixture *f = *state;
    struct strbuf list = STRBUF_INIT;

    for (int i = 0; i < ENDPOINTS_MAX; i++) {
        strbuf_addf(&list, "%shttp://h%d", i > 0 ? "," : "", i);
    }
    f->settings.endpoint = list.data;
    struct llm_config config = accepted(f);
    assert_int_equal(config.count, ENDPOINTS_MAX);
    assert_string_equal(config.endpoints[ENDPOINTS_MAX - 1].url, "http://h15");
    llm_settings_release(&config);
    strbuf_adds(&list, ",http://one-more");
    f->settings.endpoint = list.data;
    refused(f, ERR_USAGE, "--endpoint names more than 16");
    strbuf_release(&list);
}

static void a_key_comes_from_its_file_or_else_from_the_environment(void **state)
{
    struct fixture *f = *state;

    f->settings.endpoint = (char *)(uintptr_t) "http://a,http://b";
    assert_int_equal(setenv(LLM_KEY_VARIABLE, " from-environment ", 1), 0);
    struct llm_config config = accepted(f);
    assert_string_equal(config.endpoints[0].key, "from-environment");
    llm_settings_release(&config);
    write_key(f, "\n " KEY " \r\n", sizeof("\n " KEY " \r\n") - 1, 0600);
    config = accepted(f);
    assert_string_equal(config.endpoints[0].key, KEY);
    assert_string_equal(config.endpoints[1].key, KEY);
    assert_ptr_not_equal(config.endpoints[0].key, config.endpoints[1].key);
    llm_settings_release(&config);
    // An empty variable is none.
    f->settings.key_file = NULL;
    assert_int_equal(setenv(LLM_KEY_VARIABLE, "", 1), 0);
    config = accepted(f);
    assert_null(config.endpoints[0].key);
    llm_settings_release(&config);
}

static void a_file_that_holds_no_key_is_refused(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *words;
    } row[] = {
        {"", 0, "holds no key"},
        {" \n\t\n", 4, "holds no key"},
        {KEY "\n" KEY, sizeof(KEY "\n" KEY) - 1, "must be one line"},
        {KEY " 2", sizeof(KEY " 2") - 1, "a character that no key has"},
        {KEY "\xc3\xa4", sizeof(KEY "\xc3\xa4") - 1, "a character that no key has"},
        {KEY "\x7f", sizeof(KEY "\x7f") - 1, "a character that no key has"},
        {KEY "\0" KEY, sizeof(KEY "\0" KEY) - 1, "a character that no key has"},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(row); i++) {
        write_key(f, row[i].text, row[i].len, 0600);
        refused(f, ERR_INVALID, row[i].words);
        refused(f, ERR_INVALID, f->key_file);
    }
    assert_int_equal(setenv(LLM_KEY_VARIABLE, KEY "\n" KEY, 1), 0);
    f->settings.key_file = NULL;
    refused(f, ERR_INVALID, "$KCAST_LLM_KEY");
}

static void a_key_file_belongs_to_its_owner_alone(void **state)
{
    static const mode_t open_to_others[] = {0640, 0604, 0620, 0601};
    struct fixture *f = *state;

    for (size_t i = 0; i < ARRAY_LEN(open_to_others); i++) {
        write_key(f, KEY, strlen(KEY), open_to_others[i]);
        refused(f, ERR_DENIED, "chmod 600 it, for it is secret");
    }
    write_key(f, KEY, strlen(KEY), 0400);
    struct llm_config config = accepted(f);
    assert_string_equal(config.endpoints[0].key, KEY);
    llm_settings_release(&config);
    char *large = xcalloc(5000, 1);
    memset(large, 'k', 5000);
    write_key(f, large, 5000, 0600);
    refused(f, ERR_LIMIT, "key");
    free(large);
    f->settings.key_file = (char *)(uintptr_t) "/nonexistent/key";
    refused(f, ERR_NOT_FOUND, "/nonexistent/key");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(no_section_gets_another_s_key),
        TEST(without_endpoints_there_is_nothing_to_ask),
        TEST(endpoints_share_the_settings_and_have_their_own_weights),
        TEST(what_is_no_endpoint_is_refused),
        TEST(there_is_a_largest_number_of_endpoints),
        TEST(a_key_comes_from_its_file_or_else_from_the_environment),
        TEST(a_file_that_holds_no_key_is_refused),
        TEST(a_key_file_belongs_to_its_owner_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
