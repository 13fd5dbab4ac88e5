// A private certificate authority for a small team. Its own files ca.pem and ca-key.pem lie in one
// folder; the certificates that it signs lie in others. `kcast tls init` is its only caller;
// daemons and clients merely read the files (net/tls/tls.h). Keys are ECDSA on P-256. All files are
// made with mode 0600, and none is ever overwritten.
#ifndef NET_TLS_AUTHORITY_H
#define NET_TLS_AUTHORITY_H

#include "common/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct authority;

// Opens the authority in dir, a folder that exists. When dir has neither ca.pem nor ca-key.pem, a
// new authority is made, valid from an hour before now_s (seconds since 1970) for ten years.
// *ret_made tells whether it was made. ERR_INVALID when the key does not belong to the certificate
// or the certificate has expired. The caller frees *ret.
MUST_CHECK int authority_open(struct authority **ret, const char *dir, int64_t now_s,
                              bool *ret_made, struct err *err);
void authority_free(struct authority *authority); // NULL is fine

// What a certificate is to say. All pointers are borrowed.
struct certificate_spec {
    const char *name;         // its holder: letters, digits, '.', '_' and '-'
    const char *const *hosts; // names and addresses of a server; NULL for a caller's certificate
    size_t host_count;
    int64_t from_s; // begin of its validity, seconds since 1970
    int64_t to_s;   // end of its validity
};

// Makes the folder dir with what the holder of a certificate needs: ca.pem, cert.pem and key.pem,
// with a new key. When dir has a cert.pem already, nothing is changed and *ret_made is false;
// ERR_INVALID then says that this certificate has expired, was not signed by this authority or does
// not name all hosts of spec.
MUST_CHECK int authority_issue(struct authority *authority, const char *dir,
                               const struct certificate_spec *spec, bool *ret_made,
                               struct err *err);

#endif
