// The daemons that --pool names: tcp:// and tls:// urls as they are, and dns://NAME:PORT as one
// tcp:// url for every address that the name has, which are looked up as often as one asks, so that
// a cluster can supply and replace hosts behind a name. dns+tls://NAME:PORT is the same with tls://
// urls, where each daemon must show a certificate for NAME: who answers the look-up is not trusted.
#ifndef CLIENT_POOL_HOSTS_H
#define CLIENT_POOL_HOSTS_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define HOSTS_MAX 64 // urls; more are left out

struct hosts;

// list: urls, comma-separated; blanks and empty ones are skipped. ERR_INVALID names the one that is
// none, ERR_USAGE when there is none at all.
MUST_CHECK int hosts_create(struct hosts **ret, const char *list, struct err *err);
void hosts_free(struct hosts *hosts); // NULL is fine; a look-up under way is cancelled

// More than one url, or a dns:// one.
bool hosts_are_several(const struct hosts *hosts);
bool hosts_have_names(const struct hosts *hosts); // a dns:// one

struct host {
    const char *url;
    const char *name; // for remote_expect; NULL: whom the url names
};

// The same url, by the same name: an address may be behind two, of which the certificate there
// names only one.
bool host_is_same(const struct host *host, const char *url, const char *name);

// All urls, in the order of the list, each once by each name; valid during the call. A name that
// could not be looked up stands for the addresses that it had before; why is about the first such
// name, or ERR_NONE.
typedef void hosts_callback(void *owner, const struct host *host, size_t count,
                            const struct err *why);
// callback runs once, on the loop and never inside. No other look-up is under way.
void hosts_look_up(struct hosts *hosts, uv_loop_t *loop, hosts_callback *callback, void *owner);
bool hosts_are_looked_up(const struct hosts *hosts); // right now

#endif
