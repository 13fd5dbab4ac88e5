#include "net/silence.h"

#include "common/mem.h"
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <sys/socket.h>

#define IDLE_S 3        // of silence, then the kernel asks every second
#define SILENCE_MS 9000 // without a word from the other host: it is gone

void silence_watch(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } option[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S},
        {IPPROTO_TCP, TCP_KEEPINTVL, 1},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, SILENCE_MS},
    };

    // Without one of these the end is noticed later: no reason to do without the connection.
    for (size_t i = 0; i < ARRAY_LEN(option); i++) {
        (void)setsockopt(fd, option[i].level, option[i].name, &option[i].value,
                         sizeof(option[i].value));
    }
}
