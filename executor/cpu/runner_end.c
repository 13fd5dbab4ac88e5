// How a runner ended, and what it wrote.
#include "common/mem.h"
#include "common/strbuf.h"
#include "executor/cpu/runner_process.h"
#include "proto/verdict.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *signal_meaning(int number)
{
    switch (number) {
    case SIGSEGV:
        return "SIGSEGV (access to memory that it does not have)";
    case SIGBUS:
        return "SIGBUS (bad memory access)";
    case SIGFPE:
        return "SIGFPE (division by zero or overflow of integers, or a floating-point exception "
               "that it has unmasked)";
    case SIGILL:
        return "SIGILL (illegal instruction)";
    case SIGTRAP:
        return "SIGTRAP (trap)";
    case SIGABRT:
        return "SIGABRT (abort)";
    case SIGKILL:
        return "SIGKILL (out of memory or processor time)";
    case SIGXCPU:
        return "SIGXCPU (out of processor time)";
    default:
        return NULL;
    }
}

void runner_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if (*text != '\n' && *text != '\t' && (*text < ' ' || *text > '~')) {
            *text = '?';
        }
    }
}

static char *describe_call(const struct runner_process *runner, uint32_t call)
{
    char *name = sandbox_call_name((int)call);
    char *sentence = xasprintf("the %s called %s, a system call that candidates may not use",
                               runner->name, name);

    free(name);
    return sentence;
}

// Returns what the process did, as the end of a sentence. malloc'd.
static char *describe_status(int status)
{
    if (WIFEXITED(status)) {
        return xasprintf("ended its process with exit status %d instead of returning",
                         WEXITSTATUS(status));
    }
    if (signal_meaning(WTERMSIG(status))) {
        return xasprintf("was ended by %s", signal_meaning(WTERMSIG(status)));
    }
    return xasprintf("was ended by signal %d", WTERMSIG(status));
}

static char *describe_load(const struct runner_process *runner)
{
    if (runner->load_trap == MESSAGE_LOAD_CALL) {
        return describe_call(runner, runner->load_call);
    }
    if (runner->load_trap == MESSAGE_LOAD_ABORT) {
        return xasprintf("the %s called abort while it was loaded", runner->name);
    }
    if (runner->load_trap == MESSAGE_LOAD_FAILED) {
        return xasprintf("the %s's object cannot be loaded: %s", runner->name, runner->text);
    }
    char *did = describe_status(runner->status);
    char *sentence = xasprintf("the %s's object cannot be loaded: it %s", runner->name, did);
    free(did);
    return sentence;
}

// The candidate can write to the control page, but only what it says of itself is read there.
static char *describe_child(const struct runner_process *runner, uint32_t *ret_verdict)
{
    uint32_t trap = runner->control->trap;

    if (WIFEXITED(runner->status) && trap == TRAP_CALL) {
        *ret_verdict = VERDICT_REJECTED;
        return describe_call(runner, runner->control->trap_value);
    }
    if (WIFEXITED(runner->status) && trap == TRAP_ABORT) {
        return xasprintf("the %s called abort", runner->name);
    }
    if (WIFSIGNALED(runner->status) && WTERMSIG(runner->status) == SIGSYS) {
        *ret_verdict = VERDICT_REJECTED;
        // The handler that would have had the number did not run. fork blocks all signals around
        // its call since glibc 2.41.
        return xasprintf("the %s called clone, or another one of the 32-bit or x32 kind or while "
                         "signals were blocked, a system call that candidates may not use",
                         runner->name);
    }
    char *did = describe_status(runner->status);
    char *sentence = xasprintf("the %s %s", runner->name, did);
    free(did);
    return sentence;
}

char *runner_process_describe(const struct runner_process *runner, uint32_t *ret_verdict)
{
    *ret_verdict = VERDICT_CRASH;
    switch (runner->fault) {
    case RUNNER_FAULT_SETUP:
        return xasprintf("the %s's sandbox cannot be set up: %s", runner->name, runner->text);
    case RUNNER_FAULT_LOAD:
        *ret_verdict = VERDICT_REJECTED;
        return describe_load(runner);
    case RUNNER_FAULT_CHILD:
        return describe_child(runner, ret_verdict);
    case RUNNER_FAULT_NONE:
        break;
    }
    return xasprintf("the %s does not run", runner->name);
}

char *runner_process_output(struct runner_process *runner)
{
    struct strbuf text;

    strbuf_init(&text, (size_t)1 << 17); // more than the 64 KiB that a pipe holds
    char chunk[4096];
    ssize_t n;
    while (runner->output >= 0 && !text.truncated &&
           (n = read(runner->output, chunk, sizeof(chunk))) > 0) {
        strbuf_add(&text, chunk, (size_t)n);
    }
    if (text.len == 0) {
        strbuf_release(&text);
        return NULL;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '\0') {
            text.data[i] = '?';
        }
    }
    runner_printable(text.data);
    char *tail =
        xstrdup(text.data + (text.len > RUNNER_OUTPUT_MAX ? text.len - RUNNER_OUTPUT_MAX : 0));
    strbuf_release(&text);
    return tail;
}
