// The exchange of docs/protocol.md, as it stands there.
#include "tests/net/fixture.h"

#include "common/file.h"

#define SECTION "## An exchange, byte by byte"

// Appends the bytes of a line: two hexadecimal digits each, with one space between.
static void add_bytes(struct strbuf *to, const char *at)
{
    unsigned byte;

    while (sscanf(at, "%2x", &byte) == 1 && (at[2] == ' ' || at[2] == '\n')) {
        strbuf_addc(to, (char)(unsigned char)byte);
        at += 3;
        if (at[0] == ' ') {
            break;
        }
    }
}

// Reads what each side sends from the document.
static void read_document(struct strbuf *caller, struct strbuf *server)
{
    char *path = xasprintf("%s/docs/protocol.md", getenv("KCAST_ROOT"));
    struct bytes text = {0};

    assert_int_equal(file_read(&text, path, 1 << 20, NULL), 0);
    free(path);
    const char *at = strstr((char *)text.data, SECTION);
    assert_non_null(at);
    const char *end = strstr(at, "\n<!-- ");
    assert_non_null(end);
    for (; at < end; at = strchr(at, '\n') + 1) {
        if (strncmp(at, "caller  ", 8) == 0) {
            add_bytes(caller, at + 8);
        } else if (strncmp(at, "server  ", 8) == 0) {
            add_bytes(server, at + 8);
        }
    }
    bytes_clear(&text);
}

// As kcastd does, for a job that it does not know.
static void answer_unknown(void *owner, struct exchange *exchange, const struct request *request)
{
    struct wait wait;
    struct waited waited;

    (void)owner;
    assert_int_equal(request->op, OP_WAIT);
    assert_int_equal(request->deadline_ms, 6000);
    assert_string_equal(request->token, "kcast_x");
    assert_true(exchange_read_body(exchange, request, &wait_message, &wait));
    assert_int_equal(wait.jobs_count, 1);
    assert_int_equal(wait.max_ms, 5000);
    message_init(&waited_message, &waited);
    waited.unknown = wait.jobs;
    waited.unknown_count = 1;
    exchange_reply(exchange, &waited_message, &waited);
    message_clear(&wait_message, &wait);
}

static void the_documented_bytes_are_exchanged(void **state)
{
    struct fixture *f = *state;
    struct strbuf caller = STRBUF_INIT;
    struct strbuf server = STRBUF_INIT;

    f->config.on_request = answer_unknown;
    reopen(f);
    read_document(&caller, &server);
    assert_int_equal(caller.len, FRAMES_GREETING_LEN + FRAMES_LENGTH_LEN + 33);
    int fd = raw_connect(f);
    raw_send(f, fd, caller.data, caller.len);
    char *answer = xmalloc(server.len);
    assert_true(raw_read(f, fd, answer, server.len));
    assert_memory_equal(answer, server.data, server.len);
    close(fd);
    free(answer);
    strbuf_release(&caller);
    strbuf_release(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(the_documented_bytes_are_exchanged)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
