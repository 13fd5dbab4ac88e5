// Actors: the caller, who waits, and a detached thread, which closes. Both hold what they share; who lets go last frees it.
#include "net/close.h"

#include "common/clock.h"
#include "common/mem.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define CLOSE_WAIT_NS (500 * NS_PER_MS)

struct closing {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    nng_socket socket;
    bool done;
    int holders;
};

static void let_go(struct closing *closing)
{
    bool last = --closing->holders == 0;
    pthread_mutex_unlock(&closing->mutex);
    if (last) {
        pthread_cond_destroy(&closing->changed);
        pthread_mutex_destroy(&closing->mutex);
        free(closing);
    }
}

static void *close_it(void *data)
{
    struct closing *closing = data;
    nng_close(closing->socket);
    pthread_mutex_lock(&closing->mutex);
    closing->done = true;
    pthread_cond_signal(&closing->changed);
    let_go(closing);
    return NULL;
}

static bool wait_for_it(struct closing *closing)
{
    struct timespec until;
    bool done;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += CLOSE_WAIT_NS;
    until.tv_sec += until.tv_nsec / NS_PER_S;
    until.tv_nsec %= NS_PER_S;
    pthread_mutex_lock(&closing->mutex);
    while (!closing->done && pthread_cond_timedwait(&closing->changed, &closing->mutex, &until) == 0)
        ;
    done = closing->done;
    let_go(closing);
    return done;
}

bool net_close(nng_socket socket)
{
    struct closing *closing = xcalloc(1, sizeof *closing);
    pthread_condattr_t attributes;
    pthread_t thread;
    closing->socket = socket;
    closing->holders = 2;
    pthread_mutex_init(&closing->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&closing->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (pthread_create(&thread, NULL, close_it, closing) != 0) { // no thread to be had: nothing is left but to wait
        pthread_mutex_lock(&closing->mutex);
        closing->holders = 1;
        pthread_mutex_unlock(&closing->mutex);
        close_it(closing);
        return true;
    }
    pthread_detach(thread);
    return wait_for_it(closing);
}
