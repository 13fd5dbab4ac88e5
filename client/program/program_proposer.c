#include "client/program/program_proposer.h"

#include "client/program/answer.h"
#include "client/program/program.h"
#include "client/program/request.h"
#include "common/mem.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define COMMAND_SHOWN 100 // bytes of a command in sentences
#define SENTENCE_MAX 500  // bytes; a reply's reason has a few more

struct program_proposer;

// A run of the program and its place in the round.
struct call {
    struct program_proposer *proposer;
    struct program_run *program; // NULL: it has ended
    struct propose_reply reply;
};

struct program_proposer {
    struct proposer proposer; // must be first
    uv_loop_t *loop;
    char *command;
    struct program_bounds bounds;
    search_text_reader *read;
    void *read_owner;
    void (*say)(void *owner, const char *sentence);
    void *say_owner;
    char *said; // what the user was told last; NULL: nothing
    struct call call[PROPOSER_ROUND_MAX];
    size_t count, open; // calls of the round under way; those that have not ended
    proposer_callback *callback;
    void *owner;
};

// ---- what went wrong ----

// Writes why the run was no good. Returns false when it was.
static bool explain(const struct program_proposer *proposer, const struct program_end *end,
                    char out[static SENTENCE_MAX])
{
    const char *colon = end->words[0] != '\0' ? ": " : "";
    int status = end->status;

    if (end->late) {
        (void)snprintf(out, SENTENCE_MAX, "it did not end within %g s and was killed%s%s",
                       (double)proposer->bounds.ms / 1000, colon, end->words);
    } else if (end->flooded) {
        (void)snprintf(out, SENTENCE_MAX, "it wrote more than %zu bytes and was killed",
                       proposer->bounds.output_max);
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(out, SENTENCE_MAX, "it was ended by signal %d (%s)%s%s", WTERMSIG(status),
                       strsignal(WTERMSIG(status)), colon, end->words);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        (void)snprintf(out, SENTENCE_MAX, "it ended with exit code %d%s%s", WEXITSTATUS(status),
                       colon, end->words);
    } else {
        return false;
    }
    return true;
}

// Sets the reason of a reply and tells the user, unless that is what was told last.
static void fail_reply(struct program_proposer *proposer, struct propose_reply *reply,
                       const char *what)
{
    free(reply->reason);
    reply->reason = xasprintf("%.500s", what);
    if (!proposer->said || strcmp(proposer->said, what) != 0) {
        char *sentence = xasprintf("exec:%.*s: %s", COMMAND_SHOWN, proposer->command, what);

        free(proposer->said);
        proposer->said = xstrdup(what);
        proposer->say(proposer->say_owner, sentence);
        free(sentence);
    }
}

// ---- the end of a run ----

// A line that was cut by the end of a program that was killed is not garbage.
static size_t whole_lines(const struct strbuf *output)
{
    size_t len = output->len;

    while (len > 0 && output->data[len - 1] != '\n') {
        len--;
    }
    return len;
}

static void answer_all(struct program_proposer *proposer)
{
    struct propose_reply reply[PROPOSER_ROUND_MAX];
    size_t count = proposer->count;

    for (size_t i = 0; i < count; i++) {
        reply[i] = proposer->call[i].reply;
    }
    proposer->count = 0; // the callback may ask again
    proposer->callback(proposer->owner, reply, count);
    for (size_t i = 0; i < count; i++) {
        message_clear(&propose_reply_message, &reply[i]);
    }
}

static void on_end(void *owner, const struct program_end *end)
{
    struct call *call = owner;
    struct program_proposer *proposer = call->proposer;
    struct propose_reply *reply = &call->reply;
    char why[SENTENCE_MAX];
    struct err err = ERR_INIT;

    call->program = NULL;
    reply->seconds = end->seconds;
    bool failed = explain(proposer, end, why);
    size_t len = failed ? whole_lines(end->output) : end->output->len;
    int rc = program_answer_read(reply, len > 0 ? end->output->data : "", len, &err);
    if (failed) {
        fail_reply(proposer, reply, why);
    } else if (rc != 0) {
        (void)snprintf(why, sizeof(why), "its output is no candidate: %.300s", err.text);
        fail_reply(proposer, reply, why);
    } else if (reply->proposals_count == 0) {
        fail_reply(proposer, reply, "it wrote no candidate");
    }
    if (--proposer->open == 0) {
        answer_all(proposer);
    }
}

// ---- the round ----

static int start_one(struct program_proposer *proposer, const struct run_state *run_state,
                     uint64_t visible, const struct proposer_request *request, struct call *call,
                     struct err *err)
{
    struct strbuf line;

    strbuf_init(&line, SIZE_MAX);
    int rc = request_write(&line, run_state, visible, request, proposer->read, proposer->read_owner,
                           err);
    if (rc == 0) {
        rc = program_run_start(&call->program, proposer->loop, proposer->command, &proposer->bounds,
                               line.data, line.len, on_end, call, err);
    }
    strbuf_release(&line);
    return rc;
}

// Ends what is under way, without an answer.
static void stop(struct program_proposer *proposer)
{
    for (size_t i = 0; i < proposer->count; i++) {
        if (proposer->call[i].program) {
            program_run_kill(proposer->call[i].program);
        }
        message_clear(&propose_reply_message, &proposer->call[i].reply);
    }
    proposer->count = proposer->open = 0;
}

static int ask(struct proposer *base, const struct run_state *run_state, uint64_t visible,
               const struct proposer_request *request, size_t count, proposer_callback *callback,
               void *owner, struct err *err)
{
    struct program_proposer *proposer = (struct program_proposer *)base;
    int rc = 0;

    proposer->callback = callback;
    proposer->owner = owner;
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct call *call = &proposer->call[i];

        *call = (struct call){.proposer = proposer};
        message_init(&propose_reply_message, &call->reply);
        proposer->count++;
        rc = start_one(proposer, run_state, visible, &request[i], call, err);
        proposer->open += rc == 0;
    }
    if (rc != 0) {
        stop(proposer);
    }
    return rc;
}

static void free_proposer(struct proposer *base)
{
    struct program_proposer *proposer = (struct program_proposer *)base;

    stop(proposer);
    free(proposer->command);
    free(proposer->said);
    free(proposer);
}

struct proposer *program_proposer_create(struct session *session, const struct run_started *started,
                                         const char *command, search_text_reader *read, void *owner,
                                         void (*say)(void *owner, const char *sentence),
                                         void *say_owner)
{
    struct program_proposer *proposer = xcalloc(1, sizeof(*proposer));
    double seconds = started->exec_seconds > 0 ? started->exec_seconds : PROGRAM_SECONDS_DEFAULT;
    uint64_t jobs = started->exec_jobs > 0 ? started->exec_jobs : 1;

    proposer->proposer = (struct proposer){
        .round_max = jobs < PROPOSER_ROUND_MAX ? (size_t)jobs : PROPOSER_ROUND_MAX,
        .ask = ask,
        .free = free_proposer,
    };
    proposer->loop = session_loop(session);
    proposer->command = xstrdup(command);
    proposer->bounds =
        (struct program_bounds){.ms = (uint64_t)(seconds * 1000), .output_max = PROGRAM_OUTPUT_MAX};
    proposer->read = read;
    proposer->read_owner = owner;
    proposer->say = say;
    proposer->say_owner = say_owner;
    return &proposer->proposer;
}
