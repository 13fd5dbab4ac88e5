// A private certificate authority for a small team: ca.pem and ca-key.pem in a folder, and the
// certificates that it signs. ECDSA on P-256. All files are 0600; none is ever overwritten.
#ifndef NET_TLS_AUTHORITY_H
#define NET_TLS_AUTHORITY_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct authority;

// Opens the one in dir, which exists; makes it, valid from an hour before now_s for ten years, when
// neither file is there. *ret_made: which of the two. ERR_INVALID when the key is another's, or
// it has expired.
MUST_CHECK int authority_open(struct authority **ret, const char *dir, int64_t now_s,
                              bool *ret_made, struct err *err);
void authority_free(struct authority *authority); // NULL is fine

struct authority_order {
    const char *name;         // of its holder: letters, digits, '.', '_' and '-'
    const char *const *hosts; // names and addresses of a server; NULL: it is a caller's
    size_t host_count;
    int64_t from_s; // since 1970
    int64_t to_s;
};

// Makes dir with ca.pem, cert.pem and key.pem of a new key: what its holder needs. *ret_made is
// false, and nothing was changed, when dir has a cert.pem already: ERR_INVALID when that has
// expired, is not this authority's or does not name all hosts.
MUST_CHECK int authority_issue(struct authority *authority, const char *dir,
                               const struct authority_order *order, bool *ret_made,
                               struct err *err);

#endif
