// Who a server lets in: its certificates and its tokens, from files, and the rules of where it may
// listen. On loopback without either everybody is tenant "local" and may do everything.
#ifndef NET_AUTH_IDENTITY_H
#define NET_AUTH_IDENTITY_H

#include "common/err.h"
#include "net/auth/caller.h"
#include "net/auth/tokens.h"
#include "net/rpc/url.h"
#include "net/tls/tls.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct identity_files {
    char *ca, *cert, *key, *tokens; // all NULL: none
};

// Rows of an option table (common/options.h) whose struct has a struct identity_files at `base`.
#define IDENTITY_ROW(base, field) ((base) + offsetof(struct identity_files, field))
#define IDENTITY_OPTION_ROWS(base)                                                                 \
    {"tls-ca",    0,                                                                               \
     OPTION_TEXT, IDENTITY_ROW(base, ca),                                                          \
     "FILE",      NULL,                                                                            \
     0,           0,                                                                               \
     NULL,        "for tls://: certificates that the callers' must be signed by"},                 \
        {"tls-cert",  0,                                                                           \
         OPTION_TEXT, IDENTITY_ROW(base, cert),                                                    \
         "FILE",      NULL,                                                                        \
         0,           0,                                                                           \
         NULL,        "for tls://: certificate of this host"},                                     \
        {"tls-key",   0,                                                                           \
         OPTION_TEXT, IDENTITY_ROW(base, key),                                                     \
         "FILE",      NULL,                                                                        \
         0,           0,                                                                           \
         NULL,        "for tls://: its key, readable by its owner only"},                          \
    {                                                                                              \
        "tokens", 0, OPTION_TEXT, IDENTITY_ROW(base, tokens), "FILE", NULL, 0, 0, NULL,            \
            "for tls://: who may call and as what; made by `kcast token`, read again on SIGHUP"    \
    }

struct identity {
    struct tls *tls;       // NULL: in the clear
    struct tokens *tokens; // NULL: nobody is asked for one
};

// Reads the files for a server that listens on url, written as text. ERR_DENIED when it may not
// listen there: anywhere but on loopback it takes tls://, and tls:// takes all four files.
// ERR_USAGE when files are given that tcp:// has no use for.
MUST_CHECK int identity_load(struct identity *ret, const struct identity_files *files,
                             const struct url *url, const char *text, struct err *err);
void identity_release(struct identity *identity);

// What a connection has shown.
struct holder {
    bool known; // it has shown a token
    char tenant[TENANT_MAX + 1];
    struct digest digest; // of the token's row
};

// Whether a connection may ask for op now, and as whom. token: what the request carries, or NULL;
// the last one that was right counts. *ret points into holder. ERR_DENIED says why not.
MUST_CHECK int identity_admit(const struct identity *identity, struct holder *holder,
                              const char *token, uint64_t op, int64_t now_s, struct caller *ret,
                              struct err *err);
// Whether the token that was shown is still known.
bool identity_stands(const struct identity *identity, const struct holder *holder);

// For a process that holds keys and tokens: no core file, and no reading of its memory by others of
// the same user.
void identity_protect_process(void);

#endif
