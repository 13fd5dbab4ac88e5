#include "executor/gpu/compile/refusal.h"
#include "executor/compile_result.h"
#include "proto/verdict.h"
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define QUOTE_MAX 400 // bytes of the log that a reason quotes
#define LOG_MAX 65000 // bytes of the log that an outcome carries

// Returns the first line of the text that is not blank and has the word, cut to QUOTE_MAX bytes and
// printable, malloc'd; NULL when there is none.
static char *first_line(const char *text, const char *word)
{
    while (*text != '\0') {
        size_t len = strcspn(text, "\n");
        char *line = xstrndup(text, len < QUOTE_MAX ? len : QUOTE_MAX);

        if (line[strspn(line, " \t\r")] != '\0' && strstr(line, word)) {
            compile_result_clean(line, strlen(line));
            return line;
        }
        free(line);
        text += text[len] == '\n' ? len + 1 : len;
    }
    return NULL;
}

// Whether the compiler says that it gets no more memory.
static bool lacks_memory(const char *text)
{
    static const char *const words[] = {
        "catastrophic error: out of memory", "LLVM ERROR: out of memory",
        "Memory allocation failure",         "std::bad_alloc",
        "NVRTC_ERROR_OUT_OF_MEMORY",         "out of memory\n"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strstr(text, words[i])) {
            return true;
        }
    }
    return false;
}

bool refusal_is_slow(const struct compile_plan *plan, const struct cuda_jail_report *report)
{
    return WIFSIGNALED(report->status) &&
           (WTERMSIG(report->status) == SIGXCPU || report->cpu_seconds >= plan->max_seconds);
}

// Refuses a source that the compiler did not survive.
static void refuse_dead(struct compiled *compiled, const struct compile_plan *plan,
                        const struct cuda_jail_report *report)
{
    if (lacks_memory(report->words)) {
        compile_result_refuse_memory(compiled, plan);
        return;
    }
    if (refusal_is_slow(plan, report)) {
        compile_result_refuse_slow(compiled, plan);
        return;
    }
    char *end = compile_result_end(report->status), *words = first_line(report->words, "");
    bool killed = WIFSIGNALED(report->status) && WTERMSIG(report->status) == SIGKILL;
    char *hint = killed ? xasprintf(", as when compiling takes more memory than there is for all "
                                    "compilations together (%llu MiB are allowed to each)",
                                    (unsigned long long)(plan->max_memory >> 20))
                        : xstrdup("");
    compile_result_refuse(compiled, VERDICT_COMPILE_ERROR,
                          xasprintf("the compiler %s when it compiled this%s%s%s", end, hint,
                                    words ? "; it says: " : " and says nothing",
                                    words ? words : ""));
    free(end);
    free(words);
    free(hint);
}

void refusal_by_end(struct compiled *compiled, const struct compile_plan *plan,
                    const struct cuda_jail_report *report)
{
    char *words;

    switch (report->end) {
    case CUDA_JAIL_DONE:
        return;
    case CUDA_JAIL_TIMEOUT: // its processor time was used up as well
        compile_result_refuse_slow(compiled, plan);
        return;
    case CUDA_JAIL_TOO_LARGE:
        compile_result_refuse_large(compiled, plan->max_output);
        return;
    case CUDA_JAIL_DIED:
        refuse_dead(compiled, plan, report);
        return;
    case CUDA_JAIL_LOST:
        words = first_line(report->words, "");
        compile_result_refuse(compiled, VERDICT_COMPILE_ERROR,
                              xasprintf("the process in which the compiler runs ended%s%s",
                                        words ? "; it says: " : "", words ? words : ""));
        free(words);
        return;
    }
}

void refusal_by_log(struct compiled *compiled, const struct compile_plan *plan,
                    const struct nvrtc_output *output, const struct cuda_jail_report *report)
{
    if (lacks_memory(output->log) || lacks_memory(report->words) || lacks_memory(output->result)) {
        compile_result_refuse_memory(compiled, plan);
    }
    static const char *const word[] = {"error", "fatal", ""};
    char *sentence = NULL;
    for (size_t i = 0; i < ARRAY_LEN(word) && !sentence; i++) {
        sentence = first_line(output->log, word[i]);
        sentence = sentence ? sentence : first_line(report->words, word[i]);
    }
    if (!sentence) {
        sentence = xasprintf("the compiler says nothing, and NVRTC calls it %s",
                             output->result[0] ? output->result : "an error without a name");
        compile_result_clean(sentence, strlen(sentence));
    }
    compile_result_refuse(compiled, VERDICT_COMPILE_ERROR, sentence);
    if (!compiled->log) {
        size_t len = compile_result_fold(output->log, strlen(output->log), LOG_MAX);

        compile_result_clean(output->log, len);
        compiled->log = xstrdup(output->log);
    }
}
