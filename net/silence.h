// Connections to hosts that say nothing any more.
#ifndef NET_SILENCE_H
#define NET_SILENCE_H

// A host that was cut off, or has lost its power, closes nothing. From now on the kernel ends this
// TCP connection with ETIMEDOUT when nothing has come from the other host for some ten seconds: it
// asks when nobody has anything to say, and looks at what is not acknowledged otherwise. A program
// that is merely busy, or stopped, still has a kernel that answers for it, unless so much was sent
// to it that nothing more fits in.
void silence_watch(int fd);

#endif
