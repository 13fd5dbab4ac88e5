// Tells whoever started this program how it is, by the datagram protocol of sd_notify(3): systemd,
// a client that starts its own daemon, or a test.
#ifndef COMMON_READY_H
#define COMMON_READY_H

// Sends one message to $NOTIFY_SOCKET, for example
// "READY=1\nSTATUS=listening on tcp://127.0.0.1:7410". Does nothing when the variable is unset.
// Failures are silent.
void ready_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
