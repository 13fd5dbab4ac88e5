// The sd_notify datagram protocol: tells whoever started this program (systemd, --local, a test) how it is.
#ifndef COMMON_READY_H
#define COMMON_READY_H

// Sends e.g. "READY=1\nSTATUS=listening on tcp://127.0.0.1:7410" to $NOTIFY_SOCKET; does nothing when it is unset.
void ready_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
