// A language-model endpoint for tests of whole programs, with no language model in it:
//   fake_endpoint [GOOD]       prints its url, then answers until it is killed
// It always forecasts the same, about as fast as the baseline. Without GOOD every fourth answer is bad in
// one of several ways. Requests must carry "Bearer $KCAST_LLM_KEY" when that is set.
#include "common/mem.h"
#include "tests/support/endpoint_stub.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char forecast[] =
    "{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"E\\\",\\\"p\\\":{\\\"D\\\":0.2,"
    "\\\"E\\\":0.5,\\\"F\\\":0.3},\\\"p_correct\\\":0.97}\"},\"finish_reason\":\"stop\"}],"
    "\"usage\":{\"prompt_tokens\":1200,\"completion_tokens\":40}}";

static const struct stub_reply bad[] = {
    {.status = 429, .headers = "Retry-After-Ms: 5\r\n", .body = "{}"},
    {.status = 500, .body = "oops"},
    {.status = 200, .body = "{\"choices\":[{\"message\":{\"content\":\"I would rather not.\"}}]}"},
    {.status = 200, .body = "{\"error\":{\"message\":\"overloaded\"}}"},
    {.reset = true},
    {.status = 200, .body = "{\"choices\":[{\"message\":{\"content\":\"{\\\"p\\\":{\\\"A\\\":-1}}\"}}]}"},
    {.status = 200, .body = "half an answ", .cut = true},
};

struct settings {
    bool good;
    char *authorization;
};

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    const struct settings *settings = owner;

    *reply = (struct stub_reply){.status = 200, .body = forecast};
    if (settings->authorization && !strstr(request->head, settings->authorization)) {
        *reply = (struct stub_reply){.status = 401, .body = "{}"};
    } else if (!settings->good && request->number % 4 == 3) {
        *reply = bad[request->number / 4 % ARRAY_LEN(bad)];
    }
}

int main(int argc, char **argv)
{
    const char *key = getenv("KCAST_LLM_KEY");
    struct settings settings = {
        .good = argc > 1 && strcmp(argv[1], "GOOD") == 0,
        .authorization = key ? xasprintf("Authorization: Bearer %s", key) : NULL,
    };
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0) {
        return 1;
    }
    printf("%s\n", stub_url(stub_start(&loop, answer, &settings)));
    fflush(stdout);
    return uv_run(&loop, UV_RUN_DEFAULT);
}
