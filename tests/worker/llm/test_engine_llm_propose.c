// The llm engine through its table of operations: candidates that it writes.
#include "tests/worker/llm/llm_fixture.h"

struct proposed {
    struct fixture *f;
    struct propose_reply reply;
};

static void on_proposed(void *owner, const struct err *error, const void *reply)
{
    struct proposed *proposed = owner;

    assert_null(error);
    proposed->f->done = true;
    uv_stop(&proposed->f->loop);
    message_copy(&propose_reply_message, &proposed->reply, reply);
}

// From a parent with this reason, when there is one. Clear the reply.
static struct propose_reply propose(struct fixture *f, const char *parent, const char *reason,
                                    uint64_t draw)
{
    struct forecast_request like = request_of("", "");
    struct proposed proposed = {.f = f};
    struct propose_request request;

    message_init(&propose_request_message, &request);
    request.problem = xstrdup("axpy");
    request.device_class = xstrdup("H200");
    request.search = xstrdup("s1");
    request.context = like.context;
    request.count = 3;
    request.draw = draw;
    like.context = NULL;
    message_clear(&forecast_request_message, &like);
    if (parent) {
        request.parent = xcalloc(1, sizeof(*request.parent));
        message_init(&known_source_message, request.parent);
        request.parent->source = bytes_of(parent);
        request.parent->verdict = reason ? VERDICT_COMPILE_ERROR : VERDICT_FASTER;
        request.parent->log2 = 1;
        request.parent->reason = reason ? xstrdup(reason) : NULL;
    }
    engine_llm.propose(f->engine, &request, on_proposed, &proposed);
    wait(f);
    return proposed.reply;
}

static void candidates_come_from_the_model_and_are_paid_once(void **state)
{
    struct fixture *f = *state;

    f->content = "Try:\\n```c\\n//@ launch a grid=(1)\\n__global__ void a() "
                 "{}\\n```\\nor\\n```c\\n//@ launch b grid=(1)\\n__global__ void b() {}\\n```";
    struct propose_reply reply = propose(f, "the parent", NULL, 1);
    assert_int_equal(reply.proposals_count, 2);
    assert_int_equal(reply.proposals[1].source.len,
                     strlen("//@ launch b grid=(1)\n__global__ void b() {}\n"));
    assert_memory_equal(reply.proposals[1].source.data,
                        "//@ launch b grid=(1)\n__global__ void b() {}\n", 45);
    assert_string_equal(reply.model, "tester");
    assert_int_equal(reply.input_tokens, 1000);
    assert_true(fabs(reply.cost - 0.0011) < 1e-9);
    message_clear(&propose_reply_message, &reply);
    assert_non_null(strstr(f->last_body, "which has S = 2"));
    assert_non_null(strstr(f->last_body, "the parent"));
    assert_non_null(strstr(f->last_body, "Write 3 faster programs"));
    assert_non_null(strstr(f->last_body, "//@ launch")); // its language is CUDA
    assert_null(strstr(f->last_body, "response_format"));
    reply = propose(f, "the parent", NULL, 1);
    assert_int_equal(reply.proposals_count, 2);
    assert_true(reply.cached);
    assert_int_equal(reply.input_tokens, 0);
    message_clear(&propose_reply_message, &reply);
    assert_int_equal(stub_requests(f->stub), 1);
    engine_llm.close(f->engine);
    open_engine(f); // the answers are on the disk
    reply = propose(f, "the parent", NULL, 1);
    assert_true(reply.cached);
    message_clear(&propose_reply_message, &reply);
    reply = propose(f, "the parent", NULL, 2); // another draw is another question
    assert_false(reply.cached);
    message_clear(&propose_reply_message, &reply);
    assert_int_equal(stub_requests(f->stub), 2);
}

static void a_parent_that_failed_comes_with_what_is_wrong(void **state)
{
    struct fixture *f = *state;

    f->content = "```c\\n//@ launch a grid=(1)\\n__global__ void a() {}\\n```";
    struct propose_reply reply = propose(f, "broken", "line 3: expected ;", 1);
    assert_non_null(strstr(f->last_body, "repair it"));
    assert_non_null(strstr(f->last_body, "line 3: expected ;"));
    message_clear(&propose_reply_message, &reply);
    reply = propose(f, NULL, NULL, 1);
    assert_non_null(strstr(f->last_body, "Start from the baseline."));
    message_clear(&propose_reply_message, &reply);
}

static void a_parent_in_python_is_gone_on_with_in_python(void **state)
{
    static const char parent[] = "import triton\ndef axpy(x, y):\n    f(x // 2)\n";
    struct fixture *f = *state;

    f->content =
        "```python\\n# more\\n<<<<<<< SEARCH\\n    f(x // 2)\\n=======\\n    f(x // 4)\\n"
        ">>>>>>> REPLACE\\n```\\n```\\n//@ launch a grid=(1)\\n__global__ void a() {}\\n```";
    struct propose_reply reply = propose(f, parent, NULL, 1);
    assert_non_null(strstr(f->last_body, "@triton.jit"));
    assert_null(strstr(f->last_body, "NVRTC"));
    assert_int_equal(reply.proposals_count, 1);
    assert_int_equal(reply.proposals[0].source.len, strlen(parent) + strlen("# more\n"));
    assert_memory_equal(reply.proposals[0].source.data,
                        "# more\nimport triton\ndef axpy(x, y):\n    f(x // 4)\n",
                        reply.proposals[0].source.len);
    message_clear(&propose_reply_message, &reply);
}

static void no_program_is_no_candidate_and_says_why(void **state)
{
    struct fixture *f = *state;

    f->content = "I would rather not.";
    struct propose_reply reply = propose(f, NULL, NULL, 1);
    assert_int_equal(reply.proposals_count, 0);
    assert_non_null(strstr(reply.reason, "holds no program"));
    assert_int_equal(stub_requests(f->stub), 3); // asked again
    assert_int_equal(reply.input_tokens, 3000);
    message_clear(&propose_reply_message, &reply);
    f->status = 401;
    reply = propose(f, NULL, NULL, 2);
    assert_non_null(strstr(reply.reason, "401"));
    message_clear(&propose_reply_message, &reply);
    engine_llm.close(f->engine);
    f->config.limits.search.tokens = 3031; // 3030 are spent, and one answer may go beyond
    f->status = 200;
    f->content = "```c\\n//@ launch a grid=(1)\\n__global__ void a() {}\\n```";
    open_engine(f);
    reply = propose(f, NULL, NULL, 3);
    assert_int_equal(reply.proposals_count, 1);
    message_clear(&propose_reply_message, &reply);
    reply = propose(f, NULL, NULL, 4);
    assert_non_null(strstr(reply.reason, "used up its 3031 tokens"));
    message_clear(&propose_reply_message, &reply);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(candidates_come_from_the_model_and_are_paid_once),
        TEST(a_parent_that_failed_comes_with_what_is_wrong),
        TEST(a_parent_in_python_is_gone_on_with_in_python),
        TEST(no_program_is_no_candidate_and_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
