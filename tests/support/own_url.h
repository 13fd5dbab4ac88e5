#ifndef TESTS_SUPPORT_OWN_URL_H
#define TESTS_SUPPORT_OWN_URL_H

#include <stdio.h>
#include <unistd.h>

// Returns a loopback address that no other test uses. What is started there once more finds its
// port free, whatever others were given meanwhile. Static memory, the same text at each call.
static inline const char *own_host(void)
{
    static char host[sizeof("127.255.255.255")];

    if (host[0] == '\0') {
        (void)snprintf(host, sizeof(host), "127.%d.%d.%d", 64 + (getpid() >> 16) % 128,
                       (getpid() >> 8) % 256, getpid() % 256);
    }
    return host;
}

// Returns where a service of this test may listen: any port there. Static memory as well.
static inline const char *own_url(void)
{
    static char url[sizeof("tcp://127.255.255.255:0")];

    (void)snprintf(url, sizeof(url), "tcp://%s:0", own_host());
    return url;
}

#endif
