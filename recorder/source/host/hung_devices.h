/*
 * Devices, by number, whose files do not answer: a mount whose server is gone. Threads that open
 * files of other programs tell each other, so that one of them hangs and the others do not.
 *
 * A device is left alone while a thread hangs in one of its files, and for HUNG_SPARED_NS longer
 * unless it was only slow. Any thread.
 */
#pragma once

#include "base/os.h"

#define HUNG_AFTER_NS (NS_PER_SEC / 2)       /* to open and read a file takes a disk 0.1 s */
#define HUNG_SLOW_NS (2 * NS_PER_SEC)        /* an answer within this time: the device was slow */
#define HUNG_SPARED_NS (60 * NS_PER_SEC)
#define HUNG_DEVICES_MAX 8u

struct hung_devices;

struct hung_devices *hung_devices_new(void);         /* NULL without memory */
/* Another use of it: a thread that hangs may outlive its owner. */
struct hung_devices *hung_devices_use(struct hung_devices *h);
void hung_devices_drop(struct hung_devices *h);      /* ends one use; NULL allowed */

/* A thread hangs in one of its files. returns  whether the device was not left alone already */
bool hung_devices_add(struct hung_devices *h, uint64_t dev);
/* That thread has come back. */
void hung_devices_came_back(struct hung_devices *h, uint64_t dev);
/* Whether its files must not be opened now. */
bool hung_devices_has(struct hung_devices *h, uint64_t dev);
