#include "executor/compile_result.h"
#include "common/mem.h"
#include "common/printable.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

// Whether the text would tell nobody anything.
static bool is_blank(const char *text)
{
    return !text || text[strspn(text, " \t\n")] == '\0';
}

void compile_result_refuse(struct compiled *compiled, enum verdict verdict, char *reason_take)
{
    if (compiled->verdict != VERDICT_NONE) {
        free(reason_take);
        return;
    }
    // The last resort, where every refusal passes. The daemon takes none without a reason.
    if (is_blank(reason_take)) {
        free(reason_take);
        reason_take = xasprintf("its compilation ends with %s and gives no reason, which is a "
                                "defect of kcast-exec; please report it with the source",
                                verdict_name(verdict));
    }
    compiled->verdict = verdict;
    compiled->reason = reason_take;
}

void compile_result_refuse_slow(struct compiled *compiled, const struct compile_plan *plan)
{
    compile_result_refuse(
        compiled, VERDICT_COMPILE_ERROR,
        xasprintf("compiling it takes longer than the %g seconds of processor time allowed",
                  plan->max_seconds));
}

int compile_result_stalled(const struct compile_plan *plan, double cpu_seconds, struct err *err)
{
    return err_set(err, ERR_TIMED_OUT,
                   "the compiler has not ended after %g seconds, in which it has used only %.1f "
                   "seconds of processor time: this host stands still or is overloaded; look at "
                   "its disks and its load",
                   plan->wall_seconds, cpu_seconds);
}

void compile_result_refuse_large(struct compiled *compiled, uint64_t most)
{
    compile_result_refuse(compiled, VERDICT_COMPILE_ERROR,
                          xasprintf("its object is larger than the %llu MiB allowed",
                                    (unsigned long long)(most >> 20)));
}

void compile_result_refuse_memory(struct compiled *compiled, const struct compile_plan *plan)
{
    compile_result_refuse(compiled, VERDICT_COMPILE_ERROR,
                          xasprintf("compiling it takes more than the %llu MiB of memory allowed",
                                    (unsigned long long)(plan->max_memory >> 20)));
}

char *compile_result_end(int status)
{
    if (WIFSIGNALED(status)) {
        const char *name = sigabbrev_np(WTERMSIG(status));

        return name ? xasprintf("was ended by SIG%s", name)
                    : xasprintf("was ended by signal %d", WTERMSIG(status));
    }
    return WIFEXITED(status) ? xasprintf("ended with exit status %d", WEXITSTATUS(status))
                             : xasprintf("ended with wait status 0x%x", (unsigned)status);
}

size_t compile_result_fold(char *log, size_t len, size_t max)
{
    static const char gap[] = "\n[the middle is left out]\n";
    size_t tail = max / 4, head = max - tail - (sizeof(gap) - 1);

    if (len > max) {
        memmove(log + max - tail, log + len - tail, tail);
        memcpy(log + head, gap, sizeof(gap) - 1);
        len = max;
    }
    log[len] = '\0';
    return len;
}

void compile_result_clean(char *text, size_t len)
{
    printable_clean(text, len);
}
