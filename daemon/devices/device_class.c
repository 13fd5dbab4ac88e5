// Finds the class of devices that a problem runs on.
#include "common/strbuf.h"
#include "daemon/devices/device.h"
#include <string.h>

struct device_class *devices_class(const struct devices *devices, const char *name,
                                   const char *language)
{
    struct device_class *device_class = devices->classes;

    while (device_class && ((name && strcmp(device_class->name, name) != 0) ||
                            (language && strcmp(device_class->language, language) != 0))) {
        device_class = device_class->next;
    }
    return device_class;
}

static void list_classes(const struct devices *devices, struct strbuf *out)
{
    const struct device_class *device_class = devices->classes;

    for (; device_class; device_class = device_class->next) {
        strbuf_addf(out, "%s%s (%s)", out->len > 0 ? ", " : "", device_class->name,
                    device_class->language);
    }
}

int devices_choose(struct device_class **ret, const struct devices *devices, const char *name,
                   const char *language, struct err *err)
{
    struct device_class *device_class = devices_class(devices, name, language);

    if (device_class) {
        *ret = device_class;
        return 0;
    }
    struct strbuf classes = STRBUF_INIT;
    list_classes(devices, &classes);
    if (name && devices_class(devices, name, NULL)) {
        (void)err_set(err, ERR_NOT_FOUND, "devices of class %s do not run %s problems; there is %s",
                      name, language, strbuf_text(&classes));
    } else if (name) {
        (void)err_set(err, ERR_NOT_FOUND, "no device of class %s here; there is %s", name,
                      strbuf_text(&classes));
    } else {
        (void)err_set(err, ERR_NOT_FOUND, "no device of this daemon runs %s problems; there is %s",
                      language, strbuf_text(&classes));
    }
    strbuf_release(&classes);
    return ERR_NOT_FOUND;
}
