#include "common/state_dir.h"

#include "common/mem.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// The variable's value if it is an absolute path, otherwise NULL.
static const char *absolute(const char *variable)
{
    const char *value = getenv(variable);

    return value && value[0] == '/' ? value : NULL;
}

int state_dir_default(char **ret, const char *name, const char *root_dir, struct err *err)
{
    const char *given = absolute("STATE_DIRECTORY");
    const char *xdg = absolute("XDG_STATE_HOME");
    const char *home = absolute("HOME");

    if (given) {
        *ret = xstrndup(given, strcspn(given, ":"));
    } else if (xdg) {
        *ret = xasprintf("%s/kernelcast/%s", xdg, name);
    } else if (geteuid() == 0) {
        *ret = xstrdup(root_dir);
    } else if (home) {
        *ret = xasprintf("%s/.local/state/kernelcast/%s", home, name);
    } else {
        return err_set(err, ERR_USAGE, "no state folder: set --state, XDG_STATE_HOME or HOME");
    }
    return 0;
}
