// Design note. An Xid that is not in the table is logged and has no other effect. What is really
// wrong is found by the A/A controls, by the health kernel before each measurement and by lost
// executors.
#include "daemon/devices/health.h"
#include "common/mem.h"
#include <stdarg.h>
#include <stdio.h>

// From NVIDIA's "XID Errors", the catalogue of the driver's error numbers.
static const struct {
    uint64_t xid;
    enum health_level level;
    const char *what;
} xid_table[] = {
    {13, HEALTH_OK, "graphics engine exception"},
    {31, HEALTH_OK, "memory page fault"},
    {43, HEALTH_OK, "the GPU stopped a program"},
    {45, HEALTH_OK, "a program's channel was removed"},
    {46, HEALTH_FAULTY, "the GPU stopped processing"},
    {48, HEALTH_FAULTY, "double bit ECC error"},
    {62, HEALTH_FAULTY, "internal microcontroller halt"},
    {63, HEALTH_FAULTY, "a row of memory is to be remapped"},
    {64, HEALTH_FAULTY, "a row of memory could not be remapped"},
    {74, HEALTH_FAULTY, "NVLink error"},
    {79, HEALTH_LOST, "the GPU has fallen off the bus"},
    {92, HEALTH_FAULTY, "many single bit ECC errors"},
    {94, HEALTH_FAULTY, "contained ECC error"},
    {95, HEALTH_FAULTY, "uncontained ECC error"},
    {119, HEALTH_FAULTY, "the GPU's system processor does not answer"},
    {120, HEALTH_FAULTY, "the GPU's system processor failed"},
};

static void blame(struct health *health, enum health_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Keeps the worst finding, and of equal ones the first.
static void blame(struct health *health, enum health_level level, const char *format, ...)
{
    if (level <= health->level) {
        return;
    }
    health->level = level;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(health->reason, sizeof(health->reason), format, args);
    va_end(args);
}

enum health_level health_of_xid(uint64_t xid)
{
    for (size_t i = 0; i < ARRAY_LEN(xid_table); i++) {
        if (xid_table[i].xid == xid) {
            return xid_table[i].level;
        }
    }
    return HEALTH_OK;
}

static const char *xid_text(uint64_t xid)
{
    for (size_t i = 0; i < ARRAY_LEN(xid_table); i++) {
        if (xid_table[i].xid == xid) {
            return xid_table[i].what;
        }
    }
    return "not in the table";
}

static void check_events(struct health *health, const struct nvml_state *now)
{
    for (size_t i = 0; i < now->xid_count; i++) {
        enum health_level level = health_of_xid(now->xid[i]);

        if (level == HEALTH_OK) {
            health->program_xid = now->xid[i];
        }
        blame(health, level, "the driver reports Xid %llu (%s)", (unsigned long long)now->xid[i],
              xid_text(now->xid[i]));
    }
}

static bool has(const struct nvml_state *state, enum nvml_reading reading)
{
    return state && state->valid[reading];
}

static void check_memory(struct health *health, const struct nvml_state *now,
                         const struct nvml_state *before)
{
    if (has(now, NVML_ECC) && has(before, NVML_ECC) &&
        now->value[NVML_ECC] > before->value[NVML_ECC]) {
        blame(health, HEALTH_FAULTY, "its memory has had %.0f uncorrected errors, %.0f of them new",
              now->value[NVML_ECC], now->value[NVML_ECC] - before->value[NVML_ECC]);
    }
    if (has(now, NVML_REMAP) && now->value[NVML_REMAP] > 0) {
        blame(health, HEALTH_FAULTY,
              "rows of its memory wait to be remapped; reset the GPU or restart the host");
    }
}

static void check_heat(struct health *health, const struct nvml_state *now)
{
    static const struct {
        unsigned long long bit;
        const char *what;
    } brake[] = {
        {NVML_THROTTLE_HW_THERMAL, "the hardware slows it down because it is too hot"},
        {NVML_THROTTLE_HW_BRAKE, "the power supply brakes it"},
        {NVML_THROTTLE_HW_SLOWDOWN, "the hardware slows it down"},
        {NVML_THROTTLE_SW_THERMAL, "the driver slows it down because it is too hot"},
    };
    unsigned long long bits =
        has(now, NVML_THROTTLE) ? (unsigned long long)now->value[NVML_THROTTLE] : 0;

    for (size_t i = 0; i < ARRAY_LEN(brake); i++) {
        if (bits & brake[i].bit) {
            blame(health, HEALTH_THROTTLED, "%s (%.0f degrees)", brake[i].what,
                  has(now, NVML_TEMPERATURE) ? now->value[NVML_TEMPERATURE] : 0);
        }
    }
    if (has(now, NVML_TEMPERATURE) && has(now, NVML_SLOWDOWN) &&
        now->value[NVML_TEMPERATURE] >= now->value[NVML_SLOWDOWN]) {
        blame(health, HEALTH_THROTTLED,
              "it has %.0f degrees, and from %.0f on it slows itself down",
              now->value[NVML_TEMPERATURE], now->value[NVML_SLOWDOWN]);
    }
}

void health_assess(struct health *ret, const struct nvml_state *now,
                   const struct nvml_state *before, uint32_t foreign_pid)
{
    *ret = (struct health){.level = HEALTH_OK};
    if (now->lost) {
        blame(ret, HEALTH_LOST, now->gone ? "the driver is not loaded" : "the driver has lost it");
        return;
    }
    check_events(ret, now);
    check_memory(ret, now, before);
    check_heat(ret, now);
    if (foreign_pid != 0) {
        blame(ret, HEALTH_THROTTLED, "process %u, which is not ours, uses it", foreign_pid);
    }
}
