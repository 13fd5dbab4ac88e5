// Design note. Linux shares a processor between sessions first and then between the processes of
// each (sched_autogroup_enabled, which distributions set), and kcast-exec leads a session of its
// own. There a nice value counts within the session alone, and the session's own number decides
// against others (sched(7), "The autogroup feature"). Without privileges it may be set once in a
// tenth of a second on the whole machine, so that one of several that start together gets EAGAIN.
#include "executor/give_way.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <unistd.h>

#define NICE 10
#define NICE_TEXT "10"

void give_way(void)
{
    static bool done;

    if (done) {
        return;
    }
    (void)setpriority(PRIO_PROCESS, 0, NICE);
    int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    done = fd < 0 || write(fd, NICE_TEXT, sizeof(NICE_TEXT) - 1) > 0 || errno != EAGAIN;
    if (fd >= 0) {
        close(fd);
    }
}
