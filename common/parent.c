#include "common/parent.h"
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

int parent_follow(struct err *err)
{
    const char *told = getenv(PARENT_VARIABLE);
    long parent = told ? strtol(told, NULL, 10) : (long)getppid();
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) {
        return err_set_errno(err, ERR_SYSTEM, errno, "--parent-death");
    }
    if ((long)getppid() != parent || (!told && parent == 1)) {
        return err_set(err, ERR_STOPPED,
                       "--parent-death: the process that started this one has gone");
    }
    return 0;
}
