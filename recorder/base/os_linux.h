/*
 * What the os_*_linux.c files share. Nobody else includes this.
 */
#pragma once

/* Readable while a signal waits for os_signal_wait(); -1 before os_signals_open(). */
int os_signals_fd(void);
/* What asked this program to end, for those that it has started; SIGTERM if that was no signal. */
int os_stop_signal(void);
