// Function pointers are filled through memcpy, because ISO C does not convert void * to a function
// pointer.
#include "common/library.h"
#include "common/strbuf.h"
#include <dlfcn.h>
#include <string.h>

static void set_pointer(const struct library_symbol *symbol, void *address)
{
    memcpy(symbol->where, &address, sizeof(address));
}

static void clear(const struct library_symbol *symbols, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        set_pointer(&symbols[i], NULL);
    }
}

static int not_found(const char *const *names, const char *reason, struct err *err)
{
    struct strbuf list = STRBUF_INIT;

    for (size_t i = 0; names[i]; i++) {
        strbuf_addf(&list, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    int rc = err_set(err, ERR_NOT_FOUND, "cannot load %s: %s", list.data,
                     reason ? reason : "no reason given");
    strbuf_release(&list);
    return rc;
}

int library_open(void **ret, const char *const *names, const struct library_symbol *symbols,
                 size_t count, struct err *err)
{
    clear(symbols, count);
    void *library = NULL;
    const char *name = NULL;
    for (size_t i = 0; names[i] && !library; i++) {
        name = names[i];
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        return not_found(names, dlerror(), err);
    }
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, symbols[i].name);

        if (!address && symbols[i].required) {
            int rc = err_set(err, ERR_VERSION, "%s has no function %s: it is too old", name,
                             symbols[i].name);
            clear(symbols, count);
            dlclose(library);
            return rc;
        }
        set_pointer(&symbols[i], address);
    }
    *ret = library;
    return 0;
}

void library_close(void *library)
{
    if (library) {
        dlclose(library);
    }
}
