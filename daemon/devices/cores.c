// Design note. Processors that share a physical core are found by their `thread_siblings_list`. A
// processor is the first thread of its core when it has the lowest number among the siblings that
// this process may use. First threads become devices before second ones. When a device owns a core,
// nobody uses its siblings, because what runs there slows it down. They are given back only if no
// processor would be left otherwise.
#include "daemon/devices/cores.h"
#include "common/file.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AUTO_MAX 4
#define LIST_TEXT_MAX 4096

// Parses a list like "0-3,8" into a set, up to the first character that does not fit.
static void parse_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long first = strtoul(text, &end, 10);
        unsigned long last = first;

        if (*end == '-') {
            last = strtoul(end + 1, &end, 10);
        }
        for (unsigned long cpu = first; cpu <= last && cpu < CPU_SETSIZE; cpu++) {
            CPU_SET(cpu, set);
        }
        text = *end == ',' ? end + 1 : end;
    }
}

// The processors of the physical core of cpu, cpu included.
static void siblings_of(int cpu, cpu_set_t *set)
{
    char path[128];

    (void)snprintf(path, sizeof(path),
                   "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    CPU_ZERO(set);
    struct bytes text = {0};
    if (file_read(&text, path, LIST_TEXT_MAX, NULL) == 0) {
        parse_list((const char *)text.data, set);
    }
    CPU_SET(cpu, set);
    bytes_clear(&text);
}

static bool is_first_thread(int cpu, const cpu_set_t *allowed)
{
    cpu_set_t siblings;

    siblings_of(cpu, &siblings);
    for (int other = 0; other < cpu; other++) {
        if (CPU_ISSET(other, &siblings) && CPU_ISSET(other, allowed)) {
            return false;
        }
    }
    return true;
}

// Puts all allowed processors in the order in which they become devices. Returns their number;
// *physical is the number of physical cores.
static size_t order_cores(const cpu_set_t *allowed, int order[static CPU_SETSIZE], size_t *physical)
{
    size_t count = 0;

    for (int pass = 0; pass < 2; pass++) {
        for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
            if (CPU_ISSET(cpu, allowed) && is_first_thread(cpu, allowed) == (pass == 0)) {
                order[count++] = cpu;
            }
        }
        if (pass == 0) {
            *physical = count;
        }
    }
    return count;
}

int cores_plan(struct cores *ret, size_t wanted, struct err *err)
{
    *ret = (struct cores){0};
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "the processor mask cannot be read");
    }
    int order[CPU_SETSIZE];
    size_t physical = 0;
    size_t processors = order_cores(&allowed, order, &physical);
    if (wanted == CORES_AUTO) {
        wanted = physical > 1 ? physical - 1 : 1;
        wanted = wanted < AUTO_MAX ? wanted : AUTO_MAX;
    }
    if (wanted > processors) {
        return err_set(err, ERR_INVALID, "--devices cpu:%zu: only %zu processors may be used here",
                       wanted, processors);
    }
    ret->device_count = wanted;
    ret->rest = allowed;
    cpu_set_t no_siblings = allowed;
    for (size_t i = 0; i < ret->device_count; i++) {
        ret->device[i] = order[i];
        CPU_CLR(order[i], &ret->rest);
        cpu_set_t siblings;
        siblings_of(order[i], &siblings);
        cpu_set_t both;
        CPU_AND(&both, &no_siblings, &siblings);
        CPU_XOR(&no_siblings, &no_siblings, &both);
    }
    if (CPU_COUNT(&no_siblings) > 0) {
        ret->rest = no_siblings;
    }
    ret->exclusive = CPU_COUNT(&ret->rest) == 0;
    if (ret->exclusive) {
        ret->rest = allowed;
    }
    ret->rest_count = (size_t)CPU_COUNT(&ret->rest);
    return 0;
}

size_t cores_for_compiling(const struct cores *cores, size_t gpus)
{
    size_t kept = gpus > 0 ? 2 * gpus + 1 : 0, most = (cores->rest_count - 1) / 2;

    return cores->rest_count - (kept < most ? kept : most);
}

int cores_settle(const struct cores *cores, struct err *err)
{
    if (sched_setaffinity(0, sizeof(cores->rest), &cores->rest) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "the processor mask cannot be set");
    }
    return 0;
}
