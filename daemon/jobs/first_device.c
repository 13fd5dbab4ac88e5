#include "daemon/jobs/first_device.h"
#include "daemon/run/setup.h"
#include <string.h>

// The SHA-256 of the candidate and what it is measured against.
static struct digest name_of(const struct job *job)
{
    struct digest both[2] = {job->candidate, job->setup->identity};

    return digest_of(both, sizeof(both));
}

static size_t place_of(const struct digest *what)
{
    uint32_t head;

    memcpy(&head, what->byte, sizeof(head));
    return head % FIRST_DEVICE_SLOTS;
}

void first_devices_keep(struct first_devices *devices, const struct job *job, uint32_t device)
{
    struct digest what = name_of(job);
    size_t place = place_of(&what);

    devices->slot[place].what = what;
    devices->slot[place].device = device;
}

uint32_t first_devices_find(const struct first_devices *devices, const struct job *job)
{
    struct digest what = name_of(job);
    size_t place = place_of(&what);

    return digest_equal(&devices->slot[place].what, &what) ? devices->slot[place].device : 0;
}
