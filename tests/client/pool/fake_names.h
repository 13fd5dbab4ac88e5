// A resolver that knows one name, pool.test, and numeric addresses. Its getaddrinfo stands before
// the C library's in the program that includes it, so that no test asks the network.
#ifndef TESTS_CLIENT_POOL_FAKE_NAMES_H
#define TESTS_CLIENT_POOL_FAKE_NAMES_H

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAKE_NAMES_MAX 48

static struct {
    pthread_mutex_t lock;
    char address[FAKE_NAMES_MAX][INET6_ADDRSTRLEN]; // of pool.test; none: it is not known
    size_t count;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline void add_name(const char *address)
{
    pthread_mutex_lock(&names.lock);
    snprintf(names.address[names.count++], INET6_ADDRSTRLEN, "%s", address);
    pthread_mutex_unlock(&names.lock);
}

// Gives the name these addresses alone; NULL stands for none.
static inline void set_name(const char *first, const char *second)
{
    pthread_mutex_lock(&names.lock);
    names.count = 0;
    pthread_mutex_unlock(&names.lock);
    if (first) {
        add_name(first);
    }
    if (second) {
        add_name(second);
    }
}

// One block each, so that freeaddrinfo of the C library would do, too.
static inline struct addrinfo *new_info(const char *address, const char *port)
{
    struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_in6));
    struct sockaddr_in *v4 = (struct sockaddr_in *)(info + 1);
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(info + 1);
    in_port_t number = htons((uint16_t)strtoul(port, NULL, 10));
    info->ai_socktype = SOCK_STREAM;
    info->ai_addr = (struct sockaddr *)(info + 1);
    if (inet_pton(AF_INET, address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = number;
        info->ai_family = AF_INET;
        info->ai_addrlen = sizeof(*v4);
    } else if (inet_pton(AF_INET6, address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = number;
        info->ai_family = AF_INET6;
        info->ai_addrlen = sizeof(*v6);
    } else {
        free(info);
        return NULL;
    }
    return info;
}

int getaddrinfo(const char *restrict host, const char *restrict port,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    (void)hints;
    *ret = NULL;
    if (strcmp(host, "pool.test") != 0) {
        *ret = new_info(host, port);
        return *ret ? 0 : EAI_NONAME;
    }
    pthread_mutex_lock(&names.lock);
    for (size_t i = names.count; i > 0; i--) {
        struct addrinfo *info = new_info(names.address[i - 1], port);
        info->ai_next = *ret;
        *ret = info;
    }
    pthread_mutex_unlock(&names.lock);
    return *ret ? 0 : EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *info)
{
    while (info) {
        struct addrinfo *next = info->ai_next;
        free(info);
        info = next;
    }
}

#endif
