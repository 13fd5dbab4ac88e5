// The list of --pool: what it may name, and the urls that its names stand for as they change.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/pool/hosts.h"
#include "common/file.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "net/rpc/resolve.h"
#include "net/url.h"
#include "tests/client/pool/fake_names.h"

// ---- the list ----

static struct hosts *create(const char *list)
{
    struct hosts *hosts = NULL;
    struct err err = ERR_INIT;
    if (hosts_create(&hosts, list, &err) != 0) {
        fail_msg("\"%s\": %s", list, err.text);
    }
    return hosts;
}

static void a_list_is_one_daemon_or_several_and_may_change_or_not(void **state)
{
    static const struct {
        const char *list;
        bool several, change;
    } cases[] = {
        {"tcp://a:1", false, false},
        {"tls://[::1]:7000", false, false},
        {" , tcp://a:1 ,, ", false, false},
        {"tcp://a:1,tcp://a:1", true, false}, // twice the same is told apart by nobody yet
        {"tcp://a:1 tls://b:2", true, false},
        {"dns://pool:1", true, true}, // it may have several addresses at any time
        {"dns+tls://pool:1", true, true},
        {"tcp://a:1,dns://pool:1", true, true},
        {"tcp://a:1\ntcp://b:1\n", true, false}, // as a file of addresses has it
        {"file:/nowhere", true, true},           // it is not read yet
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hosts *hosts = create(cases[i].list);
        assert_int_equal(hosts_are_several(hosts), cases[i].several);
        assert_int_equal(hosts_may_change(hosts), cases[i].change);
        assert_false(hosts_are_looked_up(hosts));
        hosts_free(hosts);
    }
    hosts_free(NULL);
}

static void a_list_of_nothing_says_what_to_write(void **state)
{
    static const char *const list[] = {"", " ", ",", ", ,  ,"};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        struct hosts *hosts = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(hosts_create(&hosts, list[i], &err), ERR_USAGE);
        assert_non_null(strstr(err.text, "write --pool tcp://HOST:PORT"));
        assert_null(hosts);
    }
}

static void the_wrong_entry_of_a_list_is_named(void **state)
{
    static const struct {
        const char *list, *words;
    } cases[] = {
        {"a:1", "\"a:1\" is no url"},
        {"tcp://a:1,http://b:2", "\"http://b:2\" is no url"},
        {"tcp://a:1, tcp://b", "\"tcp://b\" has no port"},
        {"tcp://:7", "no usable host"},
        {"tcp://a:65536", "the port"},
        {"tcp://a:", "the port"},
        {"tcp://a:-1", "the port"},
        {"DNS://a:1", "\"DNS://a:1\" is no url"},
        {"dns://pool", "\"dns://pool\" names no daemons; write dns://NAME:PORT"},
        {"dns://", "write dns://NAME:PORT"},
        {"dns://pool:1x", "write dns://NAME:PORT"},
        {"tls://a:1,dns+tls://pool", "\"dns+tls://pool\" names no daemons; write dns+tls://NAME"},
        {"dns+tls:pool:1", "is no url"},
        {"tcp://a:1,file:", "\"file:\" names no file; write file:PATH"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hosts *hosts = NULL;
        struct err err = ERR_INIT;
        assert_int_equal(hosts_create(&hosts, cases[i].list, &err), ERR_INVALID);
        if (!strstr(err.text, cases[i].words)) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, cases[i].words);
        }
        assert_null(hosts);
    }
}

static void a_host_of_the_longest_name_is_taken_and_a_longer_one_is_not(void **state)
{
    (void)state;
    char name[URL_HOST_MAX + 1] = {0};
    memset(name, 'n', URL_HOST_MAX);
    struct hosts *hosts = NULL;
    char *list = xasprintf("dns://%s:1", name);
    assert_int_equal(hosts_create(&hosts, list, NULL), ERR_INVALID);
    free(list);
    list = xasprintf("dns://%.*s:1", URL_HOST_MAX - 1, name);
    assert_int_equal(hosts_create(&hosts, list, NULL), 0);
    hosts_free(hosts);
    free(list);
}

static void the_same_host_is_the_same_url_by_the_same_name(void **state)
{
    (void)state;
    const struct host plain = {.url = "tls://a:1"}, named = {.url = "tls://a:1", .name = "pool"};
    assert_true(host_is_same(&plain, "tls://a:1", NULL));
    assert_false(host_is_same(&plain, "tls://a:1", "pool"));
    assert_false(host_is_same(&plain, "tls://a:10", NULL));
    assert_true(host_is_same(&named, "tls://a:1", "pool"));
    assert_false(host_is_same(&named, "tls://a:1", "poo"));
    assert_false(host_is_same(&named, "tls://a:1", NULL));
    assert_false(host_is_same(&named, "tcp://a:1", "pool"));
}

// ---- looking up ----

struct looked {
    struct strbuf urls; // each with a blank behind
    size_t count, calls;
    struct err why;
};

static void on_hosts(void *owner, const struct host *host, size_t count, const struct err *why)
{
    struct looked *looked = owner;
    looked->calls++;
    looked->count = count;
    looked->why = *why;
    strbuf_reset(&looked->urls);
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(&looked->urls, "%s ", host[i].url);
    }
}

static void look_up(struct hosts *hosts, struct looked *looked)
{
    uv_loop_t loop;
    size_t before = looked->calls;
    assert_int_equal(uv_loop_init(&loop), 0);
    hosts_look_up(hosts, &loop, on_hosts, looked);
    assert_int_equal(looked->calls, before); // never inside the call
    assert_true(hosts_are_looked_up(hosts));
    while (hosts_are_looked_up(hosts)) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(looked->calls, before + 1);
    assert_false(hosts_are_looked_up(hosts));
    assert_int_equal(uv_loop_close(&loop), 0);
}

static struct looked looked_init(void)
{
    struct looked ret = {0};
    strbuf_init(&ret.urls, 1 << 14);
    return ret;
}

static void expect(const struct looked *looked, const char *urls)
{
    assert_string_equal(strbuf_text(&looked->urls), urls);
}

static void urls_stand_for_themselves_each_once_in_their_order(void **state)
{
    (void)state;
    struct hosts *hosts = create("tcp://b:2,tcp://a:1, tcp://b:2,tls://b:2,tls+tcp://b:2");
    struct looked looked = looked_init();
    look_up(hosts, &looked);
    expect(&looked, "tcp://b:2 tcp://a:1 tls://b:2 ");
    assert_int_equal(looked.why.code, ERR_NONE);
    hosts_free(hosts);
    strbuf_release(&looked.urls);
}

static void a_name_stands_for_all_its_addresses_at_its_place(void **state)
{
    (void)state;
    struct hosts *hosts = create("tcp://z:1,dns://pool.test:70,tcp://10.0.0.2:70");
    struct looked looked = looked_init();
    set_name("10.0.0.1", "10.0.0.2");
    look_up(hosts, &looked);
    expect(&looked, "tcp://z:1 tcp://10.0.0.1:70 tcp://10.0.0.2:70 ");
    set_name("fe80::7", NULL);
    look_up(hosts, &looked);
    expect(&looked, "tcp://z:1 tcp://[fe80::7]:70 tcp://10.0.0.2:70 ");
    hosts_free(hosts);
    strbuf_release(&looked.urls);
}

static void a_name_that_is_lost_keeps_the_addresses_that_it_had(void **state)
{
    (void)state;
    struct hosts *hosts = create("dns://pool.test:70");
    struct looked looked = looked_init();
    set_name(NULL, NULL);
    look_up(hosts, &looked);
    assert_int_equal(looked.count, 0);
    assert_int_equal(looked.why.code, ERR_UNREACHABLE);
    assert_non_null(
        strstr(looked.why.text, "dns://pool.test:70: host \"pool.test\" is not known: "));
    set_name("10.0.0.1", NULL);
    look_up(hosts, &looked);
    expect(&looked, "tcp://10.0.0.1:70 ");
    assert_int_equal(looked.why.code, ERR_NONE); // what was wrong before is over
    set_name(NULL, NULL);
    look_up(hosts, &looked);
    expect(&looked, "tcp://10.0.0.1:70 ");
    assert_int_equal(looked.why.code, ERR_UNREACHABLE);
    hosts_free(hosts);
    strbuf_release(&looked.urls);
}

static void the_first_name_that_is_not_known_is_the_reason_and_others_count(void **state)
{
    (void)state;
    struct hosts *hosts = create("dns://one.test:1,dns+tls://two.test:2,dns://10.0.0.9:3");
    struct looked looked = looked_init();
    look_up(hosts, &looked);
    expect(&looked, "tcp://10.0.0.9:3 ");
    assert_non_null(strstr(looked.why.text, "one.test"));
    assert_null(strstr(looked.why.text, "two.test"));
    hosts_free(hosts);
    strbuf_release(&looked.urls);
}

// ---- files ----

struct list_file {
    char *folder, *path, *entry; // entry is file:PATH
};

static struct list_file list_file_create(void)
{
    struct list_file ret;
    assert_int_equal(file_make_temp_dir(&ret.folder, "hosts", NULL), 0);
    ret.path = xasprintf("%s/pool", ret.folder);
    ret.entry = xasprintf("file:%s", ret.path);
    return ret;
}

static void list_file_free(struct list_file *list_file)
{
    assert_int_equal(file_remove_tree(list_file->folder, NULL), 0);
    free(list_file->folder);
    free(list_file->path);
    free(list_file->entry);
}

static void write_list(const struct list_file *list_file, const char *text, size_t len)
{
    assert_int_equal(file_replace(list_file->path, text, len, false, NULL), 0);
}

static void a_file_stands_for_what_it_holds_when_it_is_read(void **state)
{
    (void)state;
    struct list_file file = list_file_create();
    char *list = xasprintf("tcp://z:1,%s,tcp://b:2", file.entry);
    struct hosts *hosts = create(list);
    struct looked looked = looked_init();
    static const struct {
        const char *text, *urls;
    } cases[] = {
        {"tcp://a:1\n", "tcp://z:1 tcp://a:1 tcp://b:2 "},
        {"tcp://a:1\ntls+tcp://[::1]:007\n", "tcp://z:1 tcp://a:1 tls://[::1]:7 tcp://b:2 "},
        {"\n  tcp://c:3 \r\n\n\ttcp://b:2", "tcp://z:1 tcp://c:3 tcp://b:2 "},
        {"tcp://a:1,tcp://c:3\n", "tcp://z:1 tcp://a:1 tcp://c:3 tcp://b:2 "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        write_list(&file, cases[i].text, strlen(cases[i].text));
        look_up(hosts, &looked);
        expect(&looked, cases[i].urls);
        assert_int_equal(looked.why.code, ERR_NONE);
    }
    hosts_free(hosts);
    free(list);
    list_file_free(&file);
    strbuf_release(&looked.urls);
}

static void a_file_that_is_missing_or_damaged_keeps_the_addresses_that_it_had(void **state)
{
    (void)state;
    struct list_file file = list_file_create();
    struct hosts *hosts = create(file.entry);
    struct looked looked = looked_init();
    look_up(hosts, &looked);
    assert_int_equal(looked.count, 0);
    assert_int_equal(looked.why.code, ERR_NOT_FOUND);
    assert_non_null(strstr(looked.why.text, file.path));
    assert_null(strstr(looked.why.text, "going on"));
    static const struct {
        const char *text, *words;
        size_t len;
    } cases[] = {
        {"", "/pool: no list of addresses", 0},
        {"\n \n", "/pool: no list of addresses", 3},
        {"tcp://b:2\ntcp://c:", "/pool:2: ", 18},
        {"tcp://b:2\n\nfile:/etc/hosts\n", "/pool:3: \"file:/etc/hosts\" is no url", 27},
        {"tcp://b:2\ndns://c:2\n", "/pool:2: \"dns://c:2\" is no url", 21},
        {"tcp://b:2\n\0tcp://c:3\n", "/pool: no list of addresses", 21},
    };
    for (size_t i = 0; i <= ARRAY_LEN(cases); i++) {
        write_list(&file, "tcp://a:1\ntcp://a:2\n", 20);
        look_up(hosts, &looked);
        assert_int_equal(looked.why.code, ERR_NONE); // what was wrong before is over
        if (i < ARRAY_LEN(cases)) {
            write_list(&file, cases[i].text, cases[i].len);
        } else {
            assert_int_equal(unlink(file.path), 0);
        }
        look_up(hosts, &looked);
        expect(&looked, "tcp://a:1 tcp://a:2 ");
        const char *words = i < ARRAY_LEN(cases) ? cases[i].words : "/pool: cannot be opened";
        if (!strstr(looked.why.text, words)) {
            fail_msg("\"%s\" does not say \"%s\"", looked.why.text, words);
        }
        assert_non_null(strstr(looked.why.text, "; going on with the addresses that it had"));
    }
    hosts_free(hosts);
    list_file_free(&file);
    strbuf_release(&looked.urls);
}

static void more_addresses_in_a_file_than_there_is_room_for_are_left_out(void **state)
{
    (void)state;
    struct list_file file = list_file_create();
    struct hosts *hosts = create(file.entry);
    struct looked looked = looked_init();
    struct strbuf text = STRBUF_INIT;
    for (int i = 1; i <= HOSTS_MAX + 3; i++) {
        strbuf_addf(&text, "tcp://h:%d\n", i);
    }
    write_list(&file, strbuf_text(&text), text.len);
    look_up(hosts, &looked);
    assert_int_equal(looked.count, HOSTS_MAX);
    assert_int_equal(looked.why.code, ERR_NONE);
    strbuf_reset(&text);
    while (text.len <= 1 << 16) {
        strbuf_adds(&text, "tcp://h:1\n");
    }
    write_list(&file, strbuf_text(&text), text.len);
    look_up(hosts, &looked);
    assert_int_equal(looked.count, HOSTS_MAX);
    assert_int_equal(looked.why.code, ERR_LIMIT);
    strbuf_release(&text);
    hosts_free(hosts);
    list_file_free(&file);
    strbuf_release(&looked.urls);
}

static void more_addresses_and_urls_than_there_is_room_for_are_left_out(void **state)
{
    (void)state;
    set_name(NULL, NULL);
    for (int i = 0; i < RESOLVE_MAX + 8; i++) {
        char address[INET_ADDRSTRLEN];
        snprintf(address, sizeof(address), "10.1.0.%d", i);
        add_name(address);
    }
    struct hosts *hosts = create("dns://pool.test:1");
    struct looked looked = looked_init();
    look_up(hosts, &looked);
    assert_int_equal(looked.count, RESOLVE_MAX);
    hosts_free(hosts);
    hosts = create("dns://pool.test:1,dns://pool.test:2,dns://pool.test:3");
    look_up(hosts, &looked);
    assert_int_equal(looked.count, HOSTS_MAX);
    assert_null(strstr(strbuf_text(&looked.urls), ":3 "));
    hosts_free(hosts);
    strbuf_release(&looked.urls);
}

static void a_look_up_that_is_given_up_calls_nobody(void **state)
{
    (void)state;
    uv_loop_t loop;
    struct looked looked = looked_init();
    assert_int_equal(uv_loop_init(&loop), 0);
    struct hosts *hosts = create("dns://pool.test:70");
    hosts_look_up(hosts, &loop, on_hosts, &looked);
    hosts_free(hosts); // before it began
    uv_run(&loop, UV_RUN_DEFAULT);
    hosts = create("dns://pool.test:70");
    hosts_look_up(hosts, &loop, on_hosts, &looked);
    pthread_mutex_lock(&names.lock); // the resolver waits for it
    uv_run(&loop, UV_RUN_ONCE);
    assert_true(hosts_are_looked_up(hosts));
    hosts_free(hosts);
    pthread_mutex_unlock(&names.lock);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(looked.calls, 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    strbuf_release(&looked.urls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_one_daemon_or_several_and_may_change_or_not),
        cmocka_unit_test(a_list_of_nothing_says_what_to_write),
        cmocka_unit_test(the_wrong_entry_of_a_list_is_named),
        cmocka_unit_test(a_host_of_the_longest_name_is_taken_and_a_longer_one_is_not),
        cmocka_unit_test(the_same_host_is_the_same_url_by_the_same_name),
        cmocka_unit_test(urls_stand_for_themselves_each_once_in_their_order),
        cmocka_unit_test(a_name_stands_for_all_its_addresses_at_its_place),
        cmocka_unit_test(a_name_that_is_lost_keeps_the_addresses_that_it_had),
        cmocka_unit_test(the_first_name_that_is_not_known_is_the_reason_and_others_count),
        cmocka_unit_test(a_file_stands_for_what_it_holds_when_it_is_read),
        cmocka_unit_test(a_file_that_is_missing_or_damaged_keeps_the_addresses_that_it_had),
        cmocka_unit_test(more_addresses_in_a_file_than_there_is_room_for_are_left_out),
        cmocka_unit_test(more_addresses_and_urls_than_there_is_room_for_are_left_out),
        cmocka_unit_test(a_look_up_that_is_given_up_calls_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
