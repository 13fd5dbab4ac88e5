// Daemons behind names, which a resolver in this test knows, and tls:// urls without certificates.
#include "tests/client/pool/daemon_pool_fixture.h"

#include "client/pool/hosts.h"
#include "common/file.h"
#include "tests/client/pool/fake_names.h"

// Without certificates no tls:// url can be called, however it is named.
static void without_certificates_tls_urls_are_an_error(void **state)
{
    (void)state;
    set_name("127.0.0.1", "127.0.0.2");
    char *const pools[] = {"tls://127.0.0.1:1,tls://127.0.0.2:1", "dns+tls://pool.test:1",
                           "tcp://127.0.0.1:1,tls://127.0.0.2:1"};
    for (size_t i = 0; i < ARRAY_LEN(pools); i++) {
        struct session_options options = {.pool = pools[i],
                                          .tls_ca = "/nowhere/ca.pem",
                                          .tls_cert = "/nowhere/cert.pem",
                                          .tls_key = "/nowhere/key.pem"};
        struct session *session;
        struct err err = ERR_INIT;
        assert_int_equal(session_create(&session, &options, &err), 0);
        struct daemon_pool *daemon_pool = NULL;
        assert_true(daemon_pool_create(&daemon_pool, session, "no certificates", NULL, &err) < 0);
        assert_null(daemon_pool);
        assert_non_null(strstr(err.text, "/nowhere/ca.pem"));
        session_free(session);
    }
}

// The name has one address, then a second one as well, then only the second.
static void addresses_behind_a_name_come_and_go(void **state)
{
    (void)state;
    struct fixture *f = xcalloc(1, sizeof(*f));
    strbuf_init(&f->said, 1 << 16);
    fake_start_at(&f->fake[0], 1, "tcp://127.0.0.2:0");
    char *second = xasprintf("tcp://127.0.0.3%s", strrchr(f->fake[0].pool, ':'));
    fake_start_at(&f->fake[1], 2, second);
    f->options.pool = xasprintf("dns://pool.test%s", strrchr(f->fake[0].pool, ':'));
    f->options.quiet = true;
    struct err err = ERR_INIT;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);

    set_name("127.0.0.2", NULL);
    open_daemon_pool(f, "names");
    submit(f, 0, 8, JOB_MEASURE);
    run_until(f, 8);
    assert_int_equal(answers_of(f, 0, 0, 8), 8);

    set_name("127.0.0.2", "127.0.0.3");
    size_t next = 8;
    while (answers_of(f, 1, 0, next) == 0 && next < JOBS) { // until it has been looked up
        uint64_t before = f->answered;
        submit(f, next, next + 2, JOB_MEASURE);
        run_until(f, before + 2);
        next += 2;
        for (int i = 0; i < 20; i++) {
            assert_int_equal(daemon_pool_run_once(f->daemon_pool, &err), 0);
        }
    }
    assert_true(answers_of(f, 1, 0, next) > 0);

    set_name("127.0.0.3", NULL);
    fake_stop(&f->fake[0]);
    submit(f, next, next + 8, JOB_MEASURE);
    run_until(f, next + 8);
    expect_once(f, 0, next + 8);
    free(second);
    end(f);
}

// Has jobs done until the second daemon has done one. Returns how many.
static size_t use_until_second_answers(struct fixture *f)
{
    size_t next = 0;
    for (; answers_of(f, 1, 0, next) == 0; next += 2) {
        if (next == JOBS) {
            fail_msg("the second address is not used");
        }
        submit(f, next, next + 2, JOB_MEASURE);
        run_until(f, next + 2);
        for (int i = 0; i < 20; i++) {
            struct err err = ERR_INIT;
            assert_int_equal(daemon_pool_run_once(f->daemon_pool, &err), 0);
        }
    }
    return next;
}

// With the default times, within five seconds.
static void address_that_a_name_gets_is_used_soon(void **state)
{
    (void)state;
    struct fixture *f = xcalloc(1, sizeof(*f));
    strbuf_init(&f->said, 1 << 16);
    fake_start_at(&f->fake[0], 1, "tcp://127.0.0.2:0");
    char *second = xasprintf("tcp://127.0.0.3%s", strrchr(f->fake[0].pool, ':'));
    fake_start_at(&f->fake[1], 2, second);
    f->options.pool = xasprintf("dns://pool.test%s", strrchr(f->fake[0].pool, ':'));
    f->options.quiet = true;
    struct err err = ERR_INIT;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);
    set_name("127.0.0.2", NULL);
    open_daemon_pool_still(f, "soon");
    set_name("127.0.0.2", "127.0.0.3");
    clock_fake_advance(&f->clock, 5 * NS_PER_S);
    (void)use_until_second_answers(f);
    free(second);
    end(f);
}

// As with a name; and a file that goes away takes no daemon with it.
static void address_that_a_file_gets_is_used_soon(void **state)
{
    (void)state;
    struct fixture *f = begin(&usual, &usual);
    char *folder, *path, *list;
    assert_int_equal(file_make_temp_dir(&folder, "pool", NULL), 0);
    path = xasprintf("%s/list", folder);
    free(f->options.pool);
    f->options.pool = xasprintf("file:%s", path);
    assert_int_equal(file_replace(path, f->fake[0].pool, strlen(f->fake[0].pool), false, NULL), 0);
    open_daemon_pool_still(f, "file");
    list = xasprintf("%s\n%s\n", f->fake[0].pool, f->fake[1].pool);
    assert_int_equal(file_replace(path, list, strlen(list), false, NULL), 0);
    clock_fake_advance(&f->clock, 5 * NS_PER_S);
    size_t next = use_until_second_answers(f);
    assert_int_equal(file_remove_tree(folder, NULL), 0);
    for (int i = 0; i < 2; i++) { // the second time it is known
        clock_fake_advance(&f->clock, 5 * NS_PER_S);
        run_until_said(f, "; going on with the addresses that it had");
        submit(f, next, next + 4, JOB_MEASURE);
        run_until(f, next + 4);
        next += 4;
    }
    assert_int_equal(said(f, "going on with the addresses that it had"), 1);
    assert_true(answers_of(f, 0, next - 8, next) > 0);
    assert_true(answers_of(f, 1, next - 8, next) > 0);
    free(folder);
    free(path);
    free(list);
    end(f);
}

static void on_hosts(void *owner, const struct host *host, size_t count, const struct err *why)
{
    struct strbuf *all = owner;
    assert_int_equal(why->code, ERR_NONE);
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(all, "%s %s\n", host[i].url, host[i].name ? host[i].name : "-");
    }
}

// The address counts once with each name, since its certificate may show only one of them.
static void address_behind_two_names_counts_for_each(void **state)
{
    (void)state;
    static const char list[] = "dns+tls://pool.test:1,dns+tls://127.0.0.2:1,tls://127.0.0.2:1,"
                               "tls://127.0.0.2:1,dns+tls://pool.test:1";
    struct strbuf all;
    strbuf_init(&all, 1 << 10);
    set_name("127.0.0.2", NULL);
    uv_loop_t loop;
    assert_int_equal(uv_loop_init(&loop), 0);
    struct hosts *hosts;
    struct err err = ERR_INIT;
    assert_int_equal(hosts_create(&hosts, list, &err), 0);
    hosts_look_up(hosts, &loop, on_hosts, &all);
    while (hosts_are_looked_up(hosts)) {
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_string_equal(strbuf_text(&all), "tls://127.0.0.2:1 pool.test\n"
                                           "tls://127.0.0.2:1 127.0.0.2\n"
                                           "tls://127.0.0.2:1 -\n");
    hosts_free(hosts);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    strbuf_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_behind_a_name_come_and_go),
        cmocka_unit_test(address_that_a_name_gets_is_used_soon),
        cmocka_unit_test(address_that_a_file_gets_is_used_soon),
        cmocka_unit_test(without_certificates_tls_urls_are_an_error),
        cmocka_unit_test(address_behind_two_names_counts_for_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
