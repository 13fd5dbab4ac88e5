#include "client/pool/device_choice.h"

#include "common/strbuf.h"
#include <string.h>

static bool is_in_service(const struct device_info *device)
{
    return strcmp(device->state, "out-of-service") != 0 &&
           strcmp(device->state, "out of service") != 0;
}

// Old daemons do not name a language; their devices run C.
static bool runs(const struct device_info *device, const struct problem *problem)
{
    return strcmp(device->language ? device->language : "c", problem->language) == 0;
}

int device_choose(const struct status *status, const char *device_class,
                  const struct problem *problem, struct device_info *ret, struct err *err)
{
    const char *reason = NULL;
    const char *other = NULL;
    bool foreign = false;
    for (size_t i = 0; i < status->devices_count; i++) {
        const struct device_info *device = &status->devices[i];
        if (!runs(device, problem)) {
            foreign = true;
        } else if (device_class && strcmp(device->device_class, device_class) != 0) {
            other = device->device_class;
        } else if (is_in_service(device)) {
            message_copy(&device_info_message, ret, device);
            return 0;
        } else {
            reason = device->reason ? device->reason : "no reason given";
        }
    }
    if (reason) {
        return err_set(err, ERR_NO_DEVICE, "no device of the daemon is in service: %.300s", reason);
    }
    if (other) {
        return err_set(err, ERR_INVALID,
                       "the daemon has no device of class \"%.200s\" (it has \"%.200s\"); "
                       "measurements of different "
                       "classes cannot be compared",
                       device_class, other);
    }
    return foreign
               ? err_set(err, ERR_NO_DEVICE,
                         "the daemon has no device for problems in %s; `kcast status` shows those "
                         "it has",
                         problem->cuda ? "CUDA" : "C")
               : err_set(err, ERR_NO_DEVICE, "the daemon has no device");
}

// A drained, quarantined or lost device may stay so for long, so queued jobs had better go
// elsewhere.
bool device_takes_jobs(const struct device_info *device)
{
    static const char *const states[] = {"draining", "quarantined", "lost"};
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (strcmp(device->state, states[i]) == 0) {
            return false;
        }
    }
    return is_in_service(device);
}

size_t device_count(const struct status *status, const char *device_class, size_t *ret_all)
{
    size_t count = 0, all = 0;
    for (size_t i = 0; i < status->devices_count; i++) {
        bool fits = strcmp(status->devices[i].device_class, device_class) == 0;
        all += fits;
        count += fits && device_takes_jobs(&status->devices[i]);
    }
    if (ret_all) {
        *ret_all = all;
    }
    return count;
}

char *device_waiting(const struct status *status, const char *device_class, const char *search)
{
    struct strbuf text = STRBUF_INIT;
    for (size_t i = 0; i < status->devices_count; i++) {
        const struct device_info *device = &status->devices[i];
        if (strcmp(device->device_class, device_class) != 0) {
            continue;
        }
        bool ours = device->job != 0 && device->search && strcmp(device->search, search) == 0;
        if (ours || strcmp(device->state, "ready") == 0) {
            strbuf_release(&text);
            return NULL;
        }
        strbuf_addf(&text, "%s%s is ", text.len > 0 ? "; " : "", device->name);
        if (strcmp(device->state, "busy") == 0) {
            strbuf_addf(&text, "busy with %s%s", device->search ? "search " : "others",
                        device->search ? device->search : "");
        } else {
            strbuf_adds(&text, device->state);
        }
        if (device->reason) {
            strbuf_addf(&text, " (%s)", device->reason);
        }
    }
    return text.len > 0 ? strbuf_detach(&text) : NULL;
}
