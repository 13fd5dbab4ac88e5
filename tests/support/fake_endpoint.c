// A language-model endpoint for tests of whole programs, with no language model in it:
//   fake_endpoint [GOOD | KNOWING]     prints its url, then answers until it is killed
// KNOWING forecasts what the words "//! log2 X" of a candidate say (tests/support/fake_exec.c), and
// from SIGUSR1 on the opposite: another model behind the same address and name. The others forecast
// always the same, about as fast as the baseline, and writes sums for tests/data/client/hill: one
// that is new, one that was written before, one that does not compile, the baseline with another
// comment. Without a word every fourth answer is bad in one of several ways. Each forecast is a
// line on stderr. Requests must carry "Bearer $KCAST_LLM_KEY" when that is set.
#include "common/mem.h"
#include "common/strbuf.h"
#include "proto/bins.h"
#include "tests/support/endpoint_stub.h"
#include <signal.h>
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
    {.status = 200,
     .body = "{\"choices\":[{\"message\":{\"content\":\"{\\\"p\\\":{\\\"A\\\":-1}}\"}}]}"},
    {.status = 200, .body = "half an answ", .cut = true},
};

struct settings {
    bool good, knowing;
    bool opposite; // KNOWING, after the signal
    size_t written;
    char *text; // the last proposals, or the last known forecast
    char *authorization;
};

// With so many partial sums; their number makes it new.
static void add_program(struct strbuf *out, size_t parts)
{
    strbuf_addf(
        out,
        "Here it is:\\n```c\\n// %zu partial sums\\nvoid hill(const double *x, double *s, "
        "int64_t N)\\n{\\n    double part[%zu] = {0}, sum = 0;\\n    for (int64_t i = 0; i < "
        "N; i++) part[i %% %zu] += x[i];\\n    for (int i = 0; i < %zu; i++) sum += part[i];\\n"
        "    s[0] = sum;\\n}\\n```\\n",
        parts, parts, parts, parts);
}

// Freed by the caller.
static char *proposals(size_t number)
{
    struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, "{\"choices\":[{\"message\":{\"content\":\"");
    add_program(&text, 2 + number);
    add_program(&text, number > 0 ? 1 + number : 2);
    strbuf_addf(&text, "```c\\nvoid hill(int broken_%zu) { nonsense }\\n```\\n", number);
    strbuf_adds(
        &text,
        "```\\nvoid hill(const double *x, double *s, int64_t N) { /* the same */\\n    double sum "
        "= 0;\\n    for (int64_t i = 0; i < N; i++) { sum += x[i]; }\\n    s[0] = sum; }\\n```");
    strbuf_adds(&text, "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":2000,"
                       "\"completion_tokens\":300}}");
    return strbuf_detach(&text);
}

// The forecast of the candidate in the request, which comes last. Freed by the caller.
static char *known_forecast(const char *request, bool opposite)
{
    static const char word[] = "//! log2 ";
    const char *last = NULL;

    for (const char *at = strstr(request, word); at; at = strstr(at + 1, word)) {
        last = at;
    }
    double log2 = last ? strtod(last + strlen(word), NULL) : 0;
    char letter = (char)('A' + bin_of(opposite ? -log2 : log2));
    return xasprintf("{\"choices\":[{\"message\":{\"content\":\"{\\\"bin\\\":\\\"%c\\\",\\\"p\\\":{"
                     "\\\"%c\\\":1},\\\"p_correct\\\":0.97}\"},\"finish_reason\":\"stop\"}],"
                     "\"usage\":{\"prompt_tokens\":1200,\"completion_tokens\":40}}",
                     letter, letter);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct settings *settings = handle->data;

    (void)number;
    settings->opposite = true;
    fprintf(stderr, "another model\n");
}

static void answer(void *owner, const struct stub_request *request, struct stub_reply *reply)
{
    struct settings *settings = owner;

    *reply = (struct stub_reply){.status = 200, .body = forecast};
    if (strstr(request->body, "You write programs")) {
        free(settings->text);
        settings->text = proposals(settings->written++);
        reply->body = settings->text;
    } else if (settings->knowing) {
        free(settings->text);
        settings->text = known_forecast(request->body, settings->opposite);
        reply->body = settings->text;
    }
    if (settings->authorization && !strstr(request->head, settings->authorization)) {
        *reply = (struct stub_reply){.status = 401, .body = "{}"};
    } else if (!settings->good && !settings->knowing && request->number % 4 == 3) {
        *reply = bad[request->number / 4 % ARRAY_LEN(bad)];
    }
    if (reply->body == forecast) {
        fprintf(stderr, "answered %zu\n", request->number);
    }
}

int main(int argc, char **argv)
{
    const char *key = getenv("KCAST_LLM_KEY");
    struct settings settings = {
        .good = argc > 1 && strcmp(argv[1], "GOOD") == 0,
        .knowing = argc > 1 && strcmp(argv[1], "KNOWING") == 0,
        .authorization = key ? xasprintf("Authorization: Bearer %s", key) : NULL,
    };
    uv_loop_t loop;

    if (uv_loop_init(&loop) != 0) {
        return 1;
    }
    uv_signal_t swap = {.data = &settings};
    if (uv_signal_init(&loop, &swap) != 0 || uv_signal_start(&swap, on_signal, SIGUSR1) != 0) {
        return 1;
    }
    printf("%s\n", stub_url(stub_start(&loop, answer, &settings)));
    fflush(stdout);
    return uv_run(&loop, UV_RUN_DEFAULT);
}
