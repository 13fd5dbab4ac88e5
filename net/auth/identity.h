// The certificates and tokens of a server: where it may listen with them, and whom it admits. A
// server on loopback may have neither; all its callers are then the tenant "local" with the role
// admin. net/rpc/service.h calls these functions. They know no sockets and never log.
#ifndef NET_AUTH_IDENTITY_H
#define NET_AUTH_IDENTITY_H

#include "common/err.h"
#include "net/auth/caller.h"
#include "net/auth/tokens.h"
#include "net/tls/tls.h"
#include "net/url.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct identity_files {
    char *ca, *cert, *key, *tokens; // paths, owned by the struct's owner; NULL: not given
};

// Rows of an option table (common/options.h) whose struct has a struct identity_files at offset
// `base`.
#define IDENTITY_ROW(base, field) ((base) + offsetof(struct identity_files, field))
// clang-format off
#define IDENTITY_OPTION_ROWS(base)                                                                 \
    {"tls-ca", 0, OPTION_TEXT, IDENTITY_ROW(base, ca), "FILE", NULL, 0, 0, NULL,                   \
     "for tls://: certificates that the callers' must be signed by"},                              \
    {"tls-cert", 0, OPTION_TEXT, IDENTITY_ROW(base, cert), "FILE", NULL, 0, 0, NULL,               \
     "for tls://: certificate of this host"},                                                      \
    {"tls-key", 0, OPTION_TEXT, IDENTITY_ROW(base, key), "FILE", NULL, 0, 0, NULL,                 \
     "for tls://: its key, readable by its owner only"},                                           \
    {"tokens", 0, OPTION_TEXT, IDENTITY_ROW(base, tokens), "FILE", NULL, 0, 0, NULL,               \
     "for tls://: who may call and as what; made by `kcast token`, read again on SIGHUP"}
// clang-format on

struct identity {
    struct tls *tls;       // NULL: not encrypted
    struct tokens *tokens; // NULL: no token is asked for
};

// Reads the files of a server that listens on url; text is the url as the user wrote it, for
// errors. ERR_DENIED when the server may not listen there: any address but loopback takes tls://,
// and tls:// takes all four files. ERR_USAGE when files are given for tcp://, which uses none. An
// error of a file is passed on. *ret is released by the caller.
MUST_CHECK int identity_load(struct identity *ret, const struct identity_files *files,
                             const struct url *url, const char *text, struct err *err);
void identity_release(struct identity *identity);

// What is remembered of the last valid token that a connection has shown. Zeroed at first.
struct holder {
    bool known; // a valid token has been shown
    char tenant[TENANT_MAX + 1];
    struct digest digest; // the digest in the token's line
};

// Decides whether a connection may ask for op at now_s (seconds since 1970), and as which caller.
// token is the one that the request carries, or NULL: then the last valid token of the connection
// counts. *ret points into holder. ERR_DENIED gives the reason.
MUST_CHECK int identity_admit(const struct identity *identity, struct holder *holder,
                              const char *token, uint64_t op, int64_t now_s, struct caller *ret,
                              struct err *err);
// Returns false when the token that the connection has shown is not in the file any more. It is
// true for a connection that has shown none, and an expired token counts as valid.
bool identity_token_is_listed(const struct identity *identity, const struct holder *holder);

// Protects a process that holds keys and tokens: it writes no core file, and other processes of the
// same user cannot read its memory.
void identity_protect_process(void);

#endif
