// Which blobs a client asks for and which it sends: a small candidate goes to the daemon at once.
// The daemon here is in the same process; it notes the calls and refuses each job.
#include "client/pool/job_client.h"
#include "common/mem.h"
#include "common/strbuf.h"
#include "net/rpc/service.h"
#include "proto/verdict.h"
#include "tests/support/own_url.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MANY 100                  // candidates at once
#define FEW 8                     // at most so many of them are sent unasked
#define LARGE ((size_t)100 << 10) // bytes of a candidate that is asked about

struct fixture {
    struct session_options options;
    struct session *session;
    struct service *service;
    struct remote *remote;
    struct job_client *client;
    struct job_spec spec;
    struct digest known;  // a blob that the daemon has
    bool knows_all;       // it has all that it is asked about
    struct strbuf asked;  // the blobs that it was asked about, by the names of the test
    struct strbuf sent;   // likewise
    struct digest needed; // what it asks for once, when a job is submitted
    bool over;
};

static struct digest problem, candidate;

static void note(struct strbuf *list, const struct digest *digest)
{
    strbuf_addf(list, "%s ",
                digest_equal(digest, &problem)     ? "problem"
                : digest_equal(digest, &candidate) ? "candidate"
                                                   : "another");
}

static size_t count_words(const struct strbuf *list)
{
    size_t count = 0;

    for (const char *at = strbuf_text(list); *at != '\0'; at++) {
        count += *at == ' ';
    }
    return count;
}

static void on_have(struct fixture *f, struct exchange *exchange, const struct blob_have *have)
{
    struct blob_missing missing = {.digests = xcalloc(have->digests_count + 1, DIGEST_LEN)};

    for (size_t i = 0; i < have->digests_count; i++) {
        note(&f->asked, &have->digests[i]);
        if (!f->knows_all && !digest_equal(&have->digests[i], &f->known)) {
            missing.digests[missing.digests_count++] = have->digests[i];
        }
    }
    exchange_reply(exchange, &blob_missing_message, &missing);
    message_clear(&blob_missing_message, &missing);
}

static void on_submit(struct fixture *f, struct exchange *exchange)
{
    struct err err = ERR_INIT;

    if (digest_is_zero(&f->needed)) {
        (void)err_set(&err, ERR_INVALID, "enough has been seen");
    } else {
        (void)err_set(&err, ERR_NEED_BLOB, "send first");
        f->needed = (struct digest){{0}};
    }
    exchange_fail(exchange, &err);
}

static void on_request(void *owner, struct exchange *exchange, const struct request *request)
{
    struct fixture *f = owner;
    struct empty nothing = {0};
    struct blob_have have;
    struct blob_put put;

    if (request->op == OP_HELLO) {
        exchange_hello(exchange, request, "kcastd", NULL, 0, 10000, NULL);
    } else if (request->op == OP_BLOB_HAVE &&
               exchange_read_body(exchange, request, &blob_have_message, &have)) {
        on_have(f, exchange, &have);
        message_clear(&blob_have_message, &have);
    } else if (request->op == OP_BLOB_PUT &&
               exchange_read_body(exchange, request, &blob_put_message, &put)) {
        note(&f->sent, &put.digest);
        exchange_reply(exchange, &empty_message, &nothing);
        message_clear(&blob_put_message, &put);
    } else if (request->op == OP_SUBMIT) {
        on_submit(f, exchange);
    } else {
        exchange_reply(exchange, &empty_message, &nothing);
    }
}

static int set_up(void **state)
{
    struct fixture *f = xcalloc(1, sizeof(*f));
    struct hello_reply hello;
    struct err err = ERR_INIT;

    strbuf_init(&f->asked, 1 << 16);
    strbuf_init(&f->sent, 1 << 16);
    f->options.pool = xstrdup(own_url());
    f->options.quiet = true;
    assert_int_equal(session_create(&f->session, &f->options, &err), 0);
    struct service_config config = {.url = f->options.pool,
                                    .exchanges_max = 64,
                                    .parked_max = 32,
                                    .message_max = 16 << 20,
                                    .epoch = 1,
                                    .on_request = on_request,
                                    .owner = f};
    assert_int_equal(service_create(&f->service, session_loop(f->session), &config, &err), 0);
    assert_int_equal(session_remote(f->session, service_url(f->service), &f->remote, &err), 0);
    if (remote_hello_sync(f->remote, "kcastd", &hello, &err) < 0) {
        fail_msg("%s", err.text);
    }
    message_clear(&hello_reply_message, &hello);
    f->client = job_client_create(f->session, f->remote, "search");
    message_init(&job_spec_message, &f->spec);
    f->spec.kind = JOB_COMPILE;
    job_client_add_blob(f->client, "{}", 2, &problem);
    f->spec.problem = problem;
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    job_client_close(f->client);
    service_close(f->service);
    remote_close(f->remote);
    session_free(f->session);
    strbuf_release(&f->asked);
    strbuf_release(&f->sent);
    free(f->options.pool);
    free(f);
    return 0;
}

static void on_over(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    struct fixture *f = owner;

    (void)tag;
    (void)info;
    assert_int_equal(error->code, ERR_INVALID);
    f->over = true;
}

static void on_one_over(void *owner, uint64_t tag, struct job_info *info, const struct err *error)
{
    (void)tag;
    (void)info;
    assert_int_equal(error->code, ERR_INVALID);
    ++*(size_t *)owner;
}

// Submits a job of this candidate and waits until it has been refused.
static void submit(struct fixture *f, const struct digest *of)
{
    struct err err = ERR_INIT;

    candidate = *of;
    f->spec.candidate = *of;
    strbuf_reset(&f->asked);
    strbuf_reset(&f->sent);
    f->over = false;
    job_client_submit(f->client, "key", &f->spec, 0, on_over, f, 0);
    while (!f->over) {
        assert_int_equal(job_client_run_once(f->client, &err), 0);
    }
}

static struct digest add(struct fixture *f, size_t len)
{
    char *text = xcalloc(1, len);
    struct digest digest;

    memset(text, 'x', len);
    job_client_add_blob(f->client, text, len, &digest);
    free(text);
    return digest;
}

static void a_small_candidate_is_sent_at_once(void **state)
{
    struct fixture *f = *state;
    struct digest small = add(f, 100), other = add(f, 200);

    submit(f, &small);
    assert_string_equal(strbuf_text(&f->asked), "problem ");
    assert_true(strcmp(strbuf_text(&f->sent), "candidate problem ") == 0 ||
                strcmp(strbuf_text(&f->sent), "problem candidate ") == 0);
    submit(f, &other);
    assert_string_equal(strbuf_text(&f->asked), ""); // the problem is known by now
    assert_string_equal(strbuf_text(&f->sent), "candidate ");
    submit(f, &small);
    assert_string_equal(strbuf_text(&f->sent), "");
}

// Of many at once the first few are sent, and the daemon is asked about the others.
static void many_candidates_are_asked_about(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    size_t over = 0;

    f->knows_all = true;
    for (size_t i = 0; i < MANY; i++) {
        char key[32];

        (void)snprintf(key, sizeof(key), "key %zu", i);
        f->spec.candidate = add(f, 100 + i);
        job_client_submit(f->client, key, &f->spec, 0, on_one_over, &over, 0);
    }
    while (over < MANY) {
        assert_int_equal(job_client_run_once(f->client, &err), 0);
    }
    assert_in_range(count_words(&f->sent), 1, FEW);
    assert_int_equal(count_words(&f->asked) + count_words(&f->sent), MANY + 1); // and the problem
}

static void a_candidate_that_the_daemon_has_lost_is_sent_again(void **state)
{
    struct fixture *f = *state;
    struct digest small = add(f, 100);

    submit(f, &small);
    f->needed = small;
    submit(f, &small);
    assert_string_equal(strbuf_text(&f->asked), "problem ");
    assert_non_null(strstr(strbuf_text(&f->sent), "candidate "));
}

static void a_large_candidate_is_asked_about(void **state)
{
    struct fixture *f = *state;
    struct digest missing = add(f, LARGE), there = add(f, LARGE + 1);

    submit(f, &missing);
    assert_non_null(strstr(strbuf_text(&f->asked), "candidate "));
    assert_non_null(strstr(strbuf_text(&f->sent), "candidate "));
    f->known = there;
    submit(f, &there);
    assert_string_equal(strbuf_text(&f->asked), "candidate ");
    assert_string_equal(strbuf_text(&f->sent), "");
}

static void a_candidate_whose_bytes_nobody_has_is_asked_about(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    f->known = digest_of("elsewhere", 9);
    submit(f, &f->known);
    assert_non_null(strstr(strbuf_text(&f->asked), "candidate "));
    assert_null(strstr(strbuf_text(&f->sent), "candidate "));
    f->spec.candidate = digest_of("nowhere", 7);
    job_client_submit(f->client, "other", &f->spec, 0, on_over, f, 0);
    while (!job_client_error(f->client)) {
        (void)!job_client_run_once(f->client, &err);
    }
    assert_non_null(strstr(job_client_error(f->client)->text, "bytes that nobody has"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_small_candidate_is_sent_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_candidates_are_asked_about, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_candidate_that_the_daemon_has_lost_is_sent_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_large_candidate_is_asked_about, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_candidate_whose_bytes_nobody_has_is_asked_about, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
